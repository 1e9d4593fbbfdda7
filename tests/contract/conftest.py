"""Fixtures of the tests against the real host."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from matrix_coder.hermes.kanban import KanbanMirror
from matrix_coder.testing import HermesHome, Rule, ScriptedModel

from .mirrorbench import Board, MemoryBook
from .runbench import Bench, RunBench


@pytest.fixture
def bench(
    scripted_model: Callable[..., ScriptedModel],
    hermes_home: Callable[..., HermesHome],
    git_repo: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Bench]:
    """A factory of run benches; whatever they started is ended, and nothing may be left."""
    made: list[RunBench] = []

    def make(script: Sequence[Rule], **options: Any) -> RunBench:
        model = scripted_model(script)
        home = hermes_home(model, **options)
        for name, value in home.environment().items():
            monkeypatch.setenv(name, value)
        made.append(RunBench(model=model, home=home, repo=git_repo))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    """The real Kanban board of a temporary Hermes home, which this process is in."""
    for name in [n for n in os.environ if n.startswith("HERMES_KANBAN")]:
        monkeypatch.delenv(name)
    home = tmp_path / "hermes"
    home.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(home))
    return Board(home)


@pytest.fixture
def mirror() -> KanbanMirror:
    """A mirror that keeps its cards in memory."""
    return KanbanMirror(MemoryBook())
