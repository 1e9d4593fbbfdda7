"""`doctor`: a look at everything that a run needs. It starts no worker, makes no store and writes into no workspace.

The host, asked for its model, may make its own folders in a home that has a configuration, as it does for any command.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..core.render import counted
from . import doctor_home, doctor_install, doctor_runs
from .diagnosis import Check, Diagnosis, Place, State, named

CHECKS: tuple[tuple[str, Check], ...] = (
    ("host", doctor_install.host),
    ("matrix-coder", doctor_install.ourselves),
    ("python", doctor_install.python),
    ("git", doctor_install.git),
    ("engine", doctor_install.engine),
    ("sqlite", doctor_install.sqlite),
    ("home", doctor_home.home),
    ("disk", doctor_home.disk),
    ("settings", doctor_home.settings),
    ("plugin", doctor_home.plugin),
    ("words", doctor_home.words),
    ("model", doctor_home.model),
    ("board", doctor_home.board),
    ("page", doctor_home.page),
    ("run store", doctor_runs.store),
    ("live runs", doctor_runs.live_runs),
    ("worker", doctor_runs.worker),
    ("runs without a worker", doctor_runs.unattended),
    ("fork server", doctor_runs.fork_server),
    ("landlock", doctor_runs.landlock),
    ("layers", doctor_runs.layers),
)


def examine(home: Path, directory: Path) -> tuple[Diagnosis, ...]:
    """A diagnosis of each thing looked at, in order. `directory` is where a run would be started."""
    place = Place(home=home, directory=directory)
    return tuple(named(name, look(place)) for name, look in CHECKS)


def is_well(found: Sequence[Diagnosis]) -> bool:
    """Whether nothing is in the way; notes are no problem."""
    return all(d.state is not State.PROBLEM for d in found)


def doctor_text(found: Sequence[Diagnosis]) -> str:
    """A line for each, then how many there are of what."""
    counts = {state: sum(d.state is state for d in found) for state in State}
    total = f"{counted(counts[State.PROBLEM], 'problem')}, {counted(counts[State.NOTE], 'note')}, {counts[State.OK]} ok"
    return "\n".join([*(d.line() for d in found), total])


def doctor_json(found: Sequence[Diagnosis]) -> dict[str, object]:
    """The same as plain data."""
    return {"well": is_well(found), "checks": [d.data() for d in found]}
