"""What the guard against gamed tests compares and what it says: tests, their assertions, findings. Pure data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from functools import lru_cache

# The name of what a file asserts outside its tests.
TOP = "(top level)"


class TamperKind(StrEnum):
    """The ways in which a suite can be made green without the code becoming right."""

    TEST_FILE_DELETED = "test file deleted"
    TEST_DELETED = "test deleted"
    TEST_UNCOLLECTED = "test no longer collected"
    TEST_SKIPPED = "test skipped"
    TEST_FOCUSED = "tests focused"
    TEST_EMPTIED = "test emptied"
    TEST_CASE_REMOVED = "test case removed"
    ASSERTION_REMOVED = "assertion removed"
    ASSERTION_COMMENTED_OUT = "assertion commented out"
    ASSERTION_WEAKENED = "assertion weakened"
    ASSERTION_SWALLOWED = "assertion swallowed"
    ASSERTION_UNREACHABLE = "assertion unreachable"
    EXPECTATION_CHANGED = "expectation changed"
    SUBJECT_MOCKED = "code under test replaced"
    SNAPSHOT_CHANGED = "snapshot changed"
    TEST_DATA_CHANGED = "test data changed"
    RESULT_FORCED = "result forced"
    EXIT_FORCED = "exit forced"
    CONFIG_CHANGED = "test configuration changed"
    COMMAND_CHANGED = "test command changed"
    CHECK_CHANGED = "check changed"
    COVERAGE_LOWERED = "coverage lowered"
    CI_CHANGED = "CI changed"
    RUNNER_SHADOWED = "runner shadowed"
    TESTS_HIDDEN = "tests hidden"
    TEST_DETECTED = "test run detected"


@dataclass(frozen=True, slots=True, kw_only=True)
class TamperFinding:
    """One change that makes the tests say less than they did.

    `line` counts from 1 in the later text of `file`, or in the earlier one where what it names is gone
    (`gone`). `text` is that line. Only a `certain` finding is an accusation; others are worth a look.
    """

    kind: TamperKind
    file: str
    line: int
    text: str
    detail: str
    certain: bool = True
    gone: bool = False
    # The names that the finding is about; what the goal says is held against them.
    names: frozenset[str] = frozenset()

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" + (" (before)" if self.gone else "")
        return f"{where} {self.kind}: {self.detail}"


class Rank(IntEnum):
    """How much an assertion says. Of two about the same thing, the lower one lets more pass."""

    ALWAYS = 0
    ANYTHING = 1
    SOME = 2
    NEAR = 3
    EXACT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """One assertion in a form that survives reformatting, local variables and a change of style.

    Two with equal `key` say the same. `shape` is the key with its literals and variables blanked,
    `frame` with its variables alone, `tolerance` the width of an approximate one. `lost` says why it
    can't fail any more: `swallowed` or `unreachable`, and by what.
    """

    key: str
    rank: Rank
    subject: str
    expected: str
    shape: str
    frame: str
    line: int
    text: str
    file: str = ""
    callees: frozenset[str] = frozenset()
    literals: frozenset[str] = frozenset()
    tolerance: float = 0.0
    lost: str = ""
    lost_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A place in a file that keeps a test from running, from failing, or from meeting the real code."""

    kind: str
    line: int
    text: str
    name: str = ""
    certain: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One set of values that a test is run with."""

    key: str
    line: int
    literals: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One test, or one helper of tests (`collected` is false then)."""

    file: str
    name: str
    line: int
    text: str
    collected: bool = True
    assertions: tuple[Assertion, ...] = ()
    marks: tuple[Mark, ...] = ()
    mocks: tuple[Mark, ...] = ()
    rows: tuple[Row, ...] = ()
    body: Counter[str] = field(default_factory=Counter)
    empty: bool = False
    literals: frozenset[str] = frozenset()
    language: str = ""
    # How surely a runner finds the file by its name: 2 by its name, 1 by its directory alone, 0 not at all.
    found: int = 2

    @property
    def live(self) -> tuple[Assertion, ...]:
        """The assertions that can still fail."""
        return tuple(a for a in self.assertions if not a.lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """What one file says: its tests, what stands at its top level, its comments."""

    file: str
    cases: tuple[Case, ...] = ()
    # Marks of the file as a whole, not of one test.
    marks: tuple[Mark, ...] = ()
    # Each line of a comment or of a loose string, as its number, a tab and its text.
    comments: str = ""
    # Names that the top level imports, and those that it defines with their lines.
    imports: frozenset[str] = frozenset()
    defines: Mapping[str, int] = field(default_factory=dict)
    mocks: tuple[Mark, ...] = ()
    readable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Both states of everything that changed, with what else is needed to judge it."""

    before: Mapping[str, bytes]
    after: Mapping[str, bytes]
    goal: str = ""
    checks: tuple[str, ...] = ()

    def changed(self) -> tuple[str, ...]:
        """The paths whose bytes differ, sorted."""
        paths = set(self.before) | set(self.after)
        return tuple(sorted(p for p in paths if self.before.get(p) != self.after.get(p)))


def text_of(data: bytes | None) -> str:
    """A file's text; what isn't UTF-8 in it becomes replacement characters."""
    return (data or b"").decode("utf-8-sig", "replace")


def line_at(text: str, line: int) -> str:
    """The line with this number, stripped and cut to what a report can show."""
    lines = _lines(text)
    return lines[line - 1].strip()[:200] if 0 < line <= len(lines) else ""


@lru_cache(maxsize=32)
def _lines(text: str) -> tuple[str, ...]:
    return tuple(text.splitlines())


def squash(text: str) -> str:
    """The text without white space and without the quotes' style."""
    return "".join(text.split()).replace("'", '"')
