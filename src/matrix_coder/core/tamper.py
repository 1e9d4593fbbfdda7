"""The guard against gamed tests: what a change did to the tests themselves, and what of it nobody asked for.

Two states of a tree go in as texts; nothing is run. A `certain` finding is meant as an accusation and so has to
hold for every honest reader of the change; what may have a good reason is reported as not certain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from . import tamper_files as files
from .tamper_code import code_findings
from .tamper_config import config_findings
from .tamper_files import Collection
from .tamper_goal import GoalReading, read_goal
from .tamper_ledger import Ledger
from .tamper_model import Change, Sheet, TamperFinding, TamperKind, line_at, text_of
from .tamper_native import read_go, read_rust
from .tamper_options import read_options
from .tamper_python import read_python, scope_of
from .tamper_pywalk import Scope
from .tamper_script import read_script

__all__ = ["Exemption", "TamperFinding", "TamperKind", "TamperReport", "examine", "find_tampering"]

_DEFINITION = re.compile(
    r"^\s*(?:export\s+)?(?:default\s+)?(?:pub(?:\([^)]*\))?\s+)?(?:async\s+)?"
    r"(?:def|class|function\*?|func(?:\s*\([^)]*\))?|fn|struct|enum|trait|interface|type|const|let|var)\s+(\w+)",
    re.M,
)
# What a file of tests looks like, whatever its name.
_TEST_LIKE = {
    "python": re.compile(rb"^\s*(async )?def test", re.M),
    "script": re.compile(rb"^\s*(it|test|describe)(\.\w+)*\(\s*['\"`]", re.M),
}
_NEVER = re.compile(rb"(?!)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemption:
    """A finding that is none, since the goal asked for it in these words."""

    finding: TamperFinding
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TamperReport:
    """What was found and not asked for, worst first, and what the goal asked for."""

    findings: tuple[TamperFinding, ...] = ()
    exempted: tuple[Exemption, ...] = ()

    @property
    def certain(self) -> tuple[TamperFinding, ...]:
        """The findings that are accusations."""
        return tuple(f for f in self.findings if f.certain)


def find_tampering(
    before: Mapping[str, bytes], after: Mapping[str, bytes], *, goal: str, checks: tuple[str, ...] = ()
) -> tuple[TamperFinding, ...]:
    """What the change did to the tests without being asked, worst first; `examine` tells the exemptions too."""
    return examine(before, after, goal=goal, checks=checks).findings


def examine(
    before: Mapping[str, bytes], after: Mapping[str, bytes], *, goal: str, checks: tuple[str, ...] = ()
) -> TamperReport:
    """What the change did to the tests, parted by whether `goal` asked for it.

    The mappings hold the files that changed, by path from the root, and may hold others that are the same in
    both: configuration that says what is a test, and tests that a changed helper serves.
    """
    change = Change(before=before, after=after, goal=goal, checks=checks)
    reading = read_goal(goal)
    removed = _removed_names(change)
    findings: list[TamperFinding] = []
    exempted: list[Exemption] = []
    for finding in _unique(_all(change, reading)):
        reason = reading.asked(finding, removed)
        if reason:
            exempted.append(Exemption(finding=finding, reason=reason))
        else:
            findings.append(finding)
    findings.sort(key=lambda f: not f.certain)
    return TamperReport(findings=tuple(findings), exempted=tuple(exempted))


def _all(change: Change, reading: GoalReading) -> Iterator[TamperFinding]:
    yield from _tests(change, reading)
    yield from _data(change, reading)
    yield from config_findings(change)
    yield from code_findings(change)


def _unique(found: Iterator[TamperFinding]) -> list[TamperFinding]:
    places: dict[tuple[str, str, int, str], TamperFinding] = {}
    for finding in found:
        places.setdefault((finding.kind, finding.file, finding.line, finding.text), finding)
    return list(places.values())


# -- tests


def _tests(change: Change, reading: GoalReading) -> Iterator[TamperFinding]:
    old_rules, rules = (read_options(t).collection() for t in (change.before, change.after))
    relevant = _relevant(change, rules)
    before = read_sheets({p: d for p, d in change.before.items() if p in relevant}, old_rules)
    after = [*read_sheets({p: d for p, d in change.after.items() if p in relevant}, rules), *_strays(change, rules)]

    def sure(new: frozenset[str], old: frozenset[str]) -> bool:
        return _expectation(change, reading) and not reading.names_value(new, old)

    yield from Ledger(before, after, sure, (_removed_names(change), _added_names(change))).find()
    yield from _sheet_marks(before, after)
    yield from _stand_ins(change, before, after)


def _relevant(change: Change, rules: Collection) -> frozenset[str]:
    """The files to read: those that changed, and those that assert through a helper that did."""
    changed = set(change.changed())
    helpers = [
        re.escape(p.rsplit("/", 1)[-1].removesuffix(".py"))
        for p in changed
        if p in change.before and p.endswith(".py") and files.is_test_side(p) and not files.found(p, rules)
    ]
    if not helpers:
        return frozenset(changed)
    pattern = re.compile(rf"^\s*(?:from|import)\b.*\b(?:{'|'.join(helpers)})\b".encode(), re.M)
    return frozenset(changed | {p for p, d in change.after.items() if pattern.search(d)})


def read_sheets(tree: Mapping[str, bytes], rules: Collection) -> list[Sheet]:
    """Every file of a tree that holds tests or stands beside them, read."""
    texts = {p: text_of(d) for p, d in sorted(tree.items()) if files.language(p) and _may_test(p, d, rules)}
    python = (scope_of(p, t) for p, t in texts.items() if files.language(p) == "python")
    shared = {s.file.rsplit("/", 1)[-1].removesuffix(".py"): s for s in python if s is not None and s.helpers}
    return [_read(path, text, rules, shared) for path, text in texts.items()]


def _read(path: str, text: str, rules: Collection, shared: Mapping[str, Scope]) -> Sheet:
    kind = files.language(path)
    if kind == "python":
        return read_python(path, text, rules, shared)
    if kind == "script":
        return read_script(path, text, rules)
    return read_go(path, text, rules) if kind == "go" else read_rust(path, text, rules)


def _may_test(path: str, data: bytes, rules: Collection) -> bool:
    """Whether a file has to be read: it stands beside the tests, or holds tests among its code as Rust does."""
    return files.is_test_side(path, rules) or (files.language(path) == "rust" and b"test" in data)


def _strays(change: Change, rules: Collection) -> list[Sheet]:
    """Files that are new, are no tests by their place or name, and yet hold tests: nobody runs those."""
    found = []
    for path, data in change.after.items():
        stray = path not in change.before and not _may_test(path, data, rules)
        if stray and _TEST_LIKE.get(files.language(path), _NEVER).search(data):
            found.append(_read(path, text_of(data), rules, {}))
    return [replace(s, cases=tuple(c for c in s.cases if c.assertions)) for s in found]


def _expectation(change: Change, reading: GoalReading) -> bool:
    """Whether a changed expectation is an accusation: the goal is to mend, or nothing but tests was touched."""
    touched = any(files.is_source(p) for p in change.changed())
    return not reading.about_tests and (reading.is_fix or not touched)


def _sheet_marks(before: list[Sheet], after: list[Sheet]) -> Iterator[TamperFinding]:
    earlier = {s.file: s for s in before}
    for sheet in after:
        old = earlier.get(sheet.file)
        known = [m.text for m in old.marks] if old else []
        for mark in sheet.marks:
            if mark.text not in known and len(sheet.marks) > len(known):
                yield TamperFinding(
                    kind=TamperKind.TEST_SKIPPED,
                    file=sheet.file,
                    line=mark.line,
                    text=mark.text,
                    detail="tests of the whole file are left out",
                    certain=(mark.certain and old is not None) or sheet.file.endswith("conftest.py"),
                    names=frozenset({sheet.file}),
                )


def _stand_ins(change: Change, before: list[Sheet], after: list[Sheet]) -> Iterator[TamperFinding]:
    """Names that tests assert about and that a test file, a fixture or a conftest puts something else behind."""
    earlier = {s.file: s for s in before}
    subjects = {n for s in before for c in s.cases if c.collected for a in c.live for n in a.callees}
    for sheet in after:
        old = earlier.get(sheet.file, Sheet(file=sheet.file))
        known = {m.name for m in (*old.mocks, *(m for c in old.cases for m in c.mocks))}
        fresh = [*sheet.mocks, *(m for c in sheet.cases if not c.collected for m in c.mocks)]
        for mark in fresh:
            if mark.name not in known and (mark.name in subjects or _is_asserted(mark.name, change)):
                yield _stand_in(sheet.file, mark.name, mark.line, mark.text)
        for name, line in sheet.defines.items():
            if name in old.imports and name not in sheet.imports and name in subjects:
                yield _stand_in(sheet.file, name, line, "")


def _is_asserted(name: str, change: Change) -> bool:
    """Whether a test that did not change has the call of this name in a line that asserts."""
    if not name.isidentifier():
        return False
    pattern = re.compile(rf"\b(?:assert|expect)\w*[ (.][^\n]*\b{name}\(".encode())
    same = (d for p, d in change.before.items() if change.after.get(p) == d and files.is_test_side(p))
    return any(pattern.search(d) for d in same)


def _stand_in(file: str, name: str, line: int, text: str) -> TamperFinding:
    return TamperFinding(
        kind=TamperKind.SUBJECT_MOCKED,
        file=file,
        line=line,
        text=text,
        detail=f"tests assert about `{name}`, and something else stands in its place here",
        names=frozenset({name, file}),
    )


# -- data


def _data(change: Change, reading: GoalReading) -> Iterator[TamperFinding]:
    for path in change.changed():
        snapshot = files.is_snapshot(path)
        if path not in change.before or not (snapshot or files.is_test_data(path)):
            continue
        line, text = _first_lost(change, path)
        if not line:
            continue
        gone = path not in change.after
        kind = TamperKind.SNAPSHOT_CHANGED if snapshot else TamperKind.TEST_DATA_CHANGED
        yield TamperFinding(
            kind=kind,
            file=path,
            line=line,
            text=text,
            detail="it is gone" if gone else "what the tests compare with is another thing now",
            certain=_expectation(change, reading) and not _said(change, reading, path),
            gone=gone,
            names=frozenset({path}),
        )


def _said(change: Change, reading: GoalReading, path: str) -> bool:
    old, new = text_of(change.before.get(path)), text_of(change.after.get(path))
    return reading.names_value(new.splitlines(), old.splitlines())


def _first_lost(change: Change, path: str) -> tuple[int, str]:
    """Where a file first says something else than it did; (0, "") when it only grew."""
    old, new = change.before[path], change.after.get(path)
    if new is None:
        return 1, line_at(text_of(old), 1)
    before, after = text_of(old).splitlines(), text_of(new).splitlines()
    if not set(before) - set(after) and len(after) >= len(before):
        return 0, ""
    place = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after)) - 1
    )
    number = max(1, min(place + 1, len(after)))
    return number, line_at(text_of(new), number)


def _removed_names(change: Change) -> frozenset[str]:
    """The names that code other than tests defined and defines no more anywhere in the change."""
    return frozenset(_defined(change.before) - _defined(change.after))


def _added_names(change: Change) -> frozenset[str]:
    return frozenset(_defined(change.after) - _defined(change.before))


def _defined(tree: Mapping[str, bytes]) -> set[str]:
    names: set[str] = set()
    for path, data in tree.items():
        if files.is_source(path):
            names |= set(_DEFINITION.findall(text_of(data)))
            names.add(path.rsplit("/", 1)[-1].rsplit(".", 1)[0])
    return names
