"""What the page can tell a run to do. A row of the table is all that a new command needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..core.errors import InputError
from ..core.models import RunOutcome, RunStatus, RunView
from ..engine.client import Client
from .problems import CommandUnknown
from .shapes import CommandArgument, CommandOffer

Arguments = Mapping[str, str | int | float]
# The same as for a start; a step is a number that the store can hold.
_MOST = {"cap": 100, "tokens": 1_000_000_000, "minutes": 10_080, "money": 100_000, "step": 1_000_000_000}
# What `drop` calls the checkout in which an isolated run worked.
OWN = "the run's own"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command. `confirm` is what a page asks before what can't be taken back; `act` returns what to say.

    One that is done `later` is only asked for by then: the worker does it.
    """

    name: str
    label: str
    offered: Callable[[RunView], bool]
    act: Callable[[Client, str, Arguments], str]
    confirm: str = ""
    arguments: tuple[CommandArgument, ...] = ()
    later: bool = False


def _has_ended(run: RunView) -> bool:
    return run.outcome is not None


def _is_live(run: RunView) -> bool:
    return run.status is not RunStatus.ENDED


def _is_at_work(run: RunView) -> bool:
    return run.status in (RunStatus.QUEUED, RunStatus.RUNNING)


def _waits_for_approval(run: RunView) -> bool:
    return run.status is RunStatus.PAUSED and run.reason.startswith("waiting for approval")


def _can_resume(run: RunView) -> bool:
    return run.outcome is RunOutcome.FAILED or (run.status is RunStatus.PAUSED and not _waits_for_approval(run))


def _can_be_taken(run: RunView) -> bool:
    return bool(run.origin) and run.status is RunStatus.ENDED


def _can_be_raised(run: RunView) -> bool:
    return _is_live(run) or run.outcome in (RunOutcome.CAP_REACHED, RunOutcome.BUDGET)


def _cancel(client: Client, run_id: str, _: Arguments) -> str:
    run = client.cancel(run_id, "asked for on the dashboard")
    if run.status is RunStatus.ENDED:
        return f"{run.run_id} had ended already: {run.outcome}"
    return f"{run.run_id} is being stopped, with everything it started."


def _pause(client: Client, run_id: str, _: Arguments) -> str:
    return f"{client.pause(run_id).run_id} waits before its next step."


def _resume(client: Client, run_id: str, _: Arguments) -> str:
    return f"{client.resume(run_id).run_id} goes on."


def _approve(client: Client, run_id: str, _: Arguments) -> str:
    return f"{client.approve(run_id).run_id} is approved and goes on."


def _steer(client: Client, run_id: str, arguments: Arguments) -> str:
    return f"The next step of {client.steer(run_id, str(arguments['text'])).run_id} will know it."


def _answer(client: Client, run_id: str, arguments: Arguments) -> str:
    return f"{client.answer(run_id, str(arguments['text'])).run_id} knows the answer and goes on."


def _raise(client: Client, run_id: str, arguments: Arguments) -> str:
    cap, tokens = _whole(arguments, "cap"), _whole(arguments, "tokens")
    minutes, money = _number(arguments, "minutes"), _number(arguments, "money")
    if cap is None and tokens is None and minutes is None and money is None:
        raise InputError("a new cap, number of tokens, minutes or dollars", "none of them", "give at least one")
    run = client.raise_limits(
        run_id,
        cap=cap,
        tokens=tokens,
        budget_s=None if minutes is None else minutes * 60,
        money_usd=money,
    )
    return f"{run.run_id} may use more."


def _undo(client: Client, run_id: str, arguments: Arguments) -> str:
    step = _whole(arguments, "step")
    paths = client.undo(run_id, step)
    before = run_id if step is None else f"step {step} of {run_id}"
    return f"{_files(paths)} as before {before}." if paths else "There was nothing to put back."


def _merge(client: Client, run_id: str, arguments: Arguments) -> str:
    unit = str(arguments["unit"])
    client.merge(run_id, unit)
    return f"{unit} is being merged, after its checks; the run ends again when that is done."


def _drop(client: Client, run_id: str, arguments: Arguments) -> str:
    unit = str(arguments["unit"])
    return f"Dropped for good: {client.drop(run_id, '' if unit == OWN else unit).path}"


def _take(client: Client, run_id: str, _: Arguments) -> str:
    paths = client.take(run_id)
    return f"{_files(paths)} brought into the repository." if paths else "There was nothing to bring."


def _files(paths: Sequence[str]) -> str:
    return "1 file is" if len(paths) == 1 else f"{len(paths)} files are"


def _number(arguments: Arguments, name: str) -> float | None:
    raw = str(arguments.get(name, "")).strip()
    try:
        number = float(raw) if raw else None
    except ValueError:
        number = math.nan
    most = _MOST[name]
    if number is not None and not 0 <= number <= most:
        raise InputError(f"a number for {name}, at most {most:,}", raw[:40], "give such a number")
    return number


def _whole(arguments: Arguments, name: str) -> int | None:
    number = _number(arguments, name)
    if number is not None and number != int(number):
        raise InputError(f"a whole number for {name}", str(arguments[name])[:40], "give one")
    return None if number is None else int(number)


def _text(label: str) -> tuple[CommandArgument, ...]:
    return (CommandArgument(name="text", label=label, kind="text", required=True, choices=[]),)


def _optional(name: str, label: str) -> CommandArgument:
    return CommandArgument(name=name, label=label, kind="number", required=False, choices=[])


_MORE = (
    _optional("cap", "Iterations in all"),
    _optional("tokens", "Tokens in all"),
    _optional("minutes", "Minutes of work in all"),
    _optional("money", "Dollars in all"),
)
_FROM = (_optional("step", "Only from this step on, by its number; left empty, the whole run"),)
_UNIT = (CommandArgument(name="unit", label="Unit", kind="choice", required=True, choices=[]),)
_CHECKOUT = (CommandArgument(name="unit", label="Checkout", kind="choice", required=True, choices=[]),)
_UNDO = "Put every file that this run changed back as it was? Nothing is touched where you have changed it since."
_CANCEL = "Stop this run and everything it started? What it changed so far stays in the workspace."
_TAKE = "Bring what this run changed into the repository? Nothing is touched where you have changed it since."
_DROP = "Remove this checkout for good? What it holds and was not merged or taken is nowhere else."
_ALL = (
    Command(
        name="answer",
        label="Answer",
        offered=lambda r: r.outcome is RunOutcome.BLOCKED,
        act=_answer,
        arguments=_text("Your answer; the step that asked is done again"),
    ),
    Command(name="approve", label="Approve", offered=_waits_for_approval, act=_approve),
    Command(name="resume", label="Resume", offered=_can_resume, act=_resume),
    Command(
        name="steer", label="Steer", offered=_is_live, act=_steer, arguments=_text("What the next step should know")
    ),
    Command(name="pause", label="Pause", offered=_is_at_work, act=_pause),
    Command(name="raise", label="Raise limits", offered=_can_be_raised, act=_raise, arguments=_MORE),
    Command(name="merge", label="Merge a unit", offered=_has_ended, act=_merge, arguments=_UNIT, later=True),
    Command(name="drop", label="Drop a checkout", offered=_has_ended, act=_drop, confirm=_DROP, arguments=_CHECKOUT),
    Command(name="take", label="Take changes", offered=_can_be_taken, act=_take, confirm=_TAKE),
    Command(
        name="undo",
        label="Undo changes",
        offered=lambda r: not _is_at_work(r),
        act=_undo,
        confirm=_UNDO,
        arguments=_FROM,
    ),
    Command(name="cancel", label="Cancel run", offered=_is_live, act=_cancel, confirm=_CANCEL),
)
_TABLE = {command.name: command for command in _ALL}


def offers(run: RunView, choices: Mapping[str, Sequence[str]]) -> list[CommandOffer]:
    """The commands that can be given to this run as it is; `choices` says what `merge` and `drop` can be about."""
    asked = {c.name: _arguments(c, run, choices.get(c.name, ())) for c in _TABLE.values() if c.offered(run)}
    return [
        CommandOffer(name=name, label=_TABLE[name].label, confirm=_TABLE[name].confirm, arguments=arguments)
        for name, arguments in asked.items()
        if not any(a.kind == "choice" and not a.choices for a in arguments)
    ]


def _arguments(command: Command, run: RunView, choices: Sequence[str]) -> list[CommandArgument]:
    """What to ask for: limits only go up, so there is none of money where the run has no such budget."""
    asked = [a for a in command.arguments if a.name != "money" or run.money_usd]
    return [a.model_copy(update={"choices": list(choices)}) if a.kind == "choice" else a for a in asked]


def is_done_later(name: str) -> bool:
    """Whether a command of this name is only asked for when it is answered."""
    return name in _TABLE and _TABLE[name].later


def carry_out(client: Client, run_id: str, name: str, arguments: Arguments) -> str:
    """Give a command to a run; what to say. Raises RunUnknown, CommandUnknown, InputError."""
    client.show(run_id)
    command = _TABLE.get(name)
    known = ", ".join(_TABLE)
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
