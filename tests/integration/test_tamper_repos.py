"""The guard against gamed tests over real repositories: two recorded trees of each, gamed or honest."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from matrix_coder.core.tamper import TamperKind, TamperReport
from matrix_coder.engine.tamper import examine, watch
from matrix_coder.engine.workspace import Trees

from .tamper_cases import native_gamed, native_honest, python_gamed, python_honest, script_gamed, script_honest
from .tamper_cases.table import FIX, Gamed, Honest, changed


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
    return examine(trees, before, after, goal=case.goal, checks=checks)


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


def rigged(site: Path) -> None:
    (site / "_pytest").mkdir()
    (site / "_pytest/main.py").write_text("code = 1\n", encoding="utf-8")
    (site / "pytest-9.0.0.dist-info").mkdir()
    (site / "pytest-9.0.0.dist-info/METADATA").write_text("Version: 9.0.0\n", encoding="utf-8")


@pytest.fixture
def environment(tmp_path: Path) -> tuple[Trees, str]:
    """A repository with a virtual environment and node modules that git ignores, watched, and its tree."""
    root = tmp_path / "repo"
    site = root / ".venv/lib/python3.11/site-packages"
    write(root, {**python_gamed.PY, ".gitignore": ".venv/\n"})
    write(
        root,
        {
            ".venv/bin/pytest": PROGRAM,
            "node_modules/jest/bin/jest.js": "run();\n",
            "node_modules/jest/package.json": "{}",
        },
    )
    (root / "node_modules/.bin").mkdir()
    (root / "node_modules/.bin/jest").symlink_to("../jest/bin/jest.js")
    site.mkdir(parents=True)
    rigged(site)
    trees = Trees(root, tmp_path / "record")
    watch(trees)
    return trees, trees.record()


PROGRAM = "#!python\nimport sys\nfrom pytest import main\nif __name__ == '__main__':\n    sys.exit(main())\n"
SITE = ".venv/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (".venv/bin/pytest", "#!/bin/sh\nexit 0\n"),
        (".venv/bin/python3", "#!/bin/sh\nexit 0\n"),
        (f"{SITE}/_pytest/main.py", "code = 0\n"),
        (f"{SITE}/zz.pth", "import os; os._exit(0)\n"),
        (f"{SITE}/sitecustomize.py", "import os\n"),
        ("node_modules/jest/bin/jest.js", "process.exit(0);\n"),
        ("node_modules/.bin/vitest", "#!/bin/sh\nexit 0\n"),
    ],
)
def test_guard_when_a_runner_outside_of_the_record_changes_then_named(
    environment: tuple[Trees, str], path: str, text: str
) -> None:
    """Programs and packages that git ignores and that checks run are compared with what they were at the start."""
    trees, before = environment
    write(trees.workspace, {path: text})
    (finding,) = examine(trees, before, trees.record(), goal=FIX).findings
    assert (finding.kind, finding.file, finding.line, finding.certain) == (TamperKind.RUNNER_SHADOWED, path, 1, True)


def test_guard_when_packages_are_installed_anew_then_nobody_is_accused(environment: tuple[Trees, str]) -> None:
    """Another version of a runner, new programs and new packages are what installers leave behind."""
    trees, before = environment
    root = trees.workspace
    (root / SITE / "pytest-9.0.0.dist-info/METADATA").unlink()
    write(
        root, {f"{SITE}/_pytest/main.py": "code = 2\n", f"{SITE}/pytest-9.1.0.dist-info/METADATA": "Version: 9.1.0\n"}
    )
    write(root, {".venv/bin/tox": PROGRAM, f"{SITE}/__editable__.calc.pth": "/src\n", f"{SITE}/pluggy/__init__.py": ""})
    write(root, {"node_modules/jest/bin/jest.js": "run2();\n", "node_modules/jest/package.json": '{"version": "2"}'})
    (root / "node_modules/.bin/mocha").symlink_to("../mocha/bin/mocha.js")
    assert examine(trees, before, trees.record(), goal=FIX).findings == ()


def test_guard_when_nothing_was_watched_then_only_the_trees_are_compared(tmp_path: Path) -> None:
    """Without a fingerprint from the start there is nothing to hold the runners against."""
    write(tmp_path / "repo", {**python_gamed.PY, ".gitignore": ".venv/\n"})
    trees = Trees(tmp_path / "repo", tmp_path / "record")
    before = trees.record()
    write(tmp_path / "repo", {".venv/bin/pytest": "exit 0\n"})
    assert examine(trees, before, trees.record(), goal=FIX).findings == ()


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


RED = {tuple(sorted(c.base.items())): c for c in [*python_gamed.GAMED, *script_gamed.GAMED] if c.green}


@pytest.mark.parametrize("case", RED.values(), ids=lambda c: c.name)
def test_suite_when_it_is_not_gamed_then_it_is_red(tmp_path: Path, case: Gamed) -> None:
    """Each repository whose gamed suite is shown to be green has a suite that fails before."""
    write(tmp_path / "repo", case.base)
    assert exit_code(tmp_path / "repo", case.checks[0]) != 0
