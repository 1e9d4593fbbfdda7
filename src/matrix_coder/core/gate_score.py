"""The scorer: named features of a reading, and their weights from a table that anyone can read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .gate_features import Reading
from .names import Role

_DATA = Path(__file__).resolve().parent.parent / "gate_weights.tsv"
ROLES = tuple(r.value for r in Role)
_FULL_WORDS = 12
_TECH = frozenset("SLDXIFGB")
_LEANING = frozenset("WMUQVgfh/")
_ORDER = re.compile(r"[.,!?:jy(~)]([ADR])")
_WISHES = frozenset({"need", "want", "would", "i'd", "like", "wants", "needs"})
_OTHER = frozenset("EOHKC")


def scale_of(reading: Reading) -> float:
    """How much one word of a long message counts, so that length alone never decides."""
    n = len(reading.lemmas)
    return 1.0 if n <= _FULL_WORDS else (_FULL_WORDS / n) ** 0.5


def lead_of(reading: Reading) -> int:
    """Where the request starts, after a greeting or a polite lead."""
    last = len(reading.classes) - 1
    at = 0
    while at < last and reading.classes[at] in "yC,.!(":
        at += 1
    return at


def act_of(reading: Reading) -> str:
    """What the message does, in a word: it asks for work, asks a question, tells of a past deed, a wish, a state."""
    classes, lemmas = reading.classes, reading.lemmas
    if not lemmas:
        return "bare"
    at = lead_of(reading)
    first = classes[at]
    if first in "ADRHKQ":
        return "first" + first
    row = "".join(classes)
    if first == "q":
        return "wh" + row[at + 1 : at + 2]
    if first == "v":
        return "aux"
    order = _ORDER.search(row)
    if order is not None:
        return "then" + order[1]
    if first == "p":
        return "told" if "2" in row[at : at + 5] else "wish" if _WISHES.intersection(lemmas[at : at + 3]) else "says"
    return "asks" if "?" in classes else "noun" if first in "WSLMUI" else "state"


def word_features(reading: Reading) -> set[str]:
    """Words, neighbours and runs of classes: what is scaled by length."""
    lemmas = reading.lemmas
    row = "^" + "".join(reading.classes) + "$"
    found = set(lemmas)
    found.update(map(" ".join, zip(lemmas, lemmas[1:], strict=False)))
    found.update(["=" + row[i : i + 2] for i in range(len(row) - 1)])
    found.update(["=" + row[i : i + 3] for i in range(len(row) - 2)])
    return found


def whole_features(reading: Reading) -> list[str]:
    """What the message is as a whole: tags, what was pasted, counts in words, how it starts and ends."""
    classes, lemmas = reading.classes, reading.lemmas
    found = ["#" + tag if count == 1 else "#" + tag + "+" for tag, count in reading.tags.items()]
    tech = min(3, sum(c in _TECH for c in classes))
    lean = min(3, sum(c in _LEANING for c in classes))
    other = min(3, sum(c in _OTHER for c in classes))
    found.append(f"#tech{tech}/lean{lean}")
    found.append(f"#tech{tech}/other{other}")
    found.append(f"#lean{lean}/other{other}" if tech == 0 else "#tech")
    found += ["#has:" + c for c in set(classes)]
    act = act_of(reading)
    found.append(f"#act:{act}")
    found.append(f"#act:{act}/tech{min(tech, 2)}{'l' if lean else ''}/other{min(other, 2)}")
    found.append(
        f"#act:{act}/" + ("fault" if "symptom" in reading.tags else "calm") + ("/t" if tech else "/l" if lean else "")
    )
    found.append("#n" + str(len(lemmas).bit_length()))
    if lemmas:
        at = lead_of(reading)
        found.append("^" + lemmas[at])
        found.append("^" + " ".join(lemmas[at : at + 2]))
        if lemmas[-1] == "?":
            found.append("#asks")
    if not reading.latin:
        found.append("#native")
    if reading.code_file:
        found.append("#codefile")
    if reading.kinds:
        _paste_features(reading, found)
    return found


def _paste_features(reading: Reading, found: list[str]) -> None:
    found.extend(["#k:" + kind for kind in reading.kinds])
    tech = sum(n for c, n in reading.pasted.items() if c in _TECH)
    other = sum(n for c, n in reading.pasted.items() if c in _OTHER)
    found.append("#pasted:tech" + str(min(3, tech)))
    found.append("#pasted:other" + str(min(3, other)))
    found.extend(["#pasted:" + c for c in reading.pasted if c in "XIFGSLEOQ"])
    if not reading.lemmas:
        found.append("#noask")


@dataclass(frozen=True, slots=True)
class Weights:
    """`coding` maps a feature to its vote; `roles` maps a feature to its votes in the order of ROLES."""

    coding: dict[str, float]
    roles: dict[str, tuple[tuple[int, float], ...]]
    bias: float
    role_bias: tuple[float, ...]


@cache
def weights() -> Weights:
    """The weight table, read at the first call."""
    coding: dict[str, float] = {}
    roles: dict[str, tuple[tuple[int, float], ...]] = {}
    order = {name: i for i, name in enumerate(ROLES)}
    for line in _DATA.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            continue
        feature, vote, rest = line.split("\t")
        if vote:
            coding[feature] = float(vote)
        if rest:
            roles[feature] = tuple(
                (order[name], float(value)) for name, _, value in (p.partition("=") for p in rest.split(" "))
            )
    bias = coding.pop("(bias)", 0.0)
    start = dict(roles.pop("(bias)", ()))
    return Weights(coding, roles, bias, tuple(start.get(i, 0.0) for i in range(len(ROLES))))


def coding_score(words: set[str], whole: list[str], scale: float, table: Weights) -> float:
    """Above zero the message asks for work on code."""
    get = table.coding.get
    near = sum([get(f, 0.0) for f in words])
    return table.bias + scale * near + sum([get(f, 0.0) for f in whole])


def role_scores(words: set[str], whole: list[str], scale: float, table: Weights) -> list[float]:
    """One score for each role, in the order of ROLES."""
    out = list(table.role_bias)
    get = table.roles.get
    for feature in words:
        for i, value in get(feature, ()):
            out[i] += scale * value
    for feature in whole:
        for i, value in get(feature, ()):
            out[i] += value
    return out
