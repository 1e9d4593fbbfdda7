"""Named role, lens and triviality of a message that asks for work on code."""

from __future__ import annotations

from .gate_features import Reading
from .gate_score import lead_of
from .names import Lens, Role

_NAMED = {
    "review": Role.REVIEW,
    "audit": Role.REVIEW,
    "verify": Role.VERIFY,
    "confirm": Role.VERIFY,
    "debug": Role.DEBUG,
    "diagnose": Role.DEBUG,
    "test": Role.TEST,
    "simplify": Role.SIMPLIFY,
    "refactor": Role.SIMPLIFY,
    "explore": Role.EXPLORE,
    "map": Role.EXPLORE,
    "plan": Role.PLAN,
}
_MADE = frozenset({"fix", "implement", "add", "rename", "bump", "upgrade"})
_TESTS = ("tests", "unit test", "integration test", "regression test", "e2e test", "test for")
_MORE = frozenset({"add", "write", "create", "need", "generate", "extend", "strengthen", "raise", "increase", "cover"})
_MAPS = frozenset({"is", "are", "does", "do", "did"})
_LENS_ORDER = (Lens.SECURITY, Lens.PERFORMANCE, Lens.DEPS, Lens.API, Lens.QUALITY)
_MAX_TRIVIAL_WORDS = 10


def named_role(reading: Reading) -> Role | None:
    """The role that the message itself names as its first word, with something to do it to."""
    if len(reading.lemmas) < 2:
        return None
    at = lead_of(reading)
    if _wants_tests(reading, at):
        return Role.TEST
    if reading.classes[at + 1 : at + 2] in (["v"], [":"], [","]) or reading.surfaces[at] != reading.lemmas[at]:
        return None
    if reading.lemmas[at] in _MADE:
        return Role.EXECUTOR
    return _NAMED.get(reading.lemmas[at]) or _asked_role(reading, at)


def _wants_tests(reading: Reading, at: int) -> bool:
    """`add ... tests`, `tests for ...`: tests to be written, not tests that fail."""
    if "test" not in reading.roles or "Q" in reading.classes or "X" in reading.classes:
        return False
    first = reading.lemmas[at]
    return reading.roles[0] == "test" if first.startswith(_TESTS) else first in _MORE


def _asked_role(reading: Reading, at: int) -> Role | None:
    """`why ...` reports a fault; `where ...` and `how does ...` without one want a map."""
    first, _, second = " ".join(reading.lemmas[at : at + 2]).partition(" ")
    if first == "why":
        return Role.DEBUG
    if first in ("where", "how") and second.split(" ")[0] in _MAPS and not reading.tags.get("symptom"):
        return Role.EXPLORE
    return Role.EXPLORE if first == "does" and not reading.tags.get("symptom") else None


def infer_lens(reading: Reading) -> Lens:
    """The lens of a review: dependencies when they are the object, else the first that a word names."""
    tags = reading.tags
    if tags.get("deps"):
        return Lens.DEPS
    for lens in _LENS_ORDER:
        if tags.get(lens.value):
            return lens
    return Lens.CODE


def implicit_intake_gate(role: Role, reading: Reading) -> bool:
    """Whether a request is trivial: a short mechanical edit of nothing sensitive, for executor or simplify."""
    return (
        role in (Role.EXECUTOR, Role.SIMPLIFY)
        and reading.tags.get("mechanical", 0) > 0
        and reading.words <= _MAX_TRIVIAL_WORDS
        and not reading.tags.get("sensitive")
    )
