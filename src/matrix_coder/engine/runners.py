"""The programs that a check starts out of the workspace, and whether they are still the ones that stood there.

Environments and packages are left out of the recorded trees, and yet a check runs what lies in them: their
fingerprint is taken when a run opens and compared when its tests are judged.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..core.tamper_model import TamperFinding, TamperKind

_ENVIRONMENTS = (".venv", "venv", "env")
_PROGRAMS = re.compile(
    r"(pytest|py\.test|python[\d.]*|tox|nox|coverage|nose2|pip[\d.]*|jest|vitest|mocha|ava|tap|c8|nyc|tsx)$"
)
_PYTHON_PARTS = ("pytest", "_pytest", "pluggy")
_SCRIPT_PARTS = ("jest", "jest-cli", "@jest/core", "vitest", "mocha", "ava", "tap")
_START = ("sitecustomize.py", "usercustomize.py")
_LOOSE = ("conftest.py", "pytest.ini", ".pytest.ini", *_START)
_MOST = 400
# A path file that runs something other than the hooks that installers put there.
_STARTS_CODE = re.compile(r"^import\b(?!.*(_virtualenv|_distutils_hack|__editable__|coverage))", re.M)
# How pip and npm write the programs of a package.
_INSTALLED = re.compile(r"sys\.exit\(\w+\(\)\)|basedir=")
_RECORD = "runners.json"


def fingerprint(workspace: Path) -> dict[str, str]:
    """What the programs and packages that run tests hold, by path from the workspace."""
    paths = [*_environments(workspace), *_packages(workspace), *(workspace / n for n in _LOOSE)]
    found = {str(p.relative_to(workspace)): _mark(p) for p in paths}
    return {path: mark for path, mark in found.items() if mark}


def _environments(workspace: Path) -> Iterator[Path]:
    for name in _ENVIRONMENTS:
        yield from (p for p in _inside(workspace / name / "bin") if _PROGRAMS.match(p.name))
        for site in sorted((workspace / name).glob("lib/python*/site-packages")):
            yield from (p for p in _inside(site) if p.suffix == ".pth" or p.name in _START or p.name == "pytest.py")
            for part in _PYTHON_PARTS:
                yield from sorted((site / part).rglob("*.py"))[:_MOST]
                yield from site.glob(f"{part}-*.dist-info/METADATA")


def _packages(workspace: Path) -> Iterator[Path]:
    modules = workspace / "node_modules"
    yield from (p for p in _inside(modules / ".bin") if _PROGRAMS.match(p.name))
    for part in _SCRIPT_PARTS:
        if (modules / part).is_dir():
            yield modules / part / "package.json"
            code = (p for ending in ("*.js", "*.cjs", "*.mjs") for p in (modules / part).rglob(ending))
            yield from sorted(code)[:_MOST]


def _inside(directory: Path) -> Iterator[Path]:
    return iter(sorted(directory.iterdir()) if directory.is_dir() else ())


def _mark(path: Path) -> str:
    """A link's target, or what a file holds; empty for what is neither."""
    try:
        if path.is_symlink():
            return f"-> {path.readlink()}"
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    except OSError:
        return ""


def watch(workspace: Path, store: Path) -> None:
    """Keep the fingerprint of the runners as they are now, unless one is kept already."""
    kept = store / _RECORD
    if not kept.exists():
        kept.write_text(json.dumps(fingerprint(workspace)), encoding="utf-8")


def changes(workspace: Path, store: Path) -> Iterator[TamperFinding]:
    """The runners that are not what they were; none where no fingerprint was kept."""
    try:
        before: dict[str, str] = json.loads((store / _RECORD).read_text(encoding="utf-8"))
    except OSError:
        return
    now = fingerprint(workspace)
    renewed = tuple(_renewed(before, now))
    for path in sorted(set(before) | set(now)):
        if before.get(path) == now.get(path) or path.startswith(renewed) or path.endswith(("METADATA", "package.json")):
            continue
        if path not in before and _is_usual(workspace / path):
            continue
        yield _finding(workspace, path, "is another one now" if path in before else "is new and runs before the tests")


def _renewed(before: dict[str, str], now: dict[str, str]) -> Iterable[str]:
    """Where packages lie that were installed anew: their own record of what they are says so."""
    for path in {p for p in (*before, *now) if before.get(p) != now.get(p)}:
        if path.endswith("METADATA"):
            site = path.rsplit("/", 2)[0]
            part = path.rsplit("/", 2)[1].split("-")[0]
            yield from (f"{site}/{p}/" for p in ((part, "_pytest") if part == "pytest" else (part,)))
        elif path.endswith("/package.json"):
            yield path.removesuffix("package.json")


def _is_usual(path: Path) -> bool:
    """Whether a file that is new is what installers write."""
    if path.is_symlink() or {*_PYTHON_PARTS, *_SCRIPT_PARTS} & set(path.parts[:-1]):
        return True
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    if path.suffix == ".pth":
        return _STARTS_CODE.search(text) is None
    return path.name not in _LOOSE and _INSTALLED.search(text) is not None


def _finding(workspace: Path, path: str, words: str) -> TamperFinding:
    try:
        first = (workspace / path).read_bytes()[:200].decode("utf-8", "replace").splitlines()
    except OSError:
        first = []
    return TamperFinding(
        kind=TamperKind.RUNNER_SHADOWED,
        file=path,
        line=1,
        text=first[0].strip() if first else "",
        detail=f"a part of what the check runs {words}",
        gone=not first,
        names=frozenset({path}),
    )
