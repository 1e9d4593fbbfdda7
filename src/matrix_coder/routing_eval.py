"""How well the gate does on labelled messages: the tables that docs/routing.md publishes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypedDict

from .core.decision import Decision
from .core.intent_gate import decide


class Message(TypedDict):
    """One labelled line: sets of acceptable answers; None for a domain means that none may be given."""

    id: str
    text: str
    source_kind: str
    coding: bool
    verdict_ok: list[str]
    role: list[str] | None
    lens: list[str] | None
    domain: list[str] | None


class Judgement(TypedDict):
    """What is right about one decision; None where the question does not apply."""

    tp: bool
    fp: bool
    fn: bool
    fa: bool | None
    verdict: bool
    role: bool | None
    domain: bool | None
    route: bool | None


_COLUMNS = ("n", "coding", "P", "R", "F1", "FA%", "verdict%", "role%", "domain%", "route%")


def load_messages(path: Path) -> list[Message]:
    """The labelled messages of a JSON-lines file; ValueError names the line that is not one."""
    out: list[Message] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            x = json.loads(line)
            missing = Message.__required_keys__ - set(x)
        except (ValueError, TypeError) as exc:
            raise ValueError(f"{path.name}:{number}: expected a JSON object; found {exc}") from exc
        if missing:
            raise ValueError(f"{path.name}:{number}: expected a labelled message; found none of {sorted(missing)}")
        out.append(x)
    return out


def judge(x: Message, d: Decision) -> Judgement:
    """One decision against its label. A coding message that was missed counts as a wrong role and route."""
    gold, got = x["coding"], d.coding
    role = gold and got and d.role in (x["role"] or ())
    domain = (d.domain or "none") in (x["domain"] or ["none"])
    lens = d.role != "review" or (d.lens or "none") in (x["lens"] or ["none"])
    verdict = d.verdict in x["verdict_ok"]
    return {
        "tp": gold and got,
        "fp": got and not gold,
        "fn": gold and not got,
        "fa": None if gold else got,
        "verdict": verdict,
        "role": role if gold else None,
        "domain": domain if gold and got else None,
        "route": (role and domain and lens and verdict) if gold else None,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Miss:
    """A message whose coding flag came out wrong."""

    id: str
    kind: str
    what: Literal["missed", "false activation"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The figures of each kind, by column, all messages as kind `all` first; None where a question was never asked.

    `P`, `R` and `F1` have three decimals, what ends in `%` one. `misses` are the first ones.
    """

    kinds: dict[str, dict[str, float | None]]
    misses: tuple[Miss, ...]


def evaluate(path: Path, *, misses: int = 0) -> Evaluation:
    """What the gate makes of a labelled file, with at most `misses` of its misses. Raises ValueError for a bad line."""
    pairs = [(x, decide(x["text"])) for x in load_messages(path)]
    wrong = [x for x, d in pairs if x["coding"] != d.coding]
    return Evaluation(kinds=figures(pairs), misses=tuple(_miss(x) for x in wrong[:misses]))


def _miss(x: Message) -> Miss:
    what: Literal["missed", "false activation"] = "missed" if x["coding"] else "false activation"
    return Miss(id=x["id"], kind=x["source_kind"], what=what, text=x["text"])


def figures(pairs: Iterable[tuple[Message, Decision]]) -> dict[str, dict[str, float | None]]:
    """The figures of all messages, then of each kind."""
    groups: dict[str, list[Judgement]] = {"all": []}
    for x, d in pairs:
        judged = judge(x, d)
        groups["all"].append(judged)
        groups.setdefault(x["source_kind"], []).append(judged)
    return {kind: _row(groups[kind]) for kind in sorted(groups, key=lambda k: (k != "all", k))}


def _row(js: list[Judgement]) -> dict[str, float | None]:
    tp, fp, fn = sum(j["tp"] for j in js), sum(j["fp"] for j in js), sum(j["fn"] for j in js)
    values = (
        len(js),
        tp + fn,
        _ratio(tp, tp + fp),
        _ratio(tp, tp + fn),
        _ratio(2 * tp, 2 * tp + fp + fn),
        _share([j["fa"] for j in js]),
        _share([j["verdict"] for j in js]),
        _share([j["role"] for j in js]),
        _share([j["domain"] for j in js]),
        _share([j["route"] for j in js]),
    )
    return dict(zip(_COLUMNS, values, strict=True))


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None


def _share(values: Sequence[bool | None]) -> float | None:
    asked = [v for v in values if v is not None]
    return round(100 * sum(asked) / len(asked), 1) if asked else None


def text(evaluation: Evaluation) -> str:
    """The table to read, a line for each kind, then a line for each miss."""
    head = f"{'kind':20s}" + "".join(f"{c:>10s}" for c in _COLUMNS)
    rows = [
        f"{kind:20s}" + "".join(_cell(column, value) for column, value in row.items())
        for kind, row in evaluation.kinds.items()
    ]
    misses = [f"{m.what}: {m.id} [{m.kind}] {m.text[:120]!r}" for m in evaluation.misses]
    return "\n".join([head, *rows, *misses])


def _cell(column: str, value: float | None) -> str:
    digits = 0 if column in ("n", "coding") else 1 if column.endswith("%") else 3
    return f"{'-' if value is None else f'{value:.{digits}f}':>10s}"
