"""Commands that look at runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ..core.models import RunStatus, RunView
from .app import cli, json_option, run_json, say_json
from .terminal import cleaned, console, has_colour, is_terminal, say, show_report

_NO_RUNS = 'No runs yet. Start one: matrix-coder run ralph "goal"'


@cli.command()
@json_option()
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
def runs(as_json: bool, limit: int) -> None:
    """The newest runs."""
    from ..engine.client import Client  # noqa: PLC0415

    _list(Client().runs(limit=limit), _NO_RUNS, as_json=as_json)


@cli.command()
@json_option()
def status(as_json: bool) -> None:
    """The runs that are live now."""
    from ..engine.client import Client  # noqa: PLC0415

    live = [r for r in Client().runs(limit=1000) if r.status is not RunStatus.ENDED]
    _list(live, "No run is live.", as_json=as_json)


def _list(found: list[RunView], none: str, *, as_json: bool) -> None:
    from ..hermes.commands import run_line  # noqa: PLC0415

    if as_json:
        say_json([brief(r) for r in found])
    elif found and is_terminal():
        from .tables import runs_table  # noqa: PLC0415

        screen = console()
        screen.print(runs_table(found, width=screen.width))
    else:
        say("\n".join(run_line(r) for r in found) or none)


def brief(run: RunView) -> dict[str, Any]:
    """A run without its steps, as JSON data."""
    told = run_json(run)
    del told["steps"]
    return told


@cli.command()
@click.argument("run_id")
@json_option()
def show(run_id: str, as_json: bool) -> None:
    """One run: its steps while it is live, its report when it has ended."""
    from ..core.render import report_json  # noqa: PLC0415
    from ..engine.client import Client  # noqa: PLC0415
    from ..hermes.commands import show_text  # noqa: PLC0415

    client = Client()
    found = client.show(run_id)
    if as_json:
        say_json(report_json(client.result(run_id)) if found.status is RunStatus.ENDED else run_json(found))
        return
    report = Path(client.result(run_id).report_path or "/nonexistent") if found.outcome else None
    if report and report.is_file():
        show_report(report.read_text(encoding="utf-8"))
    else:
        say(show_text(found))
        if found.status is RunStatus.PAUSED:
            say(goes_on(found))


def goes_on(run: RunView) -> str:
    """How a run that waits for a person goes on."""
    return f"go on with: matrix-coder {'approve' if 'approval' in run.reason else 'resume'} {run.run_id}"


@cli.command()
@click.argument("run_id")
@click.argument("step", type=click.IntRange(1), required=False)
@json_option("The files with their line counts, and the patch, as JSON.")
@click.option("--pager", is_flag=True, help="Show it in $PAGER, in a terminal.")
def diff(run_id: str, step: int | None, as_json: bool, pager: bool) -> None:
    """What a run changed so far, or one of its steps."""
    from ..engine.client import Client  # noqa: PLC0415

    patch = Client().diff(run_id, step)
    if as_json:
        say_json(_diff_json(run_id, step, patch))
        return
    text = patch.rstrip("\n") or "Nothing differs."
    if not sys.stdout.isatty():
        say(text)
        return
    shown = _coloured(cleaned(text)) if has_colour() else cleaned(text)
    if pager:
        click.echo_via_pager(shown + "\n", color=has_colour())
    else:
        click.echo(shown, color=has_colour())


def _diff_json(run_id: str, step: int | None, patch: str) -> dict[str, Any]:
    from ..core.patches import parse  # noqa: PLC0415

    files = [
        {"path": f.path, "old_path": f.old_path, "change": f.change, "added": f.added, "removed": f.removed}
        for f in parse(patch)
    ]
    return {"run_id": run_id, "step": step, "files": files, "patch": patch}


def _coloured(patch: str) -> str:
    return "\n".join(_coloured_line(line) for line in patch.split("\n"))


def _coloured_line(line: str) -> str:
    if line.startswith(
        ("diff --git ", "--- ", "+++ ", "index ", "new file ", "deleted file ", "old mode ", "new mode ")
    ):
        return click.style(line, bold=True)
    colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return click.style(line, fg=colour) if colour else line


@cli.command()
@click.argument("run_id")
@click.option("--step", type=click.IntRange(1), default=None, help="Only this step.")
@json_option()
def logs(run_id: str, step: int | None, as_json: bool) -> None:
    """The whole output of a run's checks, the end of each step's own log, and where everything lies."""
    from ..engine.client import Client  # noqa: PLC0415
    from .logs import logs_json, logs_text  # noqa: PLC0415

    client = Client()
    told = logs_json(client.store.home, client.show(run_id), step)
    if as_json:
        say_json(told)
    else:
        say(logs_text(told))
