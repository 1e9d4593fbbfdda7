"""Commands that change what a run does, or what it left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ..core.models import RunStatus
from .app import cli, json_option, say_json
from .look import brief
from .terminal import say


def _command(name: str, *arguments: Callable[..., Any]) -> Callable[[Callable[..., Any]], click.Command]:
    """A command over one run: its id, what else it takes, and `--json`."""

    def make(function: Callable[..., Any]) -> click.Command:
        for argument in (json_option(), *reversed(arguments), click.argument("run_id")):
            function = argument(function)
        return cli.command(name=name)(function)

    return make


_STEP = click.argument("step", type=click.IntRange(1), required=False)
_TEXT = click.argument("text")
_LIMITS = click.argument("limits", nargs=-1, required=True, metavar="LIMITS...")


@_command("cancel")
def cancel(run_id: str, as_json: bool) -> None:
    """Stop a run and every process it started."""
    from ..engine.client import Client  # noqa: PLC0415

    client = Client()
    before = client.cancel(run_id, "asked for at the terminal")
    if before.status is RunStatus.ENDED:
        _answer("cancel", run_id, f"{before.run_id} had ended already: {before.outcome}", as_json=as_json)
        return
    after = client.wait(run_id, timeout_s=15)
    _answer("cancel", run_id, f"{after.run_id}: {after.outcome or 'being stopped'}", as_json=as_json)


@_command("undo", _STEP)
def undo(run_id: str, step: int | None, as_json: bool) -> None:
    """Put back what a run changed, or its steps from STEP on."""
    _about_run("undo", run_id, *([str(step)] if step else []), as_json=as_json)


@_command("take")
def take(run_id: str, as_json: bool) -> None:
    """Bring what an isolated run changed into its repository."""
    _about_run("take", run_id, as_json=as_json)


@_command("pause")
def pause(run_id: str, as_json: bool) -> None:
    """Let a run wait before its next step."""
    _about_run("pause", run_id, as_json=as_json)


@_command("resume")
def resume(run_id: str, as_json: bool) -> None:
    """Let a paused run go on, or a failed one try its last step again."""
    _about_run("resume", run_id, as_json=as_json)


@_command("approve")
def approve(run_id: str, as_json: bool) -> None:
    """Approve what a run waits for."""
    _about_run("approve", run_id, as_json=as_json)


@_command("steer", _TEXT)
def steer(run_id: str, text: str, as_json: bool) -> None:
    """Tell a run's next step something."""
    _about_run("steer", run_id, text, as_json=as_json)


@_command("answer", _TEXT)
def answer(run_id: str, text: str, as_json: bool) -> None:
    """Answer a blocked run's question; it goes on from there."""
    _about_run("answer", run_id, text, as_json=as_json)


@_command("raise", _LIMITS)
def raise_(run_id: str, limits: tuple[str, ...], as_json: bool) -> None:
    """Allow a run more, such as cap=8 tokens=4m budget=3h money=10; one that ended at a limit goes on."""
    _about_run("raise", run_id, *limits, as_json=as_json)


def _about_run(name: str, run_id: str, *words: str, as_json: bool) -> None:
    from ..engine.client import Client  # noqa: PLC0415

    # A chat may leave the run out; here a word that is no run is a mistake, not the first word of a text.
    Client().show(run_id)
    _answer(name, run_id, chat_command(name, run_id, *words), as_json=as_json)


def _answer(name: str, run_id: str, message: str, *, as_json: bool) -> None:
    from ..engine.client import Client  # noqa: PLC0415

    if as_json:
        say_json({"command": name, "message": message, **brief(Client().show(run_id))})
    else:
        say(message)


def chat_command(name: str, *words: str) -> str:
    """What `/matrix name words` answers. Raises MatrixError."""
    from ..hermes.commands import Commands  # noqa: PLC0415

    return Commands(prefix="matrix-coder").call(name, list(words), "")
