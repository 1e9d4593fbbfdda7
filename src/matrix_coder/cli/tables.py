"""Lists of runs as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from ..core.models import RunView
from ..core.money import dollars
from ..hermes.commands import ago
from .terminal import one_line
from .view import state_text


def runs_table(runs: Sequence[RunView]) -> Table:
    """A row for each run; the goal takes the width that is left."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", expand=True)
    table.add_column("run", no_wrap=True)
    table.add_column("workflow", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("at", no_wrap=True)
    table.add_column("age", justify="right", no_wrap=True)
    table.add_column("cost", justify="right", no_wrap=True)
    table.add_column("goal", no_wrap=True, overflow="ellipsis", ratio=1)
    for run in runs:
        table.add_row(
            Text(run.run_id, style="bold"),
            Text(run.workflow),
            state_text(run),
            Text(f"{run.iteration}/{run.cap}"),
            Text(ago(run.created_at)),
            Text(_cost(run)),
            Text(one_line(run.goal)),
        )
    return table


def _cost(run: RunView) -> str:
    tokens = f"{run.usage.tokens / 1_000:.0f}k" if run.usage.tokens >= 10_000 else f"{run.usage.tokens:,}"
    return f"{tokens} {dollars(run.usage.cost_usd)}" if run.usage.cost_usd else tokens
