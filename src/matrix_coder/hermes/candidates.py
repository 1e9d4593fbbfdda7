"""Which run of a session a command means that names none."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ..core.errors import InputError
from ..core.models import RunOutcome, RunStatus, RunView

Runs = Callable[[str], Sequence[RunView]]
_ID = re.compile(r"r\d{1,14}", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,14}")


def _is_live(run: RunView) -> bool:
    return run.status is not RunStatus.ENDED


def _waits(run: RunView) -> bool:
    return run.status is RunStatus.PAUSED and run.reason.startswith("waiting for approval")


def _held(run: RunView) -> bool:
    return run.status is RunStatus.PAUSED or run.outcome is RunOutcome.FAILED


_MEANT: dict[str, tuple[str, Callable[[RunView], bool]]] = {
    "steer": ("live", _is_live),
    "cancel": ("live", _is_live),
    "pause": ("live", lambda run: _is_live(run) and run.status is not RunStatus.PAUSED),
    "resume": ("paused or failed", _held),
    "approve": ("waiting for approval", _waits),
    "answer": ("blocked", lambda run: run.outcome is RunOutcome.BLOCKED),
    "show": ("live or blocked", lambda run: _is_live(run) or run.outcome is RunOutcome.BLOCKED),
}


def chosen(command: str, words: Sequence[str], session_id: str, runs: Runs) -> str:
    """The run that is named, or the only one of the session's that the command can mean. Raises InputError.

    `runs` gives a session's runs; all of them for an unknown session, of which none is meant unnamed.
    """
    if len(words) == 1:
        return words[0]
    if words:
        raise InputError("the id of one run, such as r8", " ".join(words), "`/matrix runs` lists them")
    state, is_meant = _MEANT[command]
    known = runs(session_id)
    fit = [run for run in known if is_meant(run)] or (list(known) if command == "show" else [])
    if len(fit) == 1 and session_id:
        return fit[0].run_id
    if not fit:
        raise InputError(
            "the id of one run, such as r8", f"none, and there is no {state} run", "`/matrix runs` lists them"
        )
    named = ", ".join(run.run_id for run in fit)
    raise InputError("the id of one run, such as r8", f"none; it could be {named}", "name one of them")


def chosen_and_text(command: str, words: Sequence[str], session_id: str, runs: Runs) -> tuple[str, str]:
    """The same for a command that a text follows. A number alone is an id only where no run of the session is meant."""
    first, rest = (words[0], words[1:]) if words else ("", [])
    if _ID.fullmatch(first):
        return first.lower(), " ".join(rest)
    if _NUMBER.fullmatch(first) and rest and not (session_id and any(map(_MEANT[command][1], runs(session_id)))):
        return first, " ".join(rest)
    return chosen(command, [], session_id, runs), " ".join(words)
