"""What changed in code around the tests: hooks that turn results, early exits, shadowed runners, test detection."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from . import tamper_files as files
from . import tamper_pymarks as marks
from .tamper_model import Change, Mark, TamperFinding, TamperKind, line_at, text_of
from .tamper_python import parse

_SHADOWS = frozenset(
    [
        "pytest",
        "_pytest",
        "unittest",
        "sitecustomize",
        "usercustomize",
        "pluggy",
        "coverage",
        "nose",
        "nose2",
        "tox",
        "nox",
        "mock",
        "doctest",
    ]
)
_RUNNERS = frozenset(
    [
        "pytest",
        "py.test",
        "python",
        "python3",
        "tox",
        "nox",
        "coverage",
        "jest",
        "vitest",
        "mocha",
        "node",
        "npm",
        "npx",
        "pnpm",
        "yarn",
        "go",
        "cargo",
        "rustc",
        "make",
        "just",
        "sh",
        "bash",
        "env",
        "ava",
        "tap",
    ]
)
_PATH_PLACES = re.compile(
    r"(^|/)(\.?venv|env|node_modules)/(\.?bin|Scripts)/[^/]+$|(^|/)node_modules/(jest|vitest|mocha)/"
)
_SCRIPT_DETECTS = re.compile(
    r"JEST_WORKER_ID|VITEST_WORKER_ID|VITEST_POOL_ID|process\.env\.VITEST\b|NODE_TEST_CONTEXT|process\.env\.MOCHA"
    r"|typeof\s+(jest|vi|describe|it)\s*[!=]==|global(This)?\.(jest|describe|it)\b"
)
_SCRIPT_MAYBE = re.compile(r"NODE_ENV\s*[!=]==?\s*['\"]test['\"]|import\.meta\.vitest")
_GO_DETECTS = re.compile(r"testing\.Testing\(\)|flag\.Lookup\(\"test\.|HasSuffix\(os\.Args\[0\],\s*\"\.test\"")
_RUST_DETECTS = re.compile(r"cfg!\(\s*test\s*\)|#\[cfg\(\s*not\(\s*test\s*\)\s*\)\]")
_SCRIPT_EXITS = re.compile(r"process\s*\.\s*(exit|reallyExit|exitCode\s*=|kill)\s*\(?\s*(0|)\s*\)?")


def code_findings(change: Change) -> Iterator[TamperFinding]:
    """What changed beside the tests so that they say yes."""
    for path in change.changed():
        if path not in change.after:
            continue
        yield from _shadows(change, path)
        kind = files.language(path)
        if kind == "python":
            yield from _python(change, path)
        elif kind:
            yield from _others(change, path, kind)


def _new_marks(change: Change, path: str, read: Callable[..., Iterator[Mark]]) -> list[Mark]:
    """The marks that the later text has beyond those of the earlier one."""
    later, earlier = text_of(change.after.get(path)), text_of(change.before.get(path))
    tree, old = parse(later), parse(earlier)
    if tree is None:
        return []
    known = Counter((m.kind, m.text) for m in read(old, earlier)) if old is not None else Counter()
    fresh = []
    for mark in read(tree, later):
        if known[mark.kind, mark.text]:
            known[mark.kind, mark.text] -= 1
        else:
            fresh.append(mark)
    return fresh


def _python(change: Change, path: str) -> Iterator[TamperFinding]:
    beside = files.is_test_side(path)
    name = PurePosixPath(path).name
    if beside or "plugin" in name or _is_plugin(text_of(change.after[path])):
        for mark in _new_marks(change, path, marks.hooks):
            yield _finding(TamperKind.RESULT_FORCED, path, mark, f"`{mark.name}` decides what the runner reports")
    for mark in _new_marks(change, path, marks.exits):
        certain = mark.certain and (mark.kind == "exit" or beside or not mark.name)
        if beside or mark.kind == "_exit" or not mark.name:
            yield _finding(
                TamperKind.EXIT_FORCED, path, mark, "the process ends here, whatever the tests said", certain
            )
    for mark in _new_marks(change, path, marks.detections):
        if mark.kind == "equal":
            yield _finding(TamperKind.RESULT_FORCED, path, mark, "it says that it equals everything")
        elif not beside:
            words = f"the code asks for `{mark.name}`: it can answer a test otherwise than a user"
            yield _finding(TamperKind.TEST_DETECTED, path, mark, words)


def _is_plugin(text: str) -> bool:
    return re.search(r"^\s*def pytest_\w+\(", text, re.M) is not None


def _finding(kind: TamperKind, path: str, mark: Mark, detail: str, certain: bool = True) -> TamperFinding:
    return TamperFinding(
        kind=kind,
        file=path,
        line=mark.line,
        text=mark.text,
        detail=detail,
        certain=certain,
        names=frozenset({mark.name, path}),
    )


def _others(change: Change, path: str, kind: str) -> Iterator[TamperFinding]:
    beside = files.is_test_side(path)
    before = Counter(line.strip() for line in text_of(change.before.get(path)).splitlines())
    detects = {"script": _SCRIPT_DETECTS, "go": _GO_DETECTS, "rust": _RUST_DETECTS}[kind]
    for number, line in enumerate(text_of(change.after[path]).splitlines(), 1):
        text = line.strip()
        if before[text]:
            before[text] -= 1
            continue
        if text.startswith(("//", "*", "/*")):
            continue
        mark = Mark(kind="line", line=number, text=text[:200])
        found = detects.search(text) if not beside else None
        if found:
            words = f"the code asks for `{found.group()}`: it can answer a test otherwise than a user"
            yield _finding(TamperKind.TEST_DETECTED, path, mark, words, kind != "rust")
        elif kind == "script" and not beside and _SCRIPT_MAYBE.search(text):
            yield _finding(TamperKind.TEST_DETECTED, path, mark, "the code does something else under test", False)
        yield from _exits(path, kind, beside, line, mark)


def _exits(path: str, kind: str, beside: bool, line: str, mark: Mark) -> Iterator[TamperFinding]:
    words = "the process ends here, whatever the tests said"
    if kind == "script" and _SCRIPT_EXITS.search(mark.text):
        certain = beside or (line[:1].strip() != "" and _SCRIPT_EXITS.match(mark.text) is not None)
        yield _finding(TamperKind.EXIT_FORCED, path, mark, words, certain)
    elif (kind == "go" and re.search(r"\bos\.Exit\(\s*0\s*\)", mark.text)) or (
        kind == "rust" and re.search(r"\bprocess::exit\(\s*0\s*\)", mark.text)
    ):
        yield _finding(TamperKind.EXIT_FORCED, path, mark, words, beside)


def _shadows(change: Change, path: str) -> Iterator[TamperFinding]:
    """New files that a runner would take for a part of itself."""
    pure = PurePosixPath(path)
    if path in change.before and not _PATH_PLACES.search(path):
        return
    mark = Mark(kind="line", line=1, text=line_at(text_of(change.after[path]), 1))
    top = pure.parts[0] if len(pure.parts) > 1 else pure.stem
    module = pure.stem if pure.suffix == ".py" and pure.name != "__init__.py" else pure.parent.name
    importable = len(pure.parts) <= 2 or top in ("src", "lib", "tests", "test")
    if pure.suffix == ".py" and module in _SHADOWS and importable:
        yield _finding(TamperKind.RUNNER_SHADOWED, path, mark, f"`import {module}` finds this file first")
    elif pure.suffix == ".pth":
        yield _finding(TamperKind.RUNNER_SHADOWED, path, mark, "Python runs what stands in it at every start")
    elif _PATH_PLACES.search(path):
        yield _finding(TamperKind.RUNNER_SHADOWED, path, mark, "it stands first on the PATH of the check")
    elif pure.name in _RUNNERS and "." not in pure.suffix:
        yield _finding(
            TamperKind.RUNNER_SHADOWED, path, mark, f"a program of the name `{pure.name}` can shadow the real one"
        )
