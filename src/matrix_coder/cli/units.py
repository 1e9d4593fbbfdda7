"""Commands about what a run keeps apart: a unit that was left out, a checkout of its own."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from ..core.errors import InputError
from ..core.models import RunOutcome
from .app import EXIT_CODES, EXIT_LEFT, cli, json_option, say_json
from .look import brief
from .terminal import can_ask, say, warn

if TYPE_CHECKING:
    from ..engine.client import Client


@cli.command()
@click.argument("run_id")
@click.argument("unit")
@click.option("--wait/--detach", default=True, help="Wait for what comes of it (default), or return at once.")
@json_option("What came of it as JSON.")
@click.pass_context
def merge(ctx: click.Context, run_id: str, unit: str, wait: bool, as_json: bool) -> None:
    """Merge a unit that an ended run left out, after its checks; exit code 17 where it stays out."""
    from ..engine.client import Client  # noqa: PLC0415

    client = Client()
    client.merge(run_id, unit)
    if not wait:
        told = f"{unit} is being merged; watch it: matrix-coder watch {run_id}"
        _tell_merge(client, run_id, unit, told, as_json=as_json)
        return
    try:
        client.wait(run_id)
    except KeyboardInterrupt:
        warn(f"{run_id} goes on merging; watch it: matrix-coder watch {run_id}, stop it: matrix-coder cancel {run_id}")
        ctx.exit(EXIT_LEFT)
    merged, words = _outcome(client, run_id, unit)
    _tell_merge(client, run_id, unit, words, as_json=as_json)
    ctx.exit(0 if merged else EXIT_CODES[RunOutcome.FAILED])


def _outcome(client: Client, run_id: str, unit: str) -> tuple[bool, str]:
    came = client.unit_came(run_id, unit)
    if came is not None and came.state == "merged":
        return True, f"{unit} is merged, and the checks are as good as before: {', '.join(came.files[:20])}"
    return False, f"{unit} is not merged: {came.account(run_id) if came else client.show(run_id).reason}"


def _tell_merge(client: Client, run_id: str, unit: str, words: str, *, as_json: bool) -> None:
    if not as_json:
        say(words)
        return
    came = client.unit_came(run_id, unit)
    told = asdict(came) if came is not None else None
    say_json({"command": "merge", "message": words, "unit": told, **brief(client.show(run_id))})


@cli.command()
@click.argument("run_id")
@json_option()
def checkouts(run_id: str, as_json: bool) -> None:
    """The checkouts that a run keeps: of units that are not merged, and its own where it is isolated."""
    from ..engine.client import Client  # noqa: PLC0415
    from ..hermes.commands import kept_line  # noqa: PLC0415

    found = Client().checkouts(run_id)
    if as_json:
        say_json([asdict(k) for k in found])
    else:
        say("\n".join(kept_line(k) for k in found) or f"{run_id} keeps no checkout.")


@cli.command()
@click.argument("run_id")
@click.argument("unit", required=False, default="")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option()
@click.pass_context
def drop(ctx: click.Context, run_id: str, unit: str, yes: bool, as_json: bool) -> None:
    """Remove a unit's checkout for good, or, without UNIT, that of an isolated run."""
    from ..engine.client import Client  # noqa: PLC0415
    from ..hermes.commands import kept_line  # noqa: PLC0415

    client = Client()
    one = next((k for k in client.checkouts(run_id) if k.name == unit), None)
    if one is not None and not yes:
        if not can_ask():
            raise InputError("a yes to removing it for good", "nobody to ask", "say so with --yes")
        warn(kept_line(one))
        if not click.confirm("Remove it for good, with what is in it and nowhere else?", err=True):
            ctx.exit(EXIT_LEFT)
    gone = client.drop(run_id, unit)
    if as_json:
        say_json({"command": "drop", "dropped": asdict(gone), **brief(client.show(run_id))})
    else:
        say(f"Dropped for good: {gone.path}")
