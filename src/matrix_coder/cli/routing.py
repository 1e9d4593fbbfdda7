"""Commands about routing: how a message is routed, and what is not inferred."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click

from ..core.errors import InputError
from ..core.render import counted
from .app import cli, json_option, say_json, say_line
from .steer import chat_command
from .terminal import has_colour, is_terminal, say, warn


@cli.command()
@click.argument("text", required=False)
@json_option("The decision as JSON.")
@click.option("--explain", is_flag=True, help="Every signal that fired, and what it voted for.")
@click.option("--jsonl", is_flag=True, help='Read {"text": ...} lines from stdin, answer one JSON object a line.')
def route(text: str | None, as_json: bool, explain: bool, jsonl: bool) -> None:
    """Show how a message would be routed."""
    from ..routing_cli import in_words, route_text  # noqa: PLC0415 - other commands need no lexicon

    _use_words()
    if jsonl:
        _route_lines()
        return
    if text is None:
        raise InputError("a message", "none", 'give one: matrix-coder route "fix the login bug"')
    click.echo(route_text(text, as_json=as_json, explain=explain, colour=has_colour()), color=has_colour())
    if is_terminal() and not as_json and not explain:
        click.echo(click.style(in_words(text), dim=has_colour() or None), color=has_colour())


def _route_lines() -> None:
    """Answer every line of stdin. Raises InputError at the end where some could not be read."""
    from ..routing_cli import route_lines  # noqa: PLC0415

    unread: list[int] = []
    for number, told in route_lines(sys.stdin.buffer):
        say_line(told)
        if "error" in told:
            unread.append(number)
    if unread:
        named = ", ".join(map(str, unread[:10])) + (", ..." if len(unread) > 10 else "")
        raise InputError(
            '{"text": ...} on each line', f"{counted(len(unread), 'other line')}: {named}", "see the error of each"
        )


@cli.command()
@click.argument("text")
@json_option("The decision with every signal as JSON.")
def why(text: str, as_json: bool) -> None:
    """Why a message is routed as it is: the decision with every signal."""
    from ..routing_cli import route_text  # noqa: PLC0415

    _use_words()
    click.echo(route_text(text, as_json=as_json, explain=True, colour=has_colour()), color=has_colour())


@cli.group()
def words() -> None:
    """The team's own words for routing."""


@words.command(name="check")
@json_option()
def words_check(as_json: bool) -> None:
    """Whether the words file can be used; exit code 2 and one line when it can't."""
    from ..hermes.words import load_words, words_file  # noqa: PLC0415

    found = load_words()
    path = words_file()
    if as_json:
        say_json({"path": str(path), "entries": len(found) if found is not None else 0, "in_use": found is not None})
    else:
        say(f"{path}: {len(found)} entries, in use" if found is not None else f"no file at {path}: nothing to check")


def _use_words() -> None:
    """Route as a chat would; a broken words file costs its words and a line on stderr."""
    from ..hermes.words import apply_words  # noqa: PLC0415

    told = apply_words()
    if told:
        warn(f"matrix-coder: {told}")


@cli.command(name="eval")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--misses", type=click.IntRange(0, 1000), default=10, show_default=True, help="Misses to list.")
@json_option("The figures of each kind, and the misses, as JSON.")
def eval_(file: Path, misses: int, as_json: bool) -> None:
    """Score the router on a labelled JSONL FILE, kind by kind, with its worst misses."""
    from ..routing_eval import evaluate, text  # noqa: PLC0415

    try:
        found = evaluate(file, misses=misses)
    except (ValueError, KeyError, TypeError) as error:
        remedy = (
            "see tests/corpus/routing_own.jsonl for the form: text, coding, verdict_ok, role, lens, domain, source_kind"
        )
        raise InputError("a file of labelled messages, one JSON object a line", str(error), remedy) from error
    if as_json:
        say_json(asdict(found))
    else:
        say(text(found))


@cli.command()
@click.argument("phrase")
@json_option()
def never(phrase: str, as_json: bool) -> None:
    """Infer no specialist from messages that hold PHRASE."""
    _preference("never", phrase, as_json=as_json)


@cli.command()
@click.argument("phrase", required=False)
@json_option()
def forget(phrase: str | None, as_json: bool) -> None:
    """Take a `never` back, or list them."""
    _preference("forget", *([phrase] if phrase else []), as_json=as_json)


def _preference(name: str, *phrase: str, as_json: bool) -> None:
    from ..engine.paths import hermes_home  # noqa: PLC0415
    from ..hermes.preferences import Preferences  # noqa: PLC0415

    message = chat_command(name, *phrase)
    if as_json:
        say_json({"command": name, "message": message, "phrases": list(Preferences(hermes_home()).phrases())})
    else:
        say(message)


@cli.command(name="dashboard-link")
@json_option()
def dashboard_link(as_json: bool) -> None:
    """Make the Matrix page appear in `hermes dashboard`, for an installation by pip."""
    from ..engine.paths import hermes_home  # noqa: PLC0415
    from ..hermes.page_link import link_page  # noqa: PLC0415

    message = link_page(hermes_home())
    if as_json:
        say_json({"command": "dashboard-link", "message": message})
    else:
        say(message)
