"""Lists of runs as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from ..core.models import RunView
from ..core.money import money_words
from ..hermes.commands import ago
from .terminal import one_line
from .view import state_text

_COLUMNS = ("run", "workflow", "state", "at", "age", "tokens", "cost", "goal")
_NUMBERS = ("age", "tokens", "cost")
# Where there is little room, the goal says more than how far a run was and what it took.
_NARROW = 70
_NARROW_COLUMNS = ("run", "state", "age", "goal")


def runs_table(runs: Sequence[RunView], *, width: int = 100) -> Table:
    """A row for each run; the goal takes what is left of `width`. Costs stand there where any has a price."""
    columns: tuple[str, ...] = _NARROW_COLUMNS if width < _NARROW else _COLUMNS
    if not any(money_words(run.usage) for run in runs):
        columns = tuple(c for c in columns if c != "cost")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    for name in columns:
        if name == "goal":
            table.add_column(name, no_wrap=True, overflow="ellipsis", ratio=1)
        else:
            table.add_column(name, no_wrap=True, justify="right" if name in _NUMBERS else "left")
    for run in runs:
        cells = _cells(run)
        table.add_row(*(cells[name] for name in columns))
    return table


def _cells(run: RunView) -> dict[str, Text]:
    return {
        "run": Text(run.run_id, style="bold"),
        "workflow": Text(run.workflow),
        "state": state_text(run),
        "at": Text(f"{run.iteration}/{run.cap}"),
        "age": Text(ago(run.created_at)),
        "tokens": Text(_tokens(run)),
        "cost": Text(money_words(run.usage) or "-"),
        "goal": Text(one_line(run.goal)),
    }


def _tokens(run: RunView) -> str:
    return f"{run.usage.tokens / 1_000:.0f}k" if run.usage.tokens >= 10_000 else f"{run.usage.tokens:,}"
