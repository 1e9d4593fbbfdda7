"""Which earlier test is which later one, and which earlier assertion is which later one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from .tamper_model import Assertion, Case, Rank, Row

ALIKE = 0.6
# The same for tests of one file, names and bodies taken together.
_NEARBY = 0.4
_SHORT = 48


def pair(before: Sequence[Case], after: Sequence[Case]) -> list[tuple[Case, Case | None]]:
    """Each earlier case with its later self: same place, same name elsewhere, or the likest body."""
    places = {(c.file, c.name): c for c in after}
    result: dict[int, Case | None] = {id(b): places.get((b.file, b.name)) for b in before}
    taken = {id(a) for a in result.values() if a is not None}
    names: dict[str, list[Case]] = {}
    for case in after:
        if id(case) not in taken:
            names.setdefault(case.name.rsplit("::", 1)[-1], []).append(case)
    rest = [b for b in before if result[id(b)] is None and b.collected]
    for found, least in (
        (_by_name(rest, names), ALIKE),
        (_by_body(rest, after), ALIKE),
        (_nearby(rest, after), _NEARBY),
    ):
        for likeness, b, a in sorted(found, key=lambda f: -f[0]):
            if likeness >= least and result[id(b)] is None and id(a) not in taken:
                result[id(b)] = a
                taken.add(id(a))
    return [(b, result[id(b)]) for b in before]


def _by_name(rest: Sequence[Case], names: Mapping[str, list[Case]]) -> Iterator[tuple[float, Case, Case]]:
    for b in rest:
        for a in names.get(b.name.rsplit("::", 1)[-1], ()):
            yield max(alike(b, a), ALIKE if len(names[b.name.rsplit("::", 1)[-1]]) == 1 else 0.0), b, a


def _by_body(rest: Sequence[Case], after: Sequence[Case]) -> Iterator[tuple[float, Case, Case]]:
    if len(rest) * len(after) > 250_000:
        return
    for b in rest:
        for a in after:
            if a.language == b.language:
                yield alike(b, a), b, a


def _nearby(rest: Sequence[Case], after: Sequence[Case]) -> Iterator[tuple[float, Case, Case]]:
    """Tests of one file whose names and bodies both have something in common."""
    for b in rest:
        for a in after:
            if a.file == b.file and a.collected:
                one, other = (set(re.findall(r"[a-z0-9]+", c.name.lower())) for c in (b, a))
                yield (alike(b, a) + len(one & other) / max(len(one | other), 1)) / 2, b, a


def alike(one: Case, other: Case) -> float:
    """How much of the two bodies is the same, from 0 to 1."""
    size = max(sum(one.body.values()), sum(other.body.values()))
    return sum((one.body & other.body).values()) / size if size else 0.0


def pattern_of(names: frozenset[str]) -> re.Pattern[str]:
    words = "|".join(re.escape(n) for n in sorted(names)[:200])
    return re.compile(rf"\b(?:{words})\b" if words else r"(?!)")


def same(lost: Assertion, now: Assertion, near: frozenset[str], rows: Sequence[Row], *, strictly: bool = False) -> bool:
    """Whether `now` says what `lost` said, with other names or with its values given from outside."""
    if now.rank < lost.rank or now.tolerance > lost.tolerance * 1.0001:
        return False
    if now.frame == lost.frame and not strictly:
        return True
    if now.shape != lost.shape or len(now.literals) >= len(lost.literals):
        return False
    missing = lost.literals - now.literals
    return missing <= near or any(missing <= r.literals | near for r in rows)


def same_words(lost: Assertion, now: Assertion) -> bool:
    """Whether the assertion stands as it stood, over a preparation that is too long to be held against it."""
    return lost.text == now.text and now.rank >= lost.rank and max(len(lost.key), len(now.key)) > _SHORT


def nearest(lost: Assertion, own: Sequence[Assertion]) -> Assertion | None:
    """The later assertion of the same test that took this one's place, if one did."""
    scored = [(_kinship(lost, a), -abs(a.line - lost.line), i) for i, a in enumerate(own)]
    best = max(scored, default=None)
    return own[best[2]] if best is not None and best[0] > 0 else None


def _kinship(lost: Assertion, now: Assertion) -> int:
    same_subject = lost.subject == now.subject
    about = bool(lost.callees & now.callees)
    expected = bool(lost.expected) and lost.expected == now.expected
    mentions = bool(lost.subject) and lost.subject in now.key
    trivial = now.rank is Rank.ALWAYS
    return 8 * same_subject + 4 * mentions + 3 * about + 2 * expected + trivial


def is_renamed(lost: Assertion, now: Assertion) -> bool:
    """Whether the same values are expected of something with another name."""
    return lost.expected == now.expected and lost.literals == now.literals and lost.subject != now.subject


def is_soft(lost: Assertion, now: Assertion) -> bool:
    """Whether a weaker form is also good style: emptiness by truth, floating-point numbers by nearness."""
    empty = lost.expected in ("[]", "{}", "''", "()", "0", "set()", '""') and now.rank is Rank.SOME
    floating = now.rank is Rank.NEAR and now.tolerance <= 1e-5 and "." in lost.expected
    return empty or floating
