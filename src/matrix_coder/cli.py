"""The command line: `matrix-coder ...`, and the same as `hermes matrix ...`."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import click

from ._version import __version__
from .core.errors import InputError, MatrixError
from .core.models import RunOutcome, RunStatus, RunView

# Documented in docs/operating.md. 0 is a verified run and nothing else; 2 is input that can't be used.
EXIT_CODES = {
    RunOutcome.VERIFIED: 0,
    RunOutcome.UNVERIFIED: 10,
    RunOutcome.CAP_REACHED: 11,
    RunOutcome.STALLED: 12,
    RunOutcome.BLOCKED: 13,
    RunOutcome.BUDGET: 14,
    RunOutcome.TAMPERED: 15,
    RunOutcome.CANCELLED: 16,
    RunOutcome.FAILED: 17,
}


class _Group(click.Group):
    """A group whose expected errors are one line on stderr and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except MatrixError as error:
            click.echo(f"matrix-coder: {error}", err=True)
            ctx.exit(error.exit_code)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="matrix-coder")
def cli() -> None:
    """Specialist routing and honest coding loops for Hermes Agent."""


@cli.command()
@click.argument("text", required=False)
@click.option("--json", "as_json", is_flag=True, help="The decision as JSON.")
@click.option("--explain", is_flag=True, help="Every signal that fired, and what it voted for.")
@click.option("--jsonl", is_flag=True, help='Read {"text": ...} lines from stdin, answer one JSON object a line.')
def route(text: str | None, as_json: bool, explain: bool, jsonl: bool) -> None:
    """Show how a message would be routed."""
    from .routing_cli import route_jsonl, route_text  # noqa: PLC0415 - other commands need no lexicon

    _use_words()
    if jsonl:
        route_jsonl(sys.stdin, sys.stdout)
        return
    if text is None:
        raise InputError("a message", "none", 'give one: matrix-coder route "fix the login bug"')
    click.echo(route_text(text, as_json=as_json, explain=explain, colour=_has_colour()), color=_has_colour())


@cli.group()
def words() -> None:
    """The team's own words for routing."""


@words.command(name="check")
def words_check() -> None:
    """Whether the words file can be used; exit code 2 and one line when it can't."""
    from .hermes.words import load_words, words_file  # noqa: PLC0415

    found = load_words()
    path = words_file()
    click.echo(f"{path}: {len(found)} entries, in use" if found is not None else f"no file at {path}: nothing to check")


def _use_words() -> None:
    """Route as a chat would; a broken words file costs its words and a line on stderr."""
    from .hermes.words import apply_words  # noqa: PLC0415

    told = apply_words()
    if told:
        click.echo(f"matrix-coder: {told}", err=True)


def _has_colour() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


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
    from .engine.client import Client, Start, require_engine  # noqa: PLC0415 - `route` needs no engine
    from .engine.paths import hermes_home  # noqa: PLC0415
    from .hermes.model import require_model  # noqa: PLC0415
    from .hermes.settings import load_settings, run_options  # noqa: PLC0415

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
    from .core.render import report_json  # noqa: PLC0415
    from .engine.client import Client  # noqa: PLC0415
    from .hermes.follow import progress_line  # noqa: PLC0415

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


@cli.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
def runs(as_json: bool, limit: int) -> None:
    """The newest runs."""
    from .engine.client import Client  # noqa: PLC0415
    from .hermes.commands import run_line  # noqa: PLC0415

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
    from .engine.client import Client  # noqa: PLC0415
    from .hermes.commands import run_line  # noqa: PLC0415

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
    from .core.render import report_json  # noqa: PLC0415
    from .engine.client import Client  # noqa: PLC0415
    from .hermes.commands import show_text  # noqa: PLC0415

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
def cancel(run_id: str) -> None:
    """Stop a run and every process it started."""
    from .engine.client import Client  # noqa: PLC0415

    client = Client()
    before = client.cancel(run_id, "asked for at the terminal")
    if before.status is RunStatus.ENDED:
        click.echo(f"{before.run_id} had ended already: {before.outcome}")
        return
    after = client.wait(run_id, timeout_s=15)
    click.echo(f"{after.run_id}: {after.outcome or 'being stopped'}")


@cli.command()
@click.argument("run_id")
@click.argument("step", type=click.IntRange(1), required=False)
def diff(run_id: str, step: int | None) -> None:
    """What a run changed so far, or one of its steps."""
    from .engine.client import Client  # noqa: PLC0415

    click.echo(Client().diff(run_id, step).rstrip("\n") or "Nothing differs.")


@cli.command()
@click.argument("run_id")
@click.argument("step", type=click.IntRange(1), required=False)
def undo(run_id: str, step: int | None) -> None:
    """Put back what a run changed, or its steps from STEP on."""
    _chat_command("undo", run_id, *([str(step)] if step else []))


@cli.command()
@click.argument("run_id")
@click.argument("unit")
def merge(run_id: str, unit: str) -> None:
    """Try again to merge a unit of an ended run, after its checks."""
    _chat_command("merge", run_id, unit)


@cli.command()
@click.argument("run_id")
def take(run_id: str) -> None:
    """Bring what an isolated run changed into its repository."""
    _chat_command("take", run_id)


@cli.command()
@click.argument("run_id")
@click.option("--step", type=click.IntRange(1), default=None, help="Only this step.")
def logs(run_id: str, step: int | None) -> None:
    """The whole output of a run's checks, and where each step's prompt and log lie."""
    from .engine.client import Client  # noqa: PLC0415
    from .hermes.commands import logs_text  # noqa: PLC0415

    client = Client()
    click.echo(logs_text(client.store.home, client.show(run_id), step))


@cli.command()
@click.argument("run_id")
def pause(run_id: str) -> None:
    """Let a run wait before its next step."""
    _chat_command("pause", run_id)


@cli.command()
@click.argument("run_id")
def resume(run_id: str) -> None:
    """Let a paused run go on, or a failed one try its last step again."""
    _chat_command("resume", run_id)


@cli.command()
@click.argument("run_id")
def approve(run_id: str) -> None:
    """Approve what a run waits for."""
    _chat_command("approve", run_id)


@cli.command()
@click.argument("run_id")
@click.argument("text")
def steer(run_id: str, text: str) -> None:
    """Tell a run's next step something."""
    _chat_command("steer", run_id, text)


@cli.command()
@click.argument("run_id")
@click.argument("text")
def answer(run_id: str, text: str) -> None:
    """Answer a blocked run's question; it goes on from there."""
    _chat_command("answer", run_id, text)


@cli.command(name="raise")
@click.argument("run_id")
@click.argument("limits", nargs=-1, required=True, metavar="LIMITS...")
def raise_(run_id: str, limits: tuple[str, ...]) -> None:
    """Allow a run more, such as cap=8 tokens=4m budget=3h; one that ended at a limit goes on."""
    _chat_command("raise", run_id, *limits)


def _chat_command(name: str, *words: str) -> None:
    """Run what `/matrix name words` runs; an error leaves with its exit code."""
    from .hermes.commands import Commands  # noqa: PLC0415

    click.echo(Commands().call(name, list(words), ""))


@cli.command(name="eval")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--misses", type=click.IntRange(0, 1000), default=10, show_default=True, help="Misses to list.")
def eval_(file: Path, misses: int) -> None:
    """Score the router on a labelled JSONL FILE, kind by kind, with its worst misses."""
    from .routing_eval import evaluate  # noqa: PLC0415

    try:
        click.echo(evaluate(file, misses=misses))
    except (ValueError, KeyError, TypeError) as error:
        remedy = (
            "see the files under tests/corpus for the form: text, coding, verdict_ok, role, lens, domain, source_kind"
        )
        raise InputError("a file of labelled messages, one JSON object a line", str(error), remedy) from error


@cli.command()
@click.argument("phrase")
def never(phrase: str) -> None:
    """Infer no specialist from messages that hold PHRASE."""
    _chat_command("never", phrase)


@cli.command()
@click.argument("phrase", required=False)
def forget(phrase: str | None) -> None:
    """Take a `never` back, or list them."""
    _chat_command("forget", *([phrase] if phrase else []))


@cli.command(name="dashboard-link")
def dashboard_link() -> None:
    """Make the Matrix page appear in `hermes dashboard`, for an installation by pip."""
    from .engine.paths import hermes_home  # noqa: PLC0415
    from .hermes.page_link import link_page  # noqa: PLC0415

    click.echo(link_page(hermes_home()))


@cli.command()
@click.argument("text")
def why(text: str) -> None:
    """Why a message is routed as it is: the decision with every signal."""
    from .routing_cli import route_text  # noqa: PLC0415

    _use_words()
    click.echo(route_text(text, explain=True, colour=_has_colour()), color=_has_colour())


@cli.command(name="help", hidden=True)
@click.pass_context
def help_(ctx: click.Context) -> None:
    """The list of commands."""
    click.echo(cli.get_help(ctx.parent or ctx))


def main() -> None:
    """The console script."""
    sys.exit(_run(sys.argv[1:], "matrix-coder"))


def run_in_host(arguments: list[str]) -> int:
    """Run one command line for `hermes matrix ...`; the exit code."""
    return _run(arguments, "hermes matrix")


def _run(arguments: list[str], program: str) -> int:
    try:
        code = cli.main(arguments, prog_name=program, standalone_mode=False)
    except click.exceptions.Exit as left:
        return left.exit_code
    except click.exceptions.NoArgsIsHelpError as asked:
        click.echo(asked.format_message())
        return 0
    except click.exceptions.Abort:
        return 130
    except click.ClickException as wrong:
        path = wrong.ctx.command_path if isinstance(wrong, click.UsageError) and wrong.ctx else program
        told = " ".join(wrong.format_message().split()).rstrip(".")
        click.echo(f"matrix-coder: {told}; try: {path} --help", err=True)
        return wrong.exit_code
    return code if isinstance(code, int) else 0
