"""The scorer: named features of a reading, and their weights from a table that anyone can read."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise, repeat
from pathlib import Path

from .gate_features import Reading
from .names import Domain, Role

_DATA = Path(__file__).resolve().parent.parent / "gate_weights.json"
ROLES = tuple(r.value for r in Role)
DOMAINS = ("none", *(d.value for d in Domain))
_FULL_WORDS = 12
_TECH = frozenset("SLDXIFGB")
_LEANING = frozenset("WMUQVgfh/")
_ZEROS = repeat(0.0)
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
    """What the message does, in a word: it orders, asks, tells of a past deed, wishes, or states."""
    if not reading.lemmas:
        return "bare"
    at = lead_of(reading)
    first = reading.classes[at]
    if first in "ADRHKQ":
        return "first" + first
    if first in "qv":
        return "wh" + "".join(reading.classes[at + 1 : at + 2]) if first == "q" else "aux"
    order = _ORDER.search("".join(reading.classes))
    if order is not None:
        return "then" + order[1]
    return _told(reading, at, first)


def _told(reading: Reading, at: int, first: str) -> str:
    """The act of a message that gives no order and opens with no question word."""
    if first == "p":
        if "2" in reading.classes[at : at + 5]:
            return "told"
        return "wish" if _WISHES.intersection(reading.lemmas[at : at + 3]) else "says"
    return "asks" if "?" in reading.classes else "noun" if first in "WSLMUI" else "state"


def word_features(reading: Reading) -> list[str]:
    """Words, neighbours and runs of classes, each once, in their order: what is scaled by length."""
    lemmas = reading.lemmas
    row = "=^" + "".join(reading.classes) + "$"
    found = dict.fromkeys(lemmas)
    found |= dict.fromkeys(map(" ".join, pairwise(lemmas)))
    found |= dict.fromkeys(["=" + row[i : i + 2] for i in range(1, len(row) - 1)])
    found |= dict.fromkeys(["=" + row[i : i + 3] for i in range(1, len(row) - 2)])
    return list(found)


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
    found += ["#has:" + c for c in dict.fromkeys(classes)]
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


def route_features(reading: Reading) -> list[str]:
    """What the lexicon's tags alone say about role and domain: read by those two choices only."""
    found = []
    roles = reading.roles
    if roles:
        found.append("@first:" + roles[0])
        found += ["@any:" + name for name in dict.fromkeys(roles)]
        if len(roles) > 1:
            found.append(f"@two:{roles[0]}>{roles[1]}")
    order = "order" if act_of(reading)[-1:] in "AD" else "none"
    fault = "fault" if {"Q", "X"}.intersection(reading.classes) or "X" in reading.pasted else "calm"
    found.append(f"@{order}/{fault}/{'trace' if 'trace' in reading.kinds else 'plain'}")
    found.append(f"@{order}/{roles[0] if roles else '-'}/{fault}")
    best = best_domain(reading)
    found.append("@dom:" + (best or "none"))
    for name, score in domain_scores(reading).items():
        found.append(f"@dom:{name}:{min(6, int(score))}")
    return found


def domain_scores(reading: Reading) -> dict[str, float]:
    """How much each stack is named, in the ask and, at half weight, in what was pasted."""
    out: dict[str, float] = {}
    for name in DOMAINS[1:]:
        asked = 2 * reading.tags.get(name, 0) + reading.tags.get(name + "?", 0)
        score = asked + 0.5 * (2 * reading.paste_tags.get(name, 0) + reading.paste_tags.get(name + "?", 0))
        if score:
            out[name] = score
    return out


def best_domain(reading: Reading) -> str | None:
    """The clearest stack named, or none when no stack stands out."""
    scores = domain_scores(reading)
    if not scores:
        return None
    best = max(scores, key=lambda name: scores[name])
    rest = max((v for k, v in scores.items() if k != best), default=0.0)
    return best if scores[best] >= 2 and scores[best] > rest else None


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
class Choice:
    """A choice among names: what each feature votes for (`debug 0.4 plan -0.1`), and where all start.

    `rows` keeps the votes that were read already as one number for each name.
    """

    names: tuple[str, ...]
    votes: dict[str, str]
    start: tuple[float, ...]
    rows: dict[str, tuple[float, ...]] = field(default_factory=dict, compare=False)

    def scores(self, words: list[str], whole: list[str], scale: float) -> dict[str, float]:
        """One score for each name, in their order."""
        once = map(sum, zip(self.start, *self._found(whole), strict=True))
        scaled = map(sum, zip(self._none, *self._found(words), strict=True))
        return {name: a * scale + b for name, a, b in zip(self.names, scaled, once, strict=True)}

    @property
    def _none(self) -> tuple[float, ...]:
        return (0.0,) * len(self.names)

    def _found(self, features: list[str]) -> list[tuple[float, ...]]:
        votes, rows = self.votes, self.rows
        return [rows.get(f) or self._read(f) for f in features if f in votes]

    def _read(self, feature: str) -> tuple[float, ...]:
        row = self.rows[feature] = votes_row(self.votes[feature], self.names)
        return row


@dataclass(frozen=True, slots=True)
class Weights:
    """`coding` maps a feature to its vote; `roles` and `domains` choose among names."""

    coding: dict[str, float]
    roles: Choice
    domains: Choice
    bias: float


def votes_row(votes: str, names: tuple[str, ...]) -> tuple[float, ...]:
    """One number for each name from votes as the weight file writes them: `debug 0.4 plan -0.1`."""
    parts = iter(votes.split())
    found = {name: float(value) for name, value in zip(parts, parts, strict=True)}
    return tuple(found.get(name, 0.0) for name in names)


def choice(names: tuple[str, ...], votes: dict[str, str]) -> Choice:
    """A choice whose start is the votes of the feature `(bias)`."""
    return Choice(names, votes, votes_row(votes.get("(bias)", ""), names))


@cache
def weights() -> Weights:
    """The weight table, read at the first call."""
    data = json.loads(_DATA.read_bytes())
    coding: dict[str, float] = data["coding"]
    roles, domains = choice(ROLES, data["roles"]), choice(DOMAINS, data["domains"])
    return Weights(coding, roles, domains, coding.get("(bias)", 0.0))


def coding_score(words: list[str], whole: list[str], scale: float, table: Weights) -> float:
    """Above zero the message asks for work on code."""
    get = table.coding.get
    return table.bias + scale * sum(map(get, words, _ZEROS)) + sum(map(get, whole, _ZEROS))
