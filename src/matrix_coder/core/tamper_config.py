"""What changed about how tests are chosen, started and judged: options, commands, coverage, CI, hidden files."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from . import tamper_files as files
from .tamper_commands import (
    FORCED,
    MAKE_NAMES,
    SCRIPT_NARROWED,
    as_number,
    build_findings,
    command_findings,
    found_at,
    fresh_lines,
    is_test_script,
    lost_lines,
    make_findings,
    matching_lines,
    package_findings,
    threshold_findings,
)
from .tamper_model import Change, TamperFinding, TamperKind
from .tamper_options import CONFIG_FILES, Options, narrowing, option_line, read_options

_SCRIPT_CONFIG = re.compile(
    r"^(jest|vitest|vite|vitest\.workspace|karma|playwright|cypress|ava|nyc|c8)(\.[\w-]+)?\.config\.[cm]?[jt]sx?$"
    r"|^(jest\.config\.json|\.mocharc(\.[a-z]+)?|\.nycrc(\.[a-z]+)?|\.c8rc(\.json)?|\.taprc|karma\.conf\.js)$"
)
_PROBES = (
    "test_x.py",
    "tests/test_x.py",
    "x_test.go",
    "x.test.js",
    "x.spec.ts",
    "src/x.test.ts",
    "__tests__/x.js",
    "conftest.py",
    "pytest.ini",
    "sitecustomize.py",
    "usercustomize.py",
    "jest.config.js",
)


def config_findings(change: Change) -> Iterator[TamperFinding]:
    """Everything that changed about the choice and the judgement of tests."""
    changed = change.changed()
    if any(p in CONFIG_FILES for p in changed):
        before, after = read_options(change.before), read_options(change.after)
        yield from _pytest_options(change, before, after)
        yield from _coverage_options(change, before, after)
    for path in changed:
        name = PurePosixPath(path).name
        if files.is_ci(path):
            yield from _ci(change, path)
        elif name == "package.json":
            yield from package_findings(change, path)
        elif _SCRIPT_CONFIG.match(name):
            yield from matching_lines(change, path, SCRIPT_NARROWED, TamperKind.CONFIG_CHANGED)
            yield from threshold_findings(change, path)
        elif name in ("tox.ini", "noxfile.py"):
            yield from command_findings(change, path)
        elif name in MAKE_NAMES:
            yield from make_findings(change, path)
        elif name in (".gitignore", ".ignore", ".dockerignore"):
            yield from _hidden(change, path)
        elif name in ("Cargo.toml", "go.mod", "go.work", "config.toml"):
            yield from build_findings(change, path)
        elif PurePosixPath(path).suffix in (".sh", ".bash", "") and is_test_script(path):
            yield from command_findings(change, path)
    yield from _checks(change, changed)


# -- pytest and coverage.py


def _pytest_options(change: Change, before: Options, after: Options) -> Iterator[TamperFinding]:
    had, has = Counter(narrowing(before.words("addopts"))), Counter(narrowing(after.words("addopts")))
    for option in has - had:
        value = option.split(" ", 1)[-1]
        yield _option(change, after.file, f"pytest runs with `{option}` now", value, option.split()[0], "addopts")
    yield from _collection(change, before, after)
    for word in ("error", "-W error", "--strict-markers", "--strict"):
        flags = before.values.get("filterwarnings", "") + " " + before.values.get("addopts", "")
        now = after.values.get("filterwarnings", "") + " " + after.values.get("addopts", "")
        if re.search(rf"(^|\s){re.escape(word)}(\s|$)", flags) and not re.search(
            rf"(^|\s){re.escape(word)}(\s|$)", now
        ):
            yield _option(
                change,
                after.file or before.file,
                f"pytest no longer runs with `{word}`",
                "filterwarnings",
                "addopts",
                certain=False,
            )
    strict = before.values.get("xfail_strict", "").lower() == "true"
    if strict and after.values.get("xfail_strict", "").lower() != "true":
        yield _option(
            change, after.file or before.file, "an expected failure that passes is no failure any more", "xfail_strict"
        )


def _collection(change: Change, before: Options, after: Options) -> Iterator[TamperFinding]:
    old, new = before.collection(), after.collection()
    if old == new:
        return
    known = [p for p in change.before if files.language(p) == "python"]
    lost = sorted(p for p in known if files.found(p, old) and not files.found(p, new))
    names = ("testpaths", "python_files", "python_functions", "python_classes", "norecursedirs")
    touched = [n for n in names if before.values.get(n) != after.values.get(n)]
    narrower = _is_narrower(old, new)
    if touched and (lost or narrower):
        what = f"{', '.join(lost[:3])} is outside now" if lost else "fewer names are taken for tests"
        words = f"`{', '.join(touched)}` changed: {what}"
        yield _option(change, after.file or before.file, words, *touched, certain=bool(lost) or _dropped(old, new))


def _is_narrower(old: files.Collection, new: files.Collection) -> bool:
    return _dropped(old, new) or (not old.testpaths and bool(new.testpaths))


def _dropped(old: files.Collection, new: files.Collection) -> bool:
    kinds = (
        (old.testpaths, new.testpaths),
        (old.files, new.files),
        (old.functions, new.functions),
        (old.classes, new.classes),
    )
    return any(new_values and set(old_values) - set(new_values) for old_values, new_values in kinds)


def _option(
    change: Change,
    file: str,
    detail: str,
    *wanted: str,
    certain: bool = True,
    kind: TamperKind = TamperKind.CONFIG_CHANGED,
) -> TamperFinding:
    mark = option_line(change.after if file in change.after else change.before, file, *wanted)
    return TamperFinding(kind=kind, file=file, line=mark.line, text=mark.text, detail=detail, certain=certain)


def _coverage_options(change: Change, before: Options, after: Options) -> Iterator[TamperFinding]:
    file = after.coverage_file or before.coverage_file
    for old, new, where in (
        (before.coverage.get("fail_under"), after.coverage.get("fail_under"), file),
        (_fail_under(before), _fail_under(after), after.file or before.file),
    ):
        if old is not None and as_number(new) < as_number(old):
            words = f"coverage has to reach {new or 'nothing'} instead of {old}"
            yield _option(change, where, words, "fail_under", "fail-under", kind=TamperKind.COVERAGE_LOWERED)
    for name in ("omit", "exclude_lines", "exclude_also", "partial_branches"):
        more = set(after.coverage.get(name, "").split("\n")) - set(before.coverage.get(name, "").split("\n")) - {""}
        if more:
            words = f"coverage leaves out more: {', '.join(sorted(more))}"
            bound = before.coverage.get("fail_under") is not None
            yield _option(change, file, words, *sorted(more), name, kind=TamperKind.COVERAGE_LOWERED, certain=bound)


def _fail_under(options: Options) -> str | None:
    found = re.search(r"--cov-fail-under[= ](\S+)", options.values.get("addopts", ""))
    return found.group(1) if found else None


# -- CI, hidden files, the checks themselves


def _ci(change: Change, path: str) -> Iterator[TamperFinding]:
    fresh, lost = fresh_lines(change, path), lost_lines(change, path)
    if path not in change.after:
        yield found_at(TamperKind.CI_CHANGED, path, *(lost[0] if lost else (1, "")), "the CI file is gone", gone=True)
    elif fresh and path not in change.before:
        yield found_at(TamperKind.CI_CHANGED, path, *fresh[0], "the CI file is new", certain=False)
    elif fresh:
        forced = next((f for f in fresh if FORCED.search(f[1])), fresh[0])
        yield found_at(TamperKind.CI_CHANGED, path, *forced, "what CI does is changed")
    elif lost:
        yield found_at(TamperKind.CI_CHANGED, path, *lost[0], "this is gone from what CI does", gone=True)


def _hidden(change: Change, path: str) -> Iterator[TamperFinding]:
    if PurePosixPath(path).name == ".dockerignore":
        return
    known = [p for p in {*change.before, *change.after} if files.is_test_side(p)]
    for number, text in fresh_lines(change, path):
        pattern = text.lstrip("/").rstrip("/")
        if text.startswith("!") or not pattern:
            continue
        hit = next((p for p in (*known, *_PROBES) if _ignores(pattern, p)), "")
        if hit:
            yield found_at(
                TamperKind.TESTS_HIDDEN,
                path,
                number,
                text,
                f"files such as {hit} are hidden from the record",
                certain=pattern != "*",
            )


def _ignores(pattern: str, path: str) -> bool:
    pure = PurePosixPath(path)
    if "/" in pattern:
        return fnmatchcase(path, pattern) or fnmatchcase(path, f"{pattern}/*")
    return any(fnmatchcase(part, pattern) for part in pure.parts)


def _checks(change: Change, changed: tuple[str, ...]) -> Iterator[TamperFinding]:
    """Files that a check command names and that are no tests: whoever edits them writes their own verdict."""
    words = {w.removeprefix("./") for c in change.checks for w in re.split(r"[\s;&|()'\"=]+", c)}
    for path in changed:
        if path not in words or path not in change.before or files.is_test_side(path) or files.is_source(path):
            continue
        fresh, lost = fresh_lines(change, path), lost_lines(change, path)
        if fresh or lost:
            line, text = (fresh or lost)[0]
            yield found_at(TamperKind.CHECK_CHANGED, path, line, text, "the check itself was changed", gone=not fresh)
