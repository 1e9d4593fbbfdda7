"""Commands that start a run or follow one to its end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..core.models import RunOutcome, RunStatus, RunView
from . import amounts
from .app import EXIT_CODES, EXIT_LEFT, EXIT_WAITS, cli, json_option, jsonl_option, run_json, say_json, say_line
from .look import goes_on
from .terminal import console, is_terminal, say, show_report

if TYPE_CHECKING:
    from ..engine.client import Client
    from .follow import Screen


@cli.command()
@click.argument("workflow")
@click.argument("goal")
@click.option(
    "--repo", type=click.Path(path_type=Path), default=None, help="The repository to work in (default: here)."
)
@click.option(
    "--check", "checks", multiple=True, help='A command whose exit code decides, such as "pytest -q"; may be repeated.'
)
@click.option("--domain", default="", help="A stack whose rules the specialists should know.")
@click.option("--cap", type=click.IntRange(1, 100), default=None, help="Iterations that may be started.")
@click.option(
    "--minutes",
    type=amounts.minutes,
    metavar="TIME",
    default=None,
    help="Time budget in minutes, or such as 90s, 30m or 2h.",
)
@click.option(
    "--tokens", type=amounts.tokens, metavar="NUMBER", default=None, help="Token budget, such as 200000, 200k or 2m."
)
@click.option("--money", type=amounts.dollars, metavar="DOLLARS", default=None, help="Money budget.")
@click.option("--isolate", is_flag=True, help="Work in a checkout of its own; `take` brings the result.")
@click.option("--check-runs", type=click.IntRange(1, 20), default=1, help="Green runs in a row that a check needs.")
@click.option("--approve", default="", metavar="STEP", help="Wait for a person after this step, such as plan.")
@click.option("--follow/--detach", default=True, help="Show progress until the end (default), or return at once.")
@json_option("The result as JSON.")
@jsonl_option
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
    money: float | None,
    isolate: bool,
    check_runs: int,
    approve: str,
    follow: bool,
    as_json: bool,
    as_jsonl: bool,
) -> None:
    """Start WORKFLOW on GOAL, with your own Hermes configuration.

    \b
    ralph      do, verify, until a check proves it
    autopilot  plan once, then do, test, review, verify
    ultraqa    test, verify and mend until the suite is green
    ultrawork  plan into units, work on them side by side, merge, verify

    Without --check it is what the repository shows, such as pytest. Limits that are not given are those of your
    settings: 5 iterations, 2 hours and 2 million tokens unless you changed them.

    \b
    matrix-coder run ralph "make the tests pass" --check "pytest -q"
    """
    from ..engine.client import Client, Start, require_engine  # noqa: PLC0415 - `route` needs no engine
    from ..engine.paths import hermes_home  # noqa: PLC0415
    from ..hermes.model import require_model  # noqa: PLC0415
    from ..hermes.settings import load_settings, run_options  # noqa: PLC0415

    require_engine()
    options = {"cap": cap, "budget": minutes * 60 if minutes else None, "tokens": tokens, "money": money}
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
    client = Client()
    started = client.start(start)
    if not as_json and not as_jsonl:
        say(f"{started.run_id} {workflow} in {started.workspace}")
        say(f"checks: {', '.join(started.checks) or 'none found: nothing can be verified'}")
        say(f"model: {model}; limits: {limits.words()}")
    if follow:
        _follow(ctx, client, started.run_id, as_json=as_json, as_jsonl=as_jsonl)
    elif as_json or as_jsonl:
        (say_json if as_json else say_line)(run_json(started))
    else:
        say(f"watch it: matrix-coder watch {started.run_id}")


@cli.command()
@click.argument("run_id")
@json_option("The result as JSON.")
@jsonl_option
@click.pass_context
def watch(ctx: click.Context, run_id: str, as_json: bool, as_jsonl: bool) -> None:
    """Follow a run until it ends; the exit code tells its outcome."""
    from ..engine.client import Client  # noqa: PLC0415

    _follow(ctx, Client(), run_id, as_json=as_json, as_jsonl=as_jsonl)


def _follow(ctx: click.Context, client: Client, run_id: str, *, as_json: bool, as_jsonl: bool) -> None:
    from .follow import Left, follow, tell_left  # noqa: PLC0415

    screen = _screen(client, run_id, as_json=as_json, as_jsonl=as_jsonl)
    try:
        ended = follow(client, run_id, screen)
    except Left:
        tell_left(run_id)
        ctx.exit(EXIT_LEFT)
    if ended.status is not RunStatus.ENDED:
        _tell_waits(ended, as_json=as_json, as_jsonl=as_jsonl)
        ctx.exit(EXIT_WAITS)
    _tell_result(client, run_id, as_json=as_json, as_jsonl=as_jsonl)
    ctx.exit(EXIT_CODES[ended.outcome or RunOutcome.FAILED])


def _screen(client: Client, run_id: str, *, as_json: bool, as_jsonl: bool) -> Screen:
    from .follow import JsonLines, Lines, Screen  # noqa: PLC0415

    if as_jsonl:
        return JsonLines(run_id)
    if as_json:
        return Screen()
    if not is_terminal():
        return Lines(run_id)
    from .live import LiveView  # noqa: PLC0415 - only a terminal needs it

    client.show(run_id)  # an unknown run is an error and no view
    return LiveView(client, run_id, console())


def _tell_waits(run: RunView, *, as_json: bool, as_jsonl: bool) -> None:
    if as_jsonl:
        say_line({"run": run_json(run)})
    elif as_json:
        say_json(run_json(run))
    else:
        say(f"{run.run_id}: {goes_on(run)}")


def _tell_result(client: Client, run_id: str, *, as_json: bool, as_jsonl: bool) -> None:
    from ..core.render import report_json  # noqa: PLC0415

    result = client.result(run_id)
    if as_jsonl:
        say_line({"report": report_json(result)})
    elif as_json:
        say_json(report_json(result))
    elif result.report_path:
        click.echo()
        show_report(Path(result.report_path).read_text(encoding="utf-8"))
