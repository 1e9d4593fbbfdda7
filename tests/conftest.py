"""Fixtures: the scripted model, a real Hermes home, a small real repository."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from matrix_coder.core.models import RunOutcome
from matrix_coder.core.names import Workflow
from matrix_coder.testing import HermesHome, Rule, ScriptedModel

HOST_VARIABLES = ("HERMES_HOME", "HERMES_KANBAN_TASK", "HERMES_PROFILE", "HERMES_YOLO_MODE", "TERMINAL_CWD")

CALC = '''"""Two sums, one of them wrong."""


def add(a: int, b: int) -> int:
    return a - b


def double(a: int) -> int:
    return a * 2
'''
TEST_CALC = """from calc import add, double


def test_add():
    assert add(2, 3) == 5


def test_double():
    assert double(4) == 8
"""


LEAK_CHECKS = pytest.StashKey[int]()


@pytest.fixture
def count_leak_checks(pytestconfig: pytest.Config) -> Callable[[int], None]:
    """Adds to the number of requests checked for leaks, which the summary of the test run shows."""

    def count(requests: int) -> None:
        pytestconfig.stash[LEAK_CHECKS] = pytestconfig.stash.get(LEAK_CHECKS, 0) + requests

    return count


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Shows how many requests were checked for leaks, and with -v or MATRIX_TABLE=1 which outcomes were reached."""
    if LEAK_CHECKS in config.stash:
        terminalreporter.write_line(f"requests checked for leaks: {config.stash[LEAK_CHECKS]}")
    if config.option.verbose > 0 or os.environ.get("MATRIX_TABLE") == "1":
        passed = [r for r in terminalreporter.stats.get("passed", ()) if r.when == "call"]
        found = Counter(value for r in passed for name, value in r.user_properties if name == "outcome")
        for line in outcome_table(found):
            terminalreporter.write_line(line)


def outcome_table(found: Mapping[str, int]) -> list[str]:
    """How many passing tests reach each outcome of each workflow in whole runs, and where walks alone do."""
    if not found:
        return []
    rows = [
        "outcomes reached by passing tests: whole runs with the real host; `walk`: only in a walk through the core",
        f"{'':12}" + "".join(f"{w:>12}" for w in Workflow),
    ]
    for outcome in RunOutcome:
        rows.append(f"{outcome:12}" + "".join(f"{_cell(found, f'{w}/{outcome}'):>12}" for w in Workflow))
    return rows


def _cell(found: Mapping[str, int], pair: str) -> str:
    whole = found.get(pair, 0)
    if whole:
        return f"{whole} whole"
    return "walk" if found.get(f"{pair}/walk") else "-"


def pytest_configure(config: pytest.Config) -> None:
    """Names the markers."""
    words = "outcome(workflow, outcome, walk=False): reaches this outcome, in a whole run or in a walk through the core"
    config.addinivalue_line("markers", words)
    config.addinivalue_line("markers", "real: runs over fetched open-source projects; only with `-m real`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Notes which outcomes each test reaches; leaves out what needs the package registry, unless it is asked for."""
    for item in items:
        for mark in item.iter_markers("outcome"):
            workflow, outcome = mark.args
            walk = "/walk" if mark.kwargs.get("walk") else ""
            # Travels with the test's report, also from another process.
            item.user_properties.append(("outcome", f"{Workflow(workflow)}/{RunOutcome(outcome)}{walk}"))
    if "real" in config.option.markexpr:
        return
    real = [i for i in items if i.get_closest_marker("real")]
    if real:
        config.hook.pytest_deselected(items=real)
        items[:] = [i for i in items if i not in set(real)]


@pytest.fixture(autouse=True)
def _own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No test sees a person's Hermes: what runs in this process gets an empty home."""
    for name in HOST_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "in-process-hermes"))


@pytest.fixture
def scripted_model() -> Iterator[Callable[..., ScriptedModel]]:
    """A factory of running scripted models: `scripted_model(rules, default="...")`."""
    running: list[ScriptedModel] = []

    def start(rules: Sequence[Rule] | Path = (), **options: Any) -> ScriptedModel:
        running.append(ScriptedModel(rules, **options).start())
        return running[-1]

    yield start
    for model in running:
        model.close()


@pytest.fixture
def hermes_home(tmp_path: Path) -> Callable[..., HermesHome]:
    """A factory of Hermes homes for a scripted model: `hermes_home(model, config={...})`."""

    def make(model: ScriptedModel, **options: Any) -> HermesHome:
        return HermesHome(tmp_path / "hermes-root", model.base_url, **options)

    return make


def git(repo: Path, *words: str) -> str:
    """Output of a git command in a repository, with an identity of its own."""
    who = ("-c", "user.name=Test", "-c", "user.email=test@example.invalid", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *who, *words], cwd=repo, check=True, capture_output=True, text=True)
    return done.stdout


def make_repo(root: Path, files: Mapping[str, str]) -> Path:
    """A committed repository with these files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")
    return root


@pytest.fixture
def git_repo(tmp_path: Path) -> Path:
    """A real repository of two modules whose pytest suite has one failing and one passing test."""
    files = {"calc.py": CALC, "test_calc.py": TEST_CALC, ".gitignore": "__pycache__/\n.pytest_cache/\n"}
    return make_repo(tmp_path / "repo", files)
