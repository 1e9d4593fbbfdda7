"""Starting a run for whoever may use the dashboard, with the settings of its home."""

from __future__ import annotations

from pathlib import Path

from ..core.errors import InputError
from ..engine.client import Client, Options, Start, require_engine
from ..engine.paths import hermes_home
from ..hermes.model import require_model
from ..hermes.settings import load_settings
from . import runs
from .shapes import RunSummary, StartRequest


def start(asked: StartRequest) -> RunSummary:
    """The run, queued. Raises InputError, with what to do, for whatever can't be started."""
    require_engine()
    workspace = Path(asked.workspace).expanduser()
    if not workspace.is_absolute():
        # The dashboard's own directory means nothing to whoever asks.
        raise InputError("an absolute path of the workspace", asked.workspace or "none", "name the whole path")
    home = hermes_home()
    limits = load_settings(home).run_limits(
        {
            "cap": asked.cap,
            "budget": asked.minutes * 60 if asked.minutes else None,
            "tokens": asked.tokens,
            "money": asked.money,
        }
    )
    options = Options(approve=tuple(asked.approve), check_runs=asked.check_runs, isolate=asked.isolate)
    wanted = Start(
        workflow=asked.workflow,
        goal=asked.goal,
        workspace=workspace,
        domain=asked.domain,
        commands=tuple(asked.checks),
        limits=limits,
        options=options,
    )
    wanted.check()
    require_model()
    return runs.summary(Client(home).start(wanted))
