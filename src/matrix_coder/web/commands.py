"""What the page can tell a run to do. A row of the table is all that a new command needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..core.errors import InputError
from ..core.models import RunStatus, RunView
from ..engine.client import Client
from .problems import CommandMissing, CommandUnknown
from .shapes import CommandArgument, CommandOffer

Arguments = Mapping[str, str | int | float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command. `confirm` is what a page asks before what can't be taken back; `act` returns what to say."""

    name: str
    label: str
    offered: Callable[[RunView], bool]
    act: Callable[[Client, str, Arguments], str]
    confirm: str = ""
    arguments: tuple[CommandArgument, ...] = ()


def _is_live(run: RunView) -> bool:
    return run.status is not RunStatus.ENDED


def _cancel(client: Client, run_id: str, _: Arguments) -> str:
    run = client.cancel(run_id, "asked for on the dashboard")
    if run.status is RunStatus.ENDED:
        return f"{run.run_id} had ended already: {run.outcome}"
    return f"{run.run_id} is being stopped, with everything it started."


_TABLE = {
    c.name: c
    for c in (
        Command(
            name="cancel",
            label="Cancel run",
            confirm="Stop this run and everything it started? What it changed so far stays in the workspace.",
            offered=_is_live,
            act=_cancel,
        ),
    )
}
# Named in the documentation, so that asking for one gets a better answer than "unknown".
_ELSEWHERE = ("pause", "resume", "steer", "answer", "approve", "raise", "undo")


def offers(run: RunView) -> list[CommandOffer]:
    """The commands that can be given to this run as it is."""
    return [
        CommandOffer(name=c.name, label=c.label, confirm=c.confirm, arguments=list(c.arguments))
        for c in _TABLE.values()
        if c.offered(run)
    ]


def carry_out(client: Client, run_id: str, name: str, arguments: Arguments) -> str:
    """Give a command to a run; what to say. Raises RunUnknown, CommandUnknown, CommandMissing, InputError."""
    client.show(run_id)
    command = _TABLE.get(name)
    known = ", ".join(_TABLE)
    if command is None and name in _ELSEWHERE:
        raise CommandMissing(f"a command that this version carries out ({known})", name, f"use {known}")
    if command is None:
        raise CommandUnknown(f"a command ({known})", name[:40] or "nothing", f"use {known}")
    _require(command, arguments)
    return command.act(client, run_id, arguments)


def _require(command: Command, arguments: Arguments) -> None:
    allowed = {a.name for a in command.arguments}
    foreign = sorted(set(arguments) - allowed)
    missing = [a.name for a in command.arguments if a.required and not str(arguments.get(a.name, "")).strip()]
    if foreign or missing:
        wanted = ", ".join(sorted(allowed)) or "no arguments"
        raise InputError(f"{wanted} for {command.name}", ", ".join(foreign) or f"no {missing[0]}", "mend the arguments")
