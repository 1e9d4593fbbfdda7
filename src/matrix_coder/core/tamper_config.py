"""What changed about how tests are chosen, started and judged: options, commands, coverage, CI, hidden files."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from . import tamper_files as files
from .tamper_model import Change, TamperFinding, TamperKind, line_at, text_of
from .tamper_options import CONFIG_FILES, Options, narrowing, option_line, read_options

_FORCED = re.compile(
    r"\|\|\s*(true|:|exit\s+0|echo\b)|;\s*(true|exit\s+0|:)\s*(['\"]|$|&)|(^|[\s'\"&;])exit\s+0\b|\bset\s+\+e\b"
    r"|--passWithNoTests|--pass-with-no-tests|--no-fail|--exit-zero|--suppress-no-test-exit-code|continue-on-error:\s*true"
    r"|allow_failure:\s*true|\bignore_outcome\s*=\s*true|\|\s*(tee|cat)\b|ignore_errors\s*=\s*true"
    r"|success_codes|process\.exit\(\s*0?\s*\)|sys\.exit\(\s*0?\s*\)",
    re.I,
)
_NARROWED = re.compile(
    r"(^|\s)(-k|-m(?!\s+\w*(?:test|cov|tox|nox|pip))|--ignore|--ignore-glob|--deselect|--testNamePattern|--grep|--fgrep"
    r"|--testPathIgnorePatterns|--invert|--exclude|--shard|--test-name-pattern|--test-skip-pattern|-run|-skip|-short|--skip"
    r"|--no-run|--lib|--testPathPattern|--onlyChanged|--only-changed|--onlyFailures|--changed|--collect-only|--list"
    r"|--lastCommit|--findRelatedTests|--no-cov"
    r"|(?<=vitest run )-t|(?<=vitest )-t|(?<=jest )-t|(?<=mocha )-[gfi])(?=[\s='\"]|$)"
)
_RUNNER = re.compile(
    r"\b(pytest|py\.test|unittest|nose2?|tox|nox|jest|vitest|mocha|ava|tap|jasmine|karma|playwright|cypress|node --test"
    r"|node|go test|cargo (test|nextest)|ctest|turbo|lerna|nx|react-scripts test|ng test|deno test|bun test|make|just"
    r"|npm|pnpm|yarn|tsx|ts-node|c8|nyc|coverage)\b"
)
_SCRIPT_CONFIG = re.compile(
    r"^(jest|vitest|vite|vitest\.workspace|karma|playwright|cypress|ava|nyc|c8)(\.[\w-]+)?\.config\.[cm]?[jt]sx?$|^(jest\.config\.json|\.mocharc(\.[a-z]+)?|\.nycrc(\.[a-z]+)?|\.c8rc(\.json)?|\.taprc|karma\.conf\.js)$"
)
_SCRIPT_NARROWED = re.compile(
    r"testPathIgnorePatterns|testMatch|testRegex|modulePathIgnorePatterns|\bexclude\b|\bspec\b|\bignore\b|\bgrep\b|fgrep"
    r"|passWithNoTests|\binclude\b|\broots\b|testNamePattern|\bbail\b|\bretry\b|retries|allowOnly|forbidOnly|moduleNameMapper"
    r"|setupFiles|globalSetup|\balias\b|runner\b|reporters|testEnvironment|dangerouslyIgnoreUnhandledErrors|automock|testRunner"
    r"|resolver|transform\b|snapshotResolver|globalTeardown"
)
_THRESHOLD = re.compile(
    r"(fail[_-]under|--cov-fail-under|branches|functions|lines|statements|perFile|check-coverage|threshold\w*)"
    r"['\"]?\s*[:= ]\s*['\"]?(-?\d+(?:\.\d+)?|true|false)",
    re.I,
)
_MAKE_NAMES = frozenset(
    {"Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", ".justfile", "Taskfile.yml", "Taskfile.yaml"}
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
            yield from _package(change, path)
        elif _SCRIPT_CONFIG.match(name):
            yield from _lines(change, path, _SCRIPT_NARROWED, TamperKind.CONFIG_CHANGED)
            yield from _thresholds(change, path)
        elif name in ("tox.ini", "noxfile.py", "setup.cfg"):
            yield from _commands(change, path)
        elif name in _MAKE_NAMES:
            yield from _make(change, path)
        elif name in (".gitignore", ".ignore", ".dockerignore"):
            yield from _hidden(change, path)
        elif name in ("Cargo.toml", "go.mod", "go.work", "config.toml"):
            yield from _builds(change, path)
        elif PurePosixPath(path).suffix in (".sh", ".bash", "") and _is_test_script(path):
            yield from _commands(change, path)
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
        if old is not None and _float(new) < _float(old):
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


def _float(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


# -- commands


def _fresh(change: Change, path: str) -> list[tuple[int, str]]:
    """The lines that a file has now and had not before, with their numbers; comments and blanks left out."""
    before = Counter(line.strip() for line in text_of(change.before.get(path)).splitlines())
    found = []
    for number, line in enumerate(text_of(change.after.get(path)).splitlines(), 1):
        words = line.strip()
        if before[words]:
            before[words] -= 1
        elif words and not words.startswith(("#", "//", ";")):
            found.append((number, words[:200]))
    return found


def _lost(change: Change, path: str) -> list[tuple[int, str]]:
    """The lines that a file had and has no more."""
    return _fresh(Change(before=change.after, after=change.before), path)


def _at(
    kind: TamperKind, path: str, line: int, text: str, detail: str, *, certain: bool = True, gone: bool = False
) -> TamperFinding:
    return TamperFinding(kind=kind, file=path, line=line, text=text, detail=detail, certain=certain, gone=gone)


def _commands(change: Change, path: str) -> Iterator[TamperFinding]:
    """Lines of a script that are new and force an exit or leave tests out; runners that are gone."""
    fresh = _fresh(change, path)
    for number, text in fresh:
        if _FORCED.search(text):
            yield _at(TamperKind.COMMAND_CHANGED, path, number, text, "a failure passes for success here")
        elif _RUNNER.search(text) and _NARROWED.search(text) and path in change.before:
            yield _at(TamperKind.COMMAND_CHANGED, path, number, text, "the command leaves tests out")
    runners = [
        (n, t)
        for n, t in _lost(change, path)
        if re.search(r"\b(pytest|jest|vitest|mocha|go test|cargo test|unittest)\b", t)
    ]
    if runners and not any(_RUNNER.search(t) for _, t in fresh):
        yield _at(TamperKind.COMMAND_CHANGED, path, *runners[0], "the tests are not started here any more", gone=True)


def _package(change: Change, path: str) -> Iterator[TamperFinding]:
    before, after = _json(change.before.get(path)), _json(change.after.get(path))
    if path not in change.before:
        return
    old, new = _table(before, "scripts"), _table(after, "scripts")
    for name in sorted(set(old) | set(new)):
        if re.match(r"(pre|post)?test|check$|ci$|verify$|coverage$", name) and old.get(name) != new.get(name):
            yield from _script(change, path, name, str(old.get(name, "")), str(new.get(name, "")))
    for name in ("jest", "mocha", "vitest", "nyc", "c8", "ava", "tap"):
        if name in after and before.get(name) != after.get(name):
            yield from _lines(change, path, _SCRIPT_NARROWED, TamperKind.CONFIG_CHANGED)
            break
    yield from _thresholds(change, path)


def _script(change: Change, path: str, name: str, old: str, new: str) -> Iterator[TamperFinding]:
    text = text_of(change.after.get(path))
    line = next((i for i, t in enumerate(text.splitlines(), 1) if re.search(rf"[\"']{re.escape(name)}[\"']\s*:", t)), 1)
    forced = _FORCED.search(new) and not _FORCED.search(old)
    narrowed = {m.group(2) for m in _NARROWED.finditer(new)} - {m.group(2) for m in _NARROWED.finditer(old)}
    idle = bool(_RUNNER.search(old)) and not _RUNNER.search(new)
    if not old and not forced:
        return
    why = (
        "a failure passes for success"
        if forced
        else "it leaves tests out"
        if narrowed
        else "it starts no tests"
        if idle
        else ""
    )
    words = f"`scripts.{name}` was `{old}`" + (f"; {why} now" if why else "")
    yield _at(TamperKind.COMMAND_CHANGED, path, line, line_at(text, line), words, certain=bool(why))


def _json(data: bytes | None) -> Mapping[str, object]:
    try:
        value = json.loads(text_of(data) or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _table(data: Mapping[str, object], name: str) -> Mapping[str, object]:
    value = data.get(name)
    return value if isinstance(value, Mapping) else {}


def _lines(change: Change, path: str, pattern: re.Pattern[str], kind: TamperKind) -> Iterator[TamperFinding]:
    if path not in change.before:
        return
    for number, text in _fresh(change, path):
        found = pattern.search(text)
        if found:
            yield _at(kind, path, number, text, f"`{found.group()}` decides which tests run and how")


def _thresholds(change: Change, path: str) -> Iterator[TamperFinding]:
    if not re.search(r"coverageThreshold|thresholds|check-coverage|nyc|c8", text_of(change.before.get(path))):
        return
    old = [(m.group(1), m.group(2)) for m in _THRESHOLD.finditer(text_of(change.before.get(path)))]
    text = text_of(change.after.get(path))
    new = [(m.group(1), m.group(2), text[: m.start()].count("\n") + 1) for m in _THRESHOLD.finditer(text)]
    for name, value in old:
        now = next((n for n in new if n[0] == name), None)
        if now is not None:
            new.remove(now)
        line = now[2] if now else 1
        if _limit(now[1] if now else None) < _limit(value):
            words = f"`{name}` has to reach {now[1] if now else 'nothing'} instead of {value}"
            yield _at(TamperKind.COVERAGE_LOWERED, path, line, line_at(text, line), words)


def _limit(text: str | None) -> float:
    return {"true": 1.0, "false": 0.0}.get((text or "").lower(), _float(text))


def _make(change: Change, path: str) -> Iterator[TamperFinding]:
    if path not in change.before:
        first = PurePosixPath(path)
        others = [
            p for p in change.before if PurePosixPath(p).name in _MAKE_NAMES and PurePosixPath(p).parent == first.parent
        ]
        if others and first.name in ("GNUmakefile", "makefile"):
            yield _at(
                TamperKind.RUNNER_SHADOWED,
                path,
                1,
                line_at(text_of(change.after[path]), 1),
                f"`make` reads it in place of {others[0]}",
            )
    recipe = {t for _, t in _recipes(text_of(change.after.get(path)))} | {
        t for _, t in _recipes(text_of(change.before.get(path)))
    }
    for finding in _commands(change, path):
        if finding.text in recipe or _FORCED.search(finding.text) is None:
            yield finding
    old = {t for _, t in _recipes(text_of(change.before.get(path)))}
    for number, text in _recipes(text_of(change.after.get(path))):
        if path in change.before and text not in old and text.startswith("-"):
            yield _at(TamperKind.COMMAND_CHANGED, path, number, text, "make ignores a failure of this line")


def _recipes(text: str) -> Iterator[tuple[int, str]]:
    """The lines of the recipes whose target's name speaks of tests."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"^[\w./-]+.*:(?!=)", line):
            inside = re.match(r"^(test|check|verify|ci|coverage|unit)[\w./-]*", line) is not None
        elif inside and line.strip():
            yield number, line.strip()[:200]


def _is_test_script(path: str) -> bool:
    name = PurePosixPath(path).name.lower()
    return re.search(r"test|check|verify|^ci\b", name) is not None and not files.is_test_data(path)


def _builds(change: Change, path: str) -> Iterator[TamperFinding]:
    """What a build file says about tests: Cargo targets that are no tests, another runner, replaced modules."""
    for number, text in _fresh(change, path):
        if re.match(r"(test|autotests|harness|doctest)\s*=\s*false", text) or re.match(r"runner\s*=", text):
            yield _at(TamperKind.CONFIG_CHANGED, path, number, text, "tests are left out or started by something else")
        elif re.match(r"(replace\s|.*=>\s*\.{0,2}/)", text) and PurePosixPath(path).name in ("go.mod", "go.work"):
            yield _at(TamperKind.CONFIG_CHANGED, path, number, text, "a module is replaced by another", certain=False)


# -- CI, hidden files, the checks themselves


def _ci(change: Change, path: str) -> Iterator[TamperFinding]:
    fresh, lost = _fresh(change, path), _lost(change, path)
    if path not in change.after:
        yield _at(TamperKind.CI_CHANGED, path, *(lost[0] if lost else (1, "")), "the CI file is gone", gone=True)
    elif fresh and path not in change.before:
        yield _at(TamperKind.CI_CHANGED, path, *fresh[0], "the CI file is new", certain=False)
    elif fresh:
        forced = next((f for f in fresh if _FORCED.search(f[1])), fresh[0])
        yield _at(TamperKind.CI_CHANGED, path, *forced, "what CI does is changed")
    elif lost:
        yield _at(TamperKind.CI_CHANGED, path, *lost[0], "this is gone from what CI does", gone=True)


def _hidden(change: Change, path: str) -> Iterator[TamperFinding]:
    if PurePosixPath(path).name == ".dockerignore":
        return
    known = [p for p in {*change.before, *change.after} if files.is_test_side(p)]
    for number, text in _fresh(change, path):
        pattern = text.lstrip("/").rstrip("/")
        if text.startswith("!") or not pattern:
            continue
        hit = next((p for p in (*known, *_PROBES) if _ignores(pattern, p)), "")
        if hit:
            yield _at(
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
        fresh, lost = _fresh(change, path), _lost(change, path)
        if fresh or lost:
            line, text = (fresh or lost)[0]
            yield _at(TamperKind.CHECK_CHANGED, path, line, text, "the check itself was changed", gone=not fresh)
