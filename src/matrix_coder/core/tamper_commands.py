"""What changed about the commands that start tests: scripts, recipes, package scripts, build files, thresholds."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from . import tamper_files as files
from .tamper_model import Change, TamperFinding, TamperKind, line_at, text_of

FORCED = re.compile(
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
SCRIPT_NARROWED = re.compile(
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
MAKE_NAMES = frozenset(
    {"Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", ".justfile", "Taskfile.yml", "Taskfile.yaml"}
)


def as_number(text: str | None) -> float:
    try:
        return float(text or 0)
    except ValueError:
        return 0.0


def fresh_lines(change: Change, path: str) -> list[tuple[int, str]]:
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


def lost_lines(change: Change, path: str) -> list[tuple[int, str]]:
    """The lines that a file had and has no more."""
    return fresh_lines(Change(before=change.after, after=change.before), path)


def found_at(
    kind: TamperKind, path: str, line: int, text: str, detail: str, *, certain: bool = True, gone: bool = False
) -> TamperFinding:
    return TamperFinding(kind=kind, file=path, line=line, text=text, detail=detail, certain=certain, gone=gone)


def command_findings(change: Change, path: str) -> Iterator[TamperFinding]:
    """Lines of a script that are new and force an exit or leave tests out; runners that are gone."""
    fresh = fresh_lines(change, path)
    # A narrower command beside the one that was there takes nothing away.
    replaced = any(_RUNNER.search(text) for _, text in lost_lines(change, path))
    for number, text in fresh:
        if FORCED.search(text):
            yield found_at(TamperKind.COMMAND_CHANGED, path, number, text, "a failure passes for success here")
        elif _RUNNER.search(text) and _NARROWED.search(text) and replaced:
            yield found_at(TamperKind.COMMAND_CHANGED, path, number, text, "the command leaves tests out")
    runners = [
        (n, t)
        for n, t in lost_lines(change, path)
        if not t.startswith("[") and re.search(r"\b(pytest|jest|vitest|mocha|go test|cargo test|unittest)\b", t)
    ]
    if runners and not any(_RUNNER.search(t) for _, t in fresh):
        yield found_at(
            TamperKind.COMMAND_CHANGED, path, *runners[0], "the tests are not started here any more", gone=True
        )


def package_findings(change: Change, path: str) -> Iterator[TamperFinding]:
    before, after = _json(change.before.get(path)), _json(change.after.get(path))
    if path not in change.before:
        return
    old, new = _table(before, "scripts"), _table(after, "scripts")
    for name in sorted(set(old) | set(new)):
        if re.match(r"(pre|post)?test|check$|ci$|verify$|coverage$", name) and old.get(name) != new.get(name):
            yield from _script(change, path, name, str(old.get(name, "")), str(new.get(name, "")))
    for name in ("jest", "mocha", "vitest", "nyc", "c8", "ava", "tap"):
        if name in after and before.get(name) != after.get(name):
            yield from matching_lines(change, path, SCRIPT_NARROWED, TamperKind.CONFIG_CHANGED)
            break
    yield from threshold_findings(change, path)


def _script(change: Change, path: str, name: str, old: str, new: str) -> Iterator[TamperFinding]:
    text = text_of(change.after.get(path))
    line = next((i for i, t in enumerate(text.splitlines(), 1) if re.search(rf"[\"']{re.escape(name)}[\"']\s*:", t)), 1)
    forced = FORCED.search(new) and not FORCED.search(old)
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
    yield found_at(TamperKind.COMMAND_CHANGED, path, line, line_at(text, line), words, certain=bool(why))


def _json(data: bytes | None) -> Mapping[str, object]:
    try:
        value = json.loads(text_of(data) or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _table(data: Mapping[str, object], name: str) -> Mapping[str, object]:
    value = data.get(name)
    return value if isinstance(value, Mapping) else {}


def matching_lines(change: Change, path: str, pattern: re.Pattern[str], kind: TamperKind) -> Iterator[TamperFinding]:
    if path not in change.before:
        return
    for number, text in fresh_lines(change, path):
        found = pattern.search(text)
        if found:
            yield found_at(kind, path, number, text, f"`{found.group()}` decides which tests run and how")


def threshold_findings(change: Change, path: str) -> Iterator[TamperFinding]:
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
            yield found_at(TamperKind.COVERAGE_LOWERED, path, line, line_at(text, line), words)


def _limit(text: str | None) -> float:
    return {"true": 1.0, "false": 0.0}.get((text or "").lower(), as_number(text))


def make_findings(change: Change, path: str) -> Iterator[TamperFinding]:
    if path not in change.before:
        first = PurePosixPath(path)
        others = [
            p for p in change.before if PurePosixPath(p).name in MAKE_NAMES and PurePosixPath(p).parent == first.parent
        ]
        if others and first.name in ("GNUmakefile", "makefile"):
            yield found_at(
                TamperKind.RUNNER_SHADOWED,
                path,
                1,
                line_at(text_of(change.after[path]), 1),
                f"`make` reads it in place of {others[0]}",
            )
    recipe = {t for _, t in _recipes(text_of(change.after.get(path)))} | {
        t for _, t in _recipes(text_of(change.before.get(path)))
    }
    for finding in command_findings(change, path):
        if finding.text in recipe or FORCED.search(finding.text) is None:
            yield finding
    old = {t for _, t in _recipes(text_of(change.before.get(path)))}
    for number, text in _recipes(text_of(change.after.get(path))):
        if path in change.before and text not in old and text.startswith("-"):
            yield found_at(TamperKind.COMMAND_CHANGED, path, number, text, "make ignores a failure of this line")


def _recipes(text: str) -> Iterator[tuple[int, str]]:
    """The lines of the recipes whose target's name speaks of tests."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"^[\w./-]+.*:(?!=)", line):
            inside = re.match(r"^(test|check|verify|ci|coverage|unit)[\w./-]*", line) is not None
        elif inside and line.strip():
            yield number, line.strip()[:200]


def is_test_script(path: str) -> bool:
    name = PurePosixPath(path).name.lower()
    return re.search(r"test|check|verify|^ci\b", name) is not None and not files.is_test_data(path)


def build_findings(change: Change, path: str) -> Iterator[TamperFinding]:
    """What a build file says about tests: Cargo targets that are no tests, another runner, replaced modules."""
    for number, text in fresh_lines(change, path):
        if re.match(r"(test|autotests|harness|doctest)\s*=\s*false", text) or re.match(r"runner\s*=", text):
            yield found_at(
                TamperKind.CONFIG_CHANGED, path, number, text, "tests are left out or started by something else"
            )
        elif re.match(r"(replace\s|.*=>\s*\.{0,2}/)", text) and PurePosixPath(path).name in ("go.mod", "go.work"):
            yield found_at(
                TamperKind.CONFIG_CHANGED, path, number, text, "a module is replaced by another", certain=False
            )
