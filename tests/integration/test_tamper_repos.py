"""The guard against gamed tests over real repositories: two recorded trees of each, gamed or honest."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from matrix_coder.core.tamper import TamperReport
from matrix_coder.engine.tamper import examine, inspect
from matrix_coder.engine.workspace import Trees

from .tamper_cases import native_gamed, native_honest, python_gamed, python_honest, script_gamed, script_honest
from .tamper_cases.table import Gamed, Honest, changed


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def rewrite(root: Path, before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Make the directory hold the later files and nothing of the earlier ones."""
    for name in set(before) - set(after):
        (root / name).unlink()
    write(root, {n: t for n, t in after.items() if before.get(n) != t})


def judged(tmp_path: Path, case: Gamed | Honest, checks: tuple[str, ...]) -> TamperReport:
    """What the guard says about the case's change, made in a real directory and recorded by the engine's git."""
    root = tmp_path / "repo"
    write(root, case.base)
    trees = Trees(root, tmp_path / "record")
    before = trees.record()
    rewrite(root, case.base, changed(case.base, case.change))
    after = trees.record()
    report = examine(trees, before, after, goal=case.goal, checks=checks)
    assert inspect(trees, before, after, goal=case.goal, checks=checks) == report.findings
    return report


def exit_code(root: Path, check: str) -> int:
    """What the check's command says about the directory, with this interpreter's pytest on its PATH."""
    env = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(root),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_ADDOPTS": "-p no:cacheprovider",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    done = subprocess.run(["/bin/sh", "-c", check], cwd=root, env=env, capture_output=True, timeout=60, check=False)
    return done.returncode


def found(tmp_path: Path, case: Gamed) -> None:
    report = judged(tmp_path, case, case.checks)
    assert (case.kind, case.file, case.line) in [(f.kind, f.file, f.line) for f in report.certain]
    if case.green:
        assert exit_code(tmp_path / "repo", case.checks[0]) == 0


def not_accused(tmp_path: Path, case: Honest) -> None:
    report = judged(tmp_path, case, ("pytest -q",))
    assert [str(f) for f in report.certain] == []
    assert {e.finding.kind for e in report.exempted} == case.asked
    assert all(e.reason for e in report.exempted)


@pytest.mark.parametrize("case", python_gamed.GAMED, ids=lambda c: c.name)
def test_guard_when_a_python_suite_is_gamed_then_named_with_file_and_line(tmp_path: Path, case: Gamed) -> None:
    """Each way of gaming a Python suite is found, certain, by its kind, file and line."""
    found(tmp_path, case)


@pytest.mark.parametrize("case", script_gamed.GAMED, ids=lambda c: c.name)
def test_guard_when_a_script_suite_is_gamed_then_named_with_file_and_line(tmp_path: Path, case: Gamed) -> None:
    """Each way of gaming a JavaScript or TypeScript suite is found, certain, by its kind, file and line."""
    found(tmp_path, case)


@pytest.mark.parametrize("case", native_gamed.GAMED, ids=lambda c: c.name)
def test_guard_when_a_go_or_rust_suite_is_gamed_then_named_with_file_and_line(tmp_path: Path, case: Gamed) -> None:
    """Each way of gaming a Go or Rust suite is found, certain, by its kind, file and line."""
    found(tmp_path, case)


@pytest.mark.parametrize("case", python_honest.HONEST, ids=lambda c: c.name)
def test_guard_when_a_python_suite_changes_honestly_then_nobody_is_accused(tmp_path: Path, case: Honest) -> None:
    """A change that a person would stand by has no certain finding; what the goal asked for is told as such."""
    not_accused(tmp_path, case)


@pytest.mark.parametrize("case", script_honest.HONEST, ids=lambda c: c.name)
def test_guard_when_a_script_suite_changes_honestly_then_nobody_is_accused(tmp_path: Path, case: Honest) -> None:
    """The same promise for JavaScript and TypeScript."""
    not_accused(tmp_path, case)


@pytest.mark.parametrize("case", native_honest.HONEST, ids=lambda c: c.name)
def test_guard_when_a_go_or_rust_suite_changes_honestly_then_nobody_is_accused(tmp_path: Path, case: Honest) -> None:
    """The same promise for Go and Rust."""
    not_accused(tmp_path, case)
