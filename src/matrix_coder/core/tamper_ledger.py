"""Two states of a suite held against each other: every assertion of the earlier one has to be somewhere in the later.

Tests are paired by name, then by what their bodies say, so that one that was renamed, moved, split, merged or
parametrized is not taken for a deleted one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from .tamper_model import TOP, Assertion, Case, Mark, Rank, Row, Sheet, TamperFinding, TamperKind, squash
from .tamper_pairing import ALIKE, is_renamed, is_soft, nearest, pair, pattern_of, same, same_words

# Decides whether a changed expectation is an accusation, from the later assertion's literals and the earlier one's.
Expectation = Callable[[frozenset[str], frozenset[str]], bool]


class Ledger:
    """The comparison of all tests of a change. `find()` once."""

    def __init__(
        self,
        before: Sequence[Sheet],
        after: Sequence[Sheet],
        expectation: Expectation,
        renamed: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset()),
    ) -> None:
        self.before = [c for s in before for c in s.cases]
        self.after = [c for s in after for c in s.cases]
        self.sheets = {s.file: s for s in after}
        self.expectation = expectation
        # Names that the code lost and those that it gained: an assertion may follow its subject's new name.
        self.old_names, self.new_names = (pattern_of(names) for names in renamed)
        self.pairs = pair(self.before, self.after)
        self.gained = self._gained()
        self.old_rows = {r.key for c in self.before for r in c.rows}
        self.used: set[int] = set()
        self.findings: list[TamperFinding] = []

    def _gained(self) -> dict[str, list[Assertion]]:
        """The live assertions that a later case has beyond those of its earlier self, by key."""
        earlier = {id(a): b for b, a in self.pairs if a is not None}
        pool: dict[str, list[Assertion]] = {}
        for case in self.after:
            known = Counter(x.key for x in earlier[id(case)].live) if id(case) in earlier else Counter()
            for assertion in case.live:
                if known[assertion.key]:
                    known[assertion.key] -= 1
                elif case.collected or not assertion.lost:
                    pool.setdefault(assertion.key, []).append(assertion)
        return pool

    def find(self) -> list[TamperFinding]:
        """Everything that the later state says less, in the order of the earlier files."""
        for before, after in self.pairs:
            if after is not None:
                self._compare(before, after)
        missing = [b for b, a in self.pairs if a is None and b.collected and not self._covered(b)]
        self._missing(missing)
        self._new()
        return self.findings

    # -- a test that is still there

    def _compare(self, before: Case, after: Case) -> None:
        certain = not before.marks
        if before.collected and not after.collected:
            self._uncollected(before, after)
            return
        if before.collected and after.found < before.found:
            self._uncollected(before, after, certain=False)
        self._marks(before, after)
        self._mocks(before, after)
        if after.empty and not before.empty:
            if not self._covered(before):
                words = f"`{before.name}` has no statement left; it had {_count(before)}"
                self._add(TamperKind.TEST_EMPTIED, after, after.line, after.text, words, certain=certain)
            return
        for lost in self._lost(before, after):
            self._judge(lost, before, after, certain)
        self._rows(before, after, certain)

    def _lost(self, before: Case, after: Case) -> Iterator[Assertion]:
        have = Counter(a.key for a in after.live)
        for assertion in before.live:
            if have[assertion.key]:
                have[assertion.key] -= 1
            elif assertion.rank is not Rank.ALWAYS and not self._take(assertion.key):
                yield assertion

    def _take(self, key: str) -> bool:
        """Whether another test has gained just this assertion; each counts once."""
        for gained in self.gained.get(key, ()):
            if id(gained) not in self.used:
                self.used.add(id(gained))
                return True
        return False

    def _follows(self, lost: Assertion) -> bool:
        """Whether the same is asserted of something that has another name now."""
        wanted = self.old_names.sub("§", lost.key)
        if wanted == lost.key:
            return False
        gained = (a for found in self.gained.values() for a in found)
        return any(self.new_names.sub("§", a.key) == wanted for a in gained)

    def _judge(self, lost: Assertion, before: Case, after: Case, certain: bool) -> None:
        dead = next((a for a in after.assertions if a.lost and a.key == lost.key), None)
        if dead is not None:
            swallowed = dead.lost == "swallowed"
            kind = TamperKind.ASSERTION_SWALLOWED if swallowed else TamperKind.ASSERTION_UNREACHABLE
            words = f"`{after.name}` can't fail on it any more: {dead.lost} by {dead.lost_by}"
            self._add(kind, after, dead.line, dead.text, words, certain=certain, file=dead.file)
            return
        own = [a for a in after.live if a in self.gained.get(a.key, ()) and id(a) not in self.used]
        if any(same(lost, a, after.literals, after.rows) for a in own) or self._carried(lost, after):
            return
        if self._follows(lost) or self._written_out(lost, before) or any(same_words(lost, a) for a in own):
            return
        near = nearest(lost, own)
        if near is None:
            self._removed(lost, before, after, own, certain)
            return
        self.used.add(id(near))
        self._changed(lost, near, before, after, certain)

    def _changed(self, lost: Assertion, now: Assertion, before: Case, after: Case, certain: bool) -> None:
        about = f"`{after.name}`: was `{lost.text}`"
        if now.rank is Rank.NEAR and lost.rank is Rank.NEAR and now.expected == lost.expected:
            if now.tolerance > lost.tolerance * 1.0001:
                words = f"{about}; tolerance widened from {lost.tolerance:g} to {now.tolerance:g}"
                self._add(
                    TamperKind.ASSERTION_WEAKENED, after, now.line, now.text, words, certain=certain, file=now.file
                )
        elif now.rank < lost.rank:
            soft = is_soft(lost, now)
            words = f"{about}; " + ("it is always true now" if now.rank is Rank.ALWAYS else "more passes now")
            self._add(
                TamperKind.ASSERTION_WEAKENED,
                after,
                now.line,
                now.text,
                words,
                certain=certain and not soft,
                file=now.file,
            )
        elif now.rank == lost.rank and not is_renamed(lost, now):
            sure = certain and self.expectation(now.literals, lost.literals)
            self._add(TamperKind.EXPECTATION_CHANGED, after, now.line, now.text, about, certain=sure, file=now.file)

    def _removed(self, lost: Assertion, before: Case, after: Case, own: list[Assertion], certain: bool) -> None:
        sheet = self.sheets.get(after.file)
        if sheet is not None and lost.text and squash(lost.text) in squash(sheet.comments):
            line = _line_in(sheet.comments, lost.text) or after.line
            words = f"`{after.name}`: the assertion is a comment or a string now"
            self._add(TamperKind.ASSERTION_COMMENTED_OUT, after, line, lost.text, words, certain=certain)
            return
        instead = [a for a in own if a.rank >= lost.rank and id(a) not in self.used]
        if instead:
            self.used.add(id(instead[0]))
            sure = certain and self.expectation(instead[0].literals, lost.literals)
            words = f"`{after.name}`: was `{lost.text}`"
            self._add(TamperKind.EXPECTATION_CHANGED, after, instead[0].line, instead[0].text, words, certain=sure)
            return
        words = f"`{before.name}` no longer asserts it"
        self._add(
            TamperKind.ASSERTION_REMOVED,
            before,
            lost.line,
            lost.text,
            words,
            certain=certain,
            gone=True,
            file=lost.file,
        )

    def _rows(self, before: Case, after: Case, certain: bool) -> None:
        kept = Counter(r.key for r in after.rows)
        fresh = [r for r in after.rows if r.key not in {x.key for x in before.rows}]
        for row in before.rows:
            if kept[row.key]:
                kept[row.key] -= 1
            elif self._row_carried(row):
                continue
            elif fresh:
                now = fresh.pop(0)
                sure = certain and self.expectation(now.literals, row.literals)
                words = f"`{after.name}`: was run with `{row.key}`"
                self._add(TamperKind.EXPECTATION_CHANGED, after, now.line, now.key, words, certain=sure)
            else:
                words = f"`{before.name}` is no longer run with `{row.key}`"
                self._add(TamperKind.TEST_CASE_REMOVED, before, row.line, row.key, words, certain=certain, gone=True)

    def _marks(self, before: Case, after: Case) -> None:
        extra = len(after.marks) - len(before.marks)
        known = Counter(m.text for m in before.marks)
        fresh = [m for m in after.marks if not known[m.text]]
        for mark in fresh[: max(0, extra)]:
            self._off(after, mark, certain=mark.certain)

    def _off(self, case: Case, mark: Mark, *, certain: bool) -> None:
        kind = TamperKind.TEST_FOCUSED if mark.kind == "only" else TamperKind.TEST_SKIPPED
        effects = {"xfail": "is expected to fail now", "only": "runs alone now; all others are left out"}
        words = f"`{case.name}` {effects.get(mark.kind, 'does not run any more')}"
        self._add(kind, case, mark.line, mark.text, words, certain=certain)

    def _mocks(self, before: Case, after: Case) -> None:
        known = {m.name for m in before.mocks}
        subjects = {c for a in before.live for c in a.callees}
        for mock in after.mocks:
            if mock.name in subjects and mock.name not in known:
                words = f"`{after.name}` asserts about `{mock.name}` and puts something else in its place"
                self._add(TamperKind.SUBJECT_MOCKED, after, mock.line, mock.text, words)

    # -- a test that is gone

    def _covered(self, case: Case) -> bool:
        """Whether all that the test asserted is asserted elsewhere now."""
        if not case.live:
            rest = sum((c.body for c in self.after if c.collected), Counter[str]())
            return not case.body or sum((case.body & rest).values()) >= ALIKE * sum(case.body.values())
        return all(a.rank is Rank.ALWAYS or self._kept(a, case) for a in case.live) and all(
            self._row_carried(r) for r in case.rows
        )

    def _kept(self, lost: Assertion, case: Case) -> bool:
        return self._carried(lost, None) or self._take(lost.key) or self._follows(lost) or self._written_out(lost, case)

    def _written_out(self, lost: Assertion, case: Case) -> bool:
        """Whether what was asserted of a row's values is asserted of values that stand in the test itself."""
        gained = (a for found in self.gained.values() for a in found)
        return bool(case.rows) and any(a.shape == lost.shape and a.rank >= lost.rank for a in gained)

    def _carried(self, lost: Assertion, own: Case | None) -> bool:
        """Whether a later test has come to make the same assertion with values that it is given from elsewhere."""
        for case in self.after:
            near = case.literals | (own.literals if own is not None else frozenset())
            rows = [r for r in case.rows if r.key not in self.old_rows]
            for assertion in case.live:
                fresh = assertion in self.gained.get(assertion.key, ())
                if (fresh or rows or not case.collected or case.name == TOP) and same(
                    lost, assertion, near if fresh or not rows else frozenset(), rows, strictly=True
                ):
                    return True
        return False

    def _row_carried(self, row: Row) -> bool:
        rows = any(row.key == r.key for c in self.after for r in c.rows)
        return rows or (
            bool(row.literals) and any(row.literals <= a.literals for found in self.gained.values() for a in found)
        )

    def _uncollected(self, before: Case, after: Case, *, certain: bool = True) -> None:
        words = f"`{before.name}` of {before.file} stands here as `{after.name}`, which the runner does not collect"
        self._add(
            TamperKind.TEST_UNCOLLECTED, after, after.line, after.text, words, certain=certain and not before.marks
        )

    def _missing(self, cases: list[Case]) -> None:
        by_file: dict[str, list[Case]] = {}
        for case in cases:
            by_file.setdefault(case.file, []).append(case)
        for file, lost in by_file.items():
            if file not in self.sheets:
                names = ", ".join(c.name for c in lost[:5]) + (f" and {len(lost) - 5} more" if len(lost) > 5 else "")
                words = f"{len(lost)} test{'s' * (len(lost) != 1)} gone: {names}"
                self._deleted(TamperKind.TEST_FILE_DELETED, lost[0], words, lost)
                continue
            for case in lost:
                inside = squash(case.text) in squash(self.sheets[file].comments)
                words = f"`{case.name}` is " + ("a comment or a string now" if inside else f"gone with {_count(case)}")
                self._deleted(TamperKind.TEST_DELETED, case, words, [case])

    def _deleted(self, kind: TamperKind, case: Case, words: str, cases: Sequence[Case]) -> None:
        self.findings.append(
            TamperFinding(
                kind=kind,
                file=case.file,
                line=case.line,
                text=case.text,
                detail=words,
                certain=any(not c.marks for c in cases),
                gone=True,
                names=frozenset(n for c in cases for n in _names(c)),
            )
        )

    def _new(self) -> None:
        """Tests that are new and switched off: nobody loses anything, but they say nothing either."""
        paired = {id(a) for _, a in self.pairs if a is not None}
        for case in self.after:
            if id(case) not in paired and case.collected:
                for mark in case.marks:
                    self._off(case, mark, certain=mark.kind == "only")

    def _add(
        self,
        kind: TamperKind,
        case: Case,
        line: int,
        text: str,
        detail: str,
        *,
        certain: bool = True,
        gone: bool = False,
        file: str = "",
    ) -> None:
        found = TamperFinding(
            kind=kind,
            file=file or case.file,
            line=line,
            text=text,
            detail=detail,
            certain=certain,
            gone=gone,
            names=_names(case),
        )
        if not any((f.kind, f.file, f.line, f.text) == (kind, found.file, line, text) for f in self.findings):
            self.findings.append(found)


def _names(case: Case) -> frozenset[str]:
    parts = case.name.replace("::", " ").split()
    called = {c for a in case.assertions for c in a.callees}
    return frozenset({*parts, case.file, *called})


def _count(case: Case) -> str:
    number = len(case.live)
    return f"{number} assertion{'s' * (number != 1)}"


def _line_in(text: str, wanted: str) -> int:
    """Comments keep their line numbers as `N:` prefixes; the one that holds this text, or 0."""
    for line in text.splitlines():
        number, _, words = line.partition("\t")
        if number.isdigit() and squash(wanted) in squash(words):
            return int(number)
    return 0
