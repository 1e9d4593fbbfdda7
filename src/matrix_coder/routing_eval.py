"""How well the gate does on labelled messages: the tables that docs/routing.md publishes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypedDict

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


def table(pairs: Iterable[tuple[Message, Decision]]) -> str:
    """A text table: one line for all messages, then one for each kind."""
    groups: dict[str, list[Judgement]] = {"all": []}
    for x, d in pairs:
        judged = judge(x, d)
        groups["all"].append(judged)
        groups.setdefault(x["source_kind"], []).append(judged)
    head = f"{'kind':20s}" + "".join(f"{c:>10s}" for c in _COLUMNS)
    return "\n".join([head, *(_line(k, groups[k]) for k in sorted(groups, key=lambda k: (k != "all", k)))])


def _share(values: Sequence[bool | None]) -> str:
    asked = [v for v in values if v is not None]
    return f"{100 * sum(asked) / len(asked):.1f}" if asked else "-"


def _line(name: str, js: list[Judgement]) -> str:
    tp, fp, fn = sum(j["tp"] for j in js), sum(j["fp"] for j in js), sum(j["fn"] for j in js)
    precision = f"{tp / (tp + fp):.3f}" if tp + fp else "-"
    recall = f"{tp / (tp + fn):.3f}" if tp + fn else "-"
    f1 = f"{2 * tp / (2 * tp + fp + fn):.3f}" if tp + fp + fn else "-"
    shares = [
        _share([j["fa"] for j in js]),
        _share([j["verdict"] for j in js]),
        _share([j["role"] for j in js]),
        _share([j["domain"] for j in js]),
        _share([j["route"] for j in js]),
    ]
    cells = [str(len(js)), str(tp + fn), precision, recall, f1, *shares]
    return f"{name:20s}" + "".join(f"{c:>10s}" for c in cells)


def evaluate(path: Path, *, misses: int = 0) -> str:
    """The tables for a labelled file, and the first `misses` messages whose coding flag came out wrong."""
    pairs = [(x, decide(x["text"])) for x in load_messages(path)]
    lines = [table(pairs)]
    wrong = [(x, d) for x, d in pairs if x["coding"] != d.coding]
    for x, _ in wrong[:misses]:
        what = "missed" if x["coding"] else "false activation"
        lines.append(f"{what}: {x['id']} [{x['source_kind']}] {x['text'][:120]!r}")
    return "\n".join(lines)
