"""Real use: the figures of each run are shown at the end, in the form of the table in docs/real-use.md."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from contract.conftest import bench

__all__ = ["bench"]

ROWS = pytest.StashKey[list[str]]()


@pytest.fixture
def row(pytestconfig: pytest.Config) -> Callable[..., None]:
    """Adds a row of figures to the summary."""

    def add(*cells: object) -> None:
        pytestconfig.stash.setdefault(ROWS, []).append("| " + " | ".join(map(str, cells)) + " |")

    return add


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Shows the figures."""
    for line in config.stash.get(ROWS, []):
        terminalreporter.write_line(line)
