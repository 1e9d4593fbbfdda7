"""What a terminal is shown. Texts of models and repositories never reach it with what it would obey."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from ..core.shown import cleaned, one_line

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "can_ask",
    "cleaned",
    "console",
    "draw",
    "has_colour",
    "is_terminal",
    "one_line",
    "say",
    "show_report",
    "warn",
]


def is_terminal() -> bool:
    """Whether a person looks at what is printed, in a terminal that can do more than print."""
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


def can_ask() -> bool:
    """Whether there is a person to ask: both where the question stands and where the answer comes from."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def has_colour() -> bool:
    """Whether colours are wanted: in a terminal, and nobody set NO_COLOR."""
    return is_terminal() and not os.environ.get("NO_COLOR")


def console() -> Console:
    """The terminal as rich draws on it: no markup, no guesses about what to highlight, no colours against NO_COLOR."""
    from rich.console import Console  # noqa: PLC0415 - pipes need none

    return Console(force_terminal=True, markup=False, emoji=False, highlight=False, no_color=not has_colour())


def say(text: str) -> None:
    """Print text that holds words of models or repositories: to a pipe as it is, to a terminal cleaned."""
    click.echo(cleaned(text) if sys.stdout.isatty() else text.encode("utf-8", "surrogateescape"))


def warn(text: str) -> None:
    """The same on stderr."""
    click.echo(cleaned(text) if sys.stderr.isatty() else text.encode("utf-8", "surrogateescape"), err=True)


def draw(renderable: Any) -> None:
    """Print something that rich draws, at the terminal's width."""
    console().print(renderable)


def show_report(markdown: str) -> None:
    """A run's report: Markdown as it is to a pipe, laid out in a terminal. Links stay words."""
    if not is_terminal():
        say(markdown)
        return
    from .report import Report  # noqa: PLC0415 - pipes need none

    draw(Report(cleaned(markdown), hyperlinks=False))
