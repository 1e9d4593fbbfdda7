"""What a goal asks for about the tests themselves, read narrowly: by words in one clause, never by guess.

A clause that says what not to do asks for nothing. Removing a feature covers its tests only when the feature's
code went as well; removing a bug, an error or a warning covers none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .tamper_model import TamperFinding, TamperKind

_CLAUSES = re.compile(r"[.;:!?](?=\s|$)|\n|,|\b(?:but|and then|then)\b")
_NOT = re.compile(
    r"\b(not|never|without|don't|do not|doesn't|must not|mustn't|no need to|avoid|rather than|instead of|keep|leave"
    r"|cannot|can't|won't|shouldn't|nor|neither|nicht|ohne|kein\w*|ne pas|sans)\b"
)
_REMOVE = re.compile(
    r"\b(remov\w+|delet\w+|drop|drops|dropping|retir\w+|get rid of|rip out|strip out|discontinu\w+|obsolete|purge"
    r"|entfern\w*|lösch\w*|supprim\w+)\b"
)
_TROUBLE = re.compile(
    r"\b(bugs?|errors?|failures?|warnings?|crash\w*|flak\w+|issues?|problems?|leaks?|duplicat\w+|whitespace|deadlocks?"
    r"|typos?|noise|slowness|regressions?)\b"
)
_TESTS = re.compile(r"\b(tests?|specs?|suites?|test cases?|assertions?)\b")
_FIX = re.compile(
    r"\b(fix\w*|repair\w*|debug\w*|bugs?|broken|failing|wrong\w*|incorrect\w*|crash\w*|regressions?|mend\w*|reparier\w*"
    r"|behebe\w*|fehler\w*)\b"
    r"|\b(tests?|suite|checks?|ci|build|everything|all)\b.*\b(pass|passes|passing|green|fails?|red)\b"
    r"|\b(pass|passes|green)\b.*\b(tests?|suite|checks?)\b"
)
_ABOUT_TESTS = re.compile(
    r"\b(rewrite|refactor|clean ?up|reorgani[sz]e|simplify|improve|restructure|update|adapt|adjust|change|modify"
    r"|correct|replace|merge|split|parametri[sz]e|rework|overhaul)\b[^.;\n]*"
    r"\b(tests?|specs?|suite|assertions?|expectations?"
    r"|expected)\b"
)
_CHANGE = (
    r"\b(updat\w+|regenerat\w+|refresh\w*|rewrit\w+|accept\w*|re-?record\w*|chang\w+|bless|replac\w+|edit\w*"
    r"|adjust\w*)\b"
)
# What a clause has to say for findings of a kind to be asked for.
_ASKED: dict[TamperKind, re.Pattern[str]] = {
    TamperKind.TEST_SKIPPED: re.compile(
        r"\b(skip\w*|disabl\w+|xfail\w*|ignore|quarantin\w+|expected to fail|expected failures?|mark\b.*\bflaky"
        r"|überspring\w*)\b"
    ),
    TamperKind.TEST_FOCUSED: re.compile(r"\b(focus\w*|only run|run only|\.only)\b"),
    TamperKind.SNAPSHOT_CHANGED: re.compile(_CHANGE + r".*\b(snapshots?|golden\w*|goldens|baselines?|approved)\b"),
    TamperKind.TEST_DATA_CHANGED: re.compile(
        _CHANGE
        + r".*\b(fixtures?|golden\w*|test ?data|cassettes?|expected (output|data|results?)|baselines?|samples?)\b"
    ),
    TamperKind.CI_CHANGED: re.compile(
        r"\b(ci|ci/cd|workflows?|github actions?|gitlab|pipelines?|circleci|travis|jenkins\w*|azure pipelines"
        r"|continuous integration|build matrix)\b"
    ),
    TamperKind.COVERAGE_LOWERED: re.compile(
        r"\b(lower\w*|reduc\w+|relax\w*|loosen\w*|drop\w*|decreas\w+|remov\w+|set|exclud\w+|omit\w*)\b.*\b(coverage"
        r"|fail_under|threshold)"
    ),
    TamperKind.CONFIG_CHANGED: re.compile(
        r"\b(pytest\.ini|pytest(?:'s)? (config\w*|options?|settings?)|(jest|vitest|mocha)(?:'s)? config\w*"
        r"|test config\w*|addopts|testpaths|tox(\.ini)?|nox(file)?|conftest(\.py)?"
        r"|(move|migrate|switch|convert)\b.*\b(pytest|jest|vitest"
        r"|mocha|unittest|nose|tests?))"
    ),
    TamperKind.COMMAND_CHANGED: re.compile(
        r"\b(test (script|command|target)|npm test|make test|makefile|justfile|package\.json scripts?|scripts\.test"
        r"|(move|migrate|switch|convert)\b.*\b(pytest|jest|vitest|mocha|unittest|nose|node:test|tests?))"
    ),
    TamperKind.TESTS_HIDDEN: re.compile(r"\bgit ?ignore"),
    TamperKind.SUBJECT_MOCKED: re.compile(r"\b(mock\w*|stub\w*|fake\w*|patch the)\b"),
    TamperKind.RESULT_FORCED: re.compile(r"\b(conftest|pytest (hook|plugin)|deselect\w*|reporter)\b"),
    TamperKind.EXIT_FORCED: re.compile(r"\b(os\._exit|sys\.exit|process\.exit|exit code)"),
    TamperKind.TEST_DETECTED: re.compile(
        r"\b(pytest_current_test|jest_worker_id|under test|detect\w* (the )?tests?"
        r"|when (run|running) (in|under) (pytest|tests?))"
    ),
}
_LOOSEN = re.compile(r"\b(loosen\w*|relax\w*|toleran\w+|weaken\w*|less (strict|brittle)|approximat\w+)\b")
_REMOVED_KINDS = frozenset(
    {
        TamperKind.TEST_FILE_DELETED,
        TamperKind.TEST_DELETED,
        TamperKind.TEST_UNCOLLECTED,
        TamperKind.TEST_CASE_REMOVED,
        TamperKind.ASSERTION_REMOVED,
        TamperKind.SNAPSHOT_CHANGED,
        TamperKind.TEST_DATA_CHANGED,
    }
)
_NAMED_FILE_KINDS = frozenset(
    {
        TamperKind.CI_CHANGED,
        TamperKind.CONFIG_CHANGED,
        TamperKind.COMMAND_CHANGED,
        TamperKind.SNAPSHOT_CHANGED,
        TamperKind.TEST_DATA_CHANGED,
        TamperKind.RUNNER_SHADOWED,
        TamperKind.CHECK_CHANGED,
        TamperKind.TESTS_HIDDEN,
    }
)
_COMMON = frozenset(
    [
        "the",
        "a",
        "an",
        "and",
        "or",
        "of",
        "in",
        "on",
        "for",
        "to",
        "from",
        "with",
        "all",
        "any",
        "its",
        "it",
        "is",
        "that",
        "this",
        "those",
        "these",
        "test",
        "tests",
        "spec",
        "specs",
        "case",
        "cases",
        "code",
        "function",
        "functions",
        "method",
        "methods",
        "class",
        "classes",
        "module",
        "file",
        "files",
        "feature",
        "features",
        "old",
        "legacy",
        "unused",
        "dead",
        "support",
        "py",
        "js",
        "ts",
        "go",
        "rs",
        "src",
        "lib",
        "def",
        "should",
        "when",
        "then",
        "returns",
        "return",
        "get",
        "set",
        "unit",
        "suite",
        "also",
        "now",
        "use",
        "used",
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalReading:
    """What a goal asks for, as far as its words say so."""

    clauses: tuple[str, ...]
    is_fix: bool
    about_tests: bool
    text: str

    def asked(self, finding: TamperFinding, removed: frozenset[str]) -> str:
        """Why the goal asked for what was found; empty when it did not. `removed` are names that the code lost."""
        for clause in self.clauses:
            reason = _asked(finding, clause, removed)
            if reason:
                return f"{reason}: “{clause.strip()[:160]}”"
        return ""

    def names_value(self, new: Iterable[str], old: Iterable[str]) -> bool:
        """Whether the goal itself says a value that an expectation has now and had not before."""
        fresh = {v.strip("'\"`") for v in set(new) - set(old)}
        said = [q for q in re.findall(r"[\"'`“‘]([^\"'`”’]{1,80})[\"'`”’]", self.text) if not any(q in o for o in old)]
        spoken = any(re.search(rf"(?<![\w.-]){re.escape(v)}(?![\w]|\.\d)", self.text) for v in fresh if v)
        return spoken or any(q.strip() and q in v for q in said for v in fresh)


def read_goal(goal: str) -> GoalReading:
    """The goal, read for what it asks about the tests."""
    clauses = tuple(c for c in _CLAUSES.split(goal) if c.strip() and not _NOT.search(c.lower()))
    lowered = goal.lower()
    return GoalReading(
        clauses=clauses,
        is_fix=_FIX.search(lowered) is not None,
        about_tests=any(_ABOUT_TESTS.search(c.lower()) for c in clauses),
        text=goal,
    )


def words_of(names: Iterable[str]) -> frozenset[str]:
    """The words in names, `snake_case`, `camelCase` and paths taken apart, common ones left out."""
    found: set[str] = set()
    for name in names:
        parts = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
        found |= {w.lower() for w in re.findall(r"[^\W_]+", parts)}
    return frozenset(_stem(w) for w in found if w not in _COMMON and len(w) > 1)


def _stem(word: str) -> str:
    for ending in ("ing", "ers", "er", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def _asked(finding: TamperFinding, clause: str, removed: frozenset[str]) -> str:
    lowered = clause.lower()
    if finding.kind in _NAMED_FILE_KINDS and _names_file(finding.file, lowered):
        return f"the goal names {finding.file}"
    pattern = _ASKED.get(finding.kind)
    if pattern is not None and pattern.search(lowered) and _fits(finding, lowered):
        return f"the goal asks for it ({finding.kind})"
    if finding.kind is TamperKind.ASSERTION_WEAKENED and _LOOSEN.search(lowered):
        return "the goal asks for looser assertions"
    if finding.kind in _REMOVED_KINDS:
        return _asked_to_remove(finding, lowered, removed)
    return ""


def _names_file(file: str, clause: str) -> bool:
    name = file.rsplit("/", 1)[-1].lower()
    return file.lower() in clause or ("." in name and re.search(rf"(?<![\w/]){re.escape(name)}\b", clause) is not None)


def _fits(finding: TamperFinding, clause: str) -> bool:
    """Whether a clause that could mean this test does so: it names it, or names none in particular."""
    if finding.kind not in (TamperKind.TEST_SKIPPED, TamperKind.SUBJECT_MOCKED):
        return True
    return bool(words_of(finding.names) & words_of([clause]))


def _asked_to_remove(finding: TamperFinding, clause: str, removed: frozenset[str]) -> str:
    verb = _REMOVE.search(clause)
    if verb is None:
        return ""
    rest = clause[verb.start() :] if verb.group() != "obsolete" else clause
    wanted = words_of([rest[len(verb.group()) :] if verb.group() != "obsolete" else rest])
    shared = words_of(finding.names) & wanted
    if any(n.lower() in clause for n in finding.names if n.lower().startswith("test") and len(n) > 5):
        return "the goal names what is removed"
    if not shared or _TROUBLE.search(rest):
        return ""
    if _TESTS.search(rest):
        return f"the goal removes tests of {', '.join(sorted(shared))}"
    gone = words_of(removed) & shared
    return f"the goal removes {', '.join(sorted(gone))}, and the code is gone" if gone else ""
