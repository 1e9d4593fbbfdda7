"""Commands that look at runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ..core.models import RunStatus, RunView
from .app import cli


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
def runs(as_json: bool, limit: int) -> None:
    """The newest runs."""
    from ..engine.client import Client  # noqa: PLC0415
    from ..hermes.commands import run_line  # noqa: PLC0415

    found = Client().runs(limit=limit)
    if as_json:
        click.echo(json.dumps([_brief(r) for r in found], ensure_ascii=False))
        return
    click.echo("\n".join(run_line(r) for r in found) or 'No runs yet. Start one: matrix-coder run ralph "goal"')


def _brief(run: RunView) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "workflow": run.workflow,
        "goal": run.goal,
        "workspace": run.workspace,
        "status": run.status,
        "outcome": run.outcome,
        "iteration": run.iteration,
        "cap": run.cap,
    }


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def status(as_json: bool) -> None:
    """The runs that are live now."""
    from ..engine.client import Client  # noqa: PLC0415
    from ..hermes.commands import run_line  # noqa: PLC0415

    live = [r for r in Client().runs(limit=1000) if r.status is not RunStatus.ENDED]
    if as_json:
        click.echo(json.dumps([_brief(r) for r in live], ensure_ascii=False))
        return
    click.echo("\n".join(run_line(r) for r in live) or "No run is live.")


@cli.command()
@click.argument("run_id")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def show(run_id: str, as_json: bool) -> None:
    """One run: its steps while it is live, its report when it has ended."""
    from ..core.render import report_json  # noqa: PLC0415
    from ..engine.client import Client  # noqa: PLC0415
    from ..hermes.commands import show_text  # noqa: PLC0415

    client = Client()
    found = client.show(run_id)
    if as_json:
        ended = found.status is RunStatus.ENDED
        data = report_json(client.result(run_id)) if ended else _brief(found)
        click.echo(json.dumps(data, ensure_ascii=False, indent=1))
        return
    report = Path(client.result(run_id).report_path or "/nonexistent") if found.outcome else None
    click.echo(report.read_text(encoding="utf-8") if report and report.is_file() else show_text(found))


@cli.command()
@click.argument("run_id")
@click.argument("step", type=click.IntRange(1), required=False)
def diff(run_id: str, step: int | None) -> None:
    """What a run changed so far, or one of its steps."""
    from ..engine.client import Client  # noqa: PLC0415

    click.echo(Client().diff(run_id, step).rstrip("\n") or "Nothing differs.")


@cli.command()
@click.argument("run_id")
@click.option("--step", type=click.IntRange(1), default=None, help="Only this step.")
def logs(run_id: str, step: int | None) -> None:
    """The whole output of a run's checks, and where each step's prompt and log lie."""
    from ..engine.client import Client  # noqa: PLC0415
    from ..hermes.commands import logs_text  # noqa: PLC0415

    client = Client()
    click.echo(logs_text(client.store.home, client.show(run_id), step))
