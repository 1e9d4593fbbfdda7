"""Commands that change what a run does, or what it left."""

from __future__ import annotations

import click

from ..core.models import RunStatus
from .app import cli


@cli.command()
@click.argument("run_id")
def cancel(run_id: str) -> None:
    """Stop a run and every process it started."""
    from ..engine.client import Client  # noqa: PLC0415

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
def undo(run_id: str, step: int | None) -> None:
    """Put back what a run changed, or its steps from STEP on."""
    chat_command("undo", run_id, *([str(step)] if step else []))


@cli.command()
@click.argument("run_id")
@click.argument("unit")
def merge(run_id: str, unit: str) -> None:
    """Try again to merge a unit of an ended run, after its checks."""
    chat_command("merge", run_id, unit)


@cli.command()
@click.argument("run_id")
def take(run_id: str) -> None:
    """Bring what an isolated run changed into its repository."""
    chat_command("take", run_id)


@cli.command()
@click.argument("run_id")
def pause(run_id: str) -> None:
    """Let a run wait before its next step."""
    chat_command("pause", run_id)


@cli.command()
@click.argument("run_id")
def resume(run_id: str) -> None:
    """Let a paused run go on, or a failed one try its last step again."""
    chat_command("resume", run_id)


@cli.command()
@click.argument("run_id")
def approve(run_id: str) -> None:
    """Approve what a run waits for."""
    chat_command("approve", run_id)


@cli.command()
@click.argument("run_id")
@click.argument("text")
def steer(run_id: str, text: str) -> None:
    """Tell a run's next step something."""
    chat_command("steer", run_id, text)


@cli.command()
@click.argument("run_id")
@click.argument("text")
def answer(run_id: str, text: str) -> None:
    """Answer a blocked run's question; it goes on from there."""
    chat_command("answer", run_id, text)


@cli.command(name="raise")
@click.argument("run_id")
@click.argument("limits", nargs=-1, required=True, metavar="LIMITS...")
def raise_(run_id: str, limits: tuple[str, ...]) -> None:
    """Allow a run more, such as cap=8 tokens=4m budget=3h; one that ended at a limit goes on."""
    chat_command("raise", run_id, *limits)


def chat_command(name: str, *words: str) -> None:
    """Run what `/matrix name words` runs; an error leaves with its exit code."""
    from ..hermes.commands import Commands  # noqa: PLC0415

    click.echo(Commands().call(name, list(words), ""))
