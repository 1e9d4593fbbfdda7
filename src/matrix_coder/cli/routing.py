"""Commands about routing: how a message is routed, and what is not inferred."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..core.errors import InputError
from .app import cli, has_colour
from .steer import chat_command


@cli.command()
@click.argument("text", required=False)
@click.option("--json", "as_json", is_flag=True, help="The decision as JSON.")
@click.option("--explain", is_flag=True, help="Every signal that fired, and what it voted for.")
@click.option("--jsonl", is_flag=True, help='Read {"text": ...} lines from stdin, answer one JSON object a line.')
def route(text: str | None, as_json: bool, explain: bool, jsonl: bool) -> None:
    """Show how a message would be routed."""
    from ..routing_cli import route_jsonl, route_text  # noqa: PLC0415 - other commands need no lexicon

    _use_words()
    if jsonl:
        route_jsonl(sys.stdin, sys.stdout)
        return
    if text is None:
        raise InputError("a message", "none", 'give one: matrix-coder route "fix the login bug"')
    click.echo(route_text(text, as_json=as_json, explain=explain, colour=has_colour()), color=has_colour())


@cli.group()
def words() -> None:
    """The team's own words for routing."""


@words.command(name="check")
def words_check() -> None:
    """Whether the words file can be used; exit code 2 and one line when it can't."""
    from ..hermes.words import load_words, words_file  # noqa: PLC0415

    found = load_words()
    path = words_file()
    click.echo(f"{path}: {len(found)} entries, in use" if found is not None else f"no file at {path}: nothing to check")


def _use_words() -> None:
    """Route as a chat would; a broken words file costs its words and a line on stderr."""
    from ..hermes.words import apply_words  # noqa: PLC0415

    told = apply_words()
    if told:
        click.echo(f"matrix-coder: {told}", err=True)


@cli.command(name="eval")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--misses", type=click.IntRange(0, 1000), default=10, show_default=True, help="Misses to list.")
def eval_(file: Path, misses: int) -> None:
    """Score the router on a labelled JSONL FILE, kind by kind, with its worst misses."""
    from ..routing_eval import evaluate  # noqa: PLC0415

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
    chat_command("never", phrase)


@cli.command()
@click.argument("phrase", required=False)
def forget(phrase: str | None) -> None:
    """Take a `never` back, or list them."""
    chat_command("forget", *([phrase] if phrase else []))


@cli.command(name="dashboard-link")
def dashboard_link() -> None:
    """Make the Matrix page appear in `hermes dashboard`, for an installation by pip."""
    from ..engine.paths import hermes_home  # noqa: PLC0415
    from ..hermes.page_link import link_page  # noqa: PLC0415

    click.echo(link_page(hermes_home()))


@cli.command()
@click.argument("text")
def why(text: str) -> None:
    """Why a message is routed as it is: the decision with every signal."""
    from ..routing_cli import route_text  # noqa: PLC0415

    _use_words()
    click.echo(route_text(text, explain=True, colour=has_colour()), color=has_colour())
