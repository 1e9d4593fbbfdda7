"""The command line itself: its group, its exit codes, and how an error leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, cast

import click

from .._version import __version__
from ..core.errors import MatrixError
from ..core.models import RunOutcome, RunView
from ..core.serde import plain
from ..hermes.troubles import store_troubles
from .terminal import warn

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
# A followed run that waits for a person has no outcome yet.
EXIT_WAITS = 20
EXIT_LEFT = 130


_SECTIONS = {
    "Routing": ("route", "why", "eval", "words", "never", "forget"),
    "Runs": ("run", "watch", "status", "runs", "show", "diff", "logs"),
    "Steering a run": ("pause", "resume", "steer", "answer", "approve", "raise", "cancel"),
    "What a run has changed": ("undo", "take", "merge", "checkouts", "drop"),
    "This installation": ("doctor", "dashboard-link"),
}


class Sections(click.Group):
    """A group whose commands are listed by what they are for, each with its whole first sentence."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections into the help."""
        for title, names in _SECTIONS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            with formatter.section(title):
                formatter.write_dl([(name, c.get_short_help_str(200)) for name, c in commands if c is not None])


@click.group(cls=Sections, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="matrix-coder")
def cli() -> None:
    """Specialist routing and honest coding loops for Hermes Agent."""


def json_option(help_: str = "As JSON.") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option `--json`, as the parameter `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help=help_)


jsonl_option = click.option(
    "--jsonl", "as_jsonl", is_flag=True, help="Each event as a JSON object on a line, then the report."
)


def say_json(data: object) -> None:
    """Print one JSON document. What is no text in it (bytes of a repository) is replaced."""
    text = json.dumps(data, ensure_ascii=False, indent=1)
    click.echo(text.encode("utf-8", "replace"))


def say_line(data: object) -> None:
    """Print one JSON document on one line."""
    click.echo(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))


def run_json(run: RunView) -> dict[str, Any]:
    """A run with its steps as plain JSON data, live or ended."""
    return cast("dict[str, Any]", plain(asdict(run)))


@cli.command(name="help", hidden=True)
@click.pass_context
def help_(ctx: click.Context) -> None:
    """The list of commands."""
    click.echo(cli.get_help(ctx.parent or ctx))


def run_words(arguments: list[str], program: str) -> int:
    """Run one command line; the exit code. Expected errors are one line on stderr, or JSON where JSON was asked for."""
    as_json = _wants_json(arguments)
    try:
        with store_troubles():
            code = cli.main(arguments, prog_name=program, standalone_mode=False)
    except MatrixError as error:
        _tell(error, as_json)
        return error.exit_code
    except click.exceptions.Exit as left:
        return left.exit_code
    except click.exceptions.NoArgsIsHelpError as asked:
        click.echo(asked.format_message())
        return 0
    except click.exceptions.Abort:
        return EXIT_LEFT
    except click.ClickException as wrong:
        path = wrong.ctx.command_path if isinstance(wrong, click.UsageError) and wrong.ctx else program
        told = " ".join(wrong.format_message().split()).rstrip(".")
        remedy = f"try: {path} --help"
        if "unexpected extra argument" in told:
            remedy = f"a text of several words stands in quotes; {remedy}"
        if as_json:
            _error_json("usage", "a command line that can be read", told, remedy)
        else:
            warn(f"matrix-coder: {told}; {remedy}")
        return wrong.exit_code
    return code if isinstance(code, int) else 0


def _wants_json(arguments: list[str]) -> bool:
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options or "--jsonl" in options


def _tell(error: MatrixError, as_json: bool) -> None:
    if as_json:
        _error_json(error.code, error.expected, error.found, error.remedy)
    else:
        warn(f"matrix-coder: {error}")


def _error_json(code: str, expected: str, found: str, remedy: str) -> None:
    told = {"error": {"code": code, "expected": expected, "found": found, "remedy": remedy}}
    click.echo(json.dumps(told, ensure_ascii=False).encode("utf-8", "replace"), err=True)
