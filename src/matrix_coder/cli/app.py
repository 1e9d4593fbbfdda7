"""The command line itself: its group, how it ends, and what every command shares."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from .._version import __version__
from ..core.errors import MatrixError
from ..core.models import RunOutcome

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


def has_colour() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


@cli.command(name="help", hidden=True)
@click.pass_context
def help_(ctx: click.Context) -> None:
    """The list of commands."""
    click.echo(cli.get_help(ctx.parent or ctx))


def run_words(arguments: list[str], program: str) -> int:
    """Run one command line; the exit code."""
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
