"""Commands that start a run or follow one to its end."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import click

from ..core.errors import InputError
from ..core.models import RunOutcome, RunView
from .app import EXIT_CODES, cli


@cli.command()
@click.argument("workflow")
@click.argument("goal")
@click.option(
    "--repo", type=click.Path(path_type=Path), default=None, help="The repository to work in (default: here)."
)
@click.option("--check", "checks", multiple=True, help='A command whose exit code decides, such as "pytest -q".')
@click.option("--domain", default="", help="A stack whose rules the specialists should know.")
@click.option("--cap", type=click.IntRange(1, 100), default=None, help="Iterations that may be started.")
@click.option("--minutes", type=click.FloatRange(0.1, 10_080), default=None, help="Time budget.")
@click.option("--tokens", type=click.IntRange(1), default=None, help="Token budget.")
@click.option("--isolate", is_flag=True, help="Work in a checkout of its own; `take` brings the result.")
@click.option("--check-runs", type=click.IntRange(1, 20), default=1, help="Green runs in a row that a check needs.")
@click.option("--approve", default="", metavar="STEP", help="Wait for a person after this step, such as plan.")
@click.option("--follow/--detach", default=True, help="Show progress until the end (default), or return at once.")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON.")
@click.pass_context
def run(  # noqa: PLR0913, PLR0917 - one option, one parameter
    ctx: click.Context,
    workflow: str,
    goal: str,
    repo: Path | None,
    checks: tuple[str, ...],
    domain: str,
    cap: int | None,
    minutes: float | None,
    tokens: int | None,
    isolate: bool,
    check_runs: int,
    approve: str,
    follow: bool,
    as_json: bool,
) -> None:
    """Start WORKFLOW (ralph, autopilot, ultraqa, ultrawork) on GOAL, with your own Hermes configuration."""
    from ..engine.client import Client, Start, require_engine  # noqa: PLC0415 - `route` needs no engine
    from ..engine.paths import hermes_home  # noqa: PLC0415
    from ..hermes.model import require_model  # noqa: PLC0415
    from ..hermes.settings import load_settings, run_options  # noqa: PLC0415

    require_engine()
    if minutes is not None and not math.isfinite(minutes):
        raise InputError("a number of minutes", str(minutes), "give one, such as --minutes 30")
    options = {"cap": cap, "budget": minutes * 60 if minutes else None, "tokens": tokens}
    limits = load_settings(hermes_home()).run_limits(options)
    start = Start(
        workflow=workflow,
        goal=goal,
        workspace=repo or Path.cwd(),
        domain=domain,
        commands=checks,
        limits=limits,
        options=run_options({"isolate": isolate, "check_runs": check_runs, "approve": approve}),
    )
    start.check()
    model = require_model()
    started = Client().start(start)
    if not as_json:
        click.echo(f"{started.run_id} {workflow} in {started.workspace}")
        click.echo(f"checks: {', '.join(started.checks) or 'none found: nothing can be verified'}")
        click.echo(f"model: {model}; limits: {limits.words()}")
    if not follow:
        click.echo(
            json.dumps({"run_id": started.run_id}) if as_json else f"watch it: matrix-coder watch {started.run_id}"
        )
        return
    _follow(ctx, started.run_id, as_json)


@cli.command()
@click.argument("run_id")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON.")
@click.pass_context
def watch(ctx: click.Context, run_id: str, as_json: bool) -> None:
    """Follow a run until it ends; the exit code tells its outcome."""
    _follow(ctx, run_id, as_json)


def _follow(ctx: click.Context, run_id: str, as_json: bool) -> None:
    from ..core.render import report_json  # noqa: PLC0415
    from ..engine.client import Client  # noqa: PLC0415
    from ..hermes.follow import progress_line  # noqa: PLC0415

    def tell(kind: str, data: dict[str, Any]) -> None:
        line = progress_line(run_id, kind, data)
        if line and not as_json:
            click.echo(line)

    client = Client()
    try:
        ended = client.wait(run_id, on_event=tell)
    except KeyboardInterrupt:
        click.echo(f"\n{run_id} goes on: matrix-coder watch {run_id} | matrix-coder cancel {run_id}", err=True)
        ctx.exit(130)
    result = client.result(run_id)
    if as_json:
        click.echo(json.dumps(report_json(result), ensure_ascii=False, indent=1))
    elif result.report_path:
        click.echo("\n" + Path(result.report_path).read_text(encoding="utf-8"))
    ctx.exit(EXIT_CODES[_outcome(ended)])


def _outcome(run: RunView) -> RunOutcome:
    return run.outcome or RunOutcome.FAILED
