"""Fixtures of the tests against the real host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from matrix_coder.testing import HermesHome, Rule, ScriptedModel

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
