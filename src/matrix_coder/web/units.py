"""The units of a run's fan-out steps: what each owns, what it came to, and what can be done with it still."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..core.models import RunView, StepView, Unit
from ..core.units import UnitState
from ..engine.merge import Came, load_came
from .shapes import PlannedUnit, UnitShape

_SHOWN_FILES = 200


def planned_unit(unit: Unit) -> PlannedUnit:
    """A unit as a plan names it."""
    return PlannedUnit(
        name=unit.name, role=unit.role, goal=unit.goal, files=list(unit.files[:_SHOWN_FILES]), topic=unit.topic
    )


def units_of(run: RunView, rows: Sequence[sqlite3.Row]) -> dict[int, UnitShape]:
    """The units among a run's steps, by their numbers."""
    plan: Mapping[str, Unit] = {}
    found: dict[int, UnitShape] = {}
    for step, row in zip(run.steps, rows, strict=False):
        if step.unit:
            found[step.number] = _unit(run, step, load_came(row), plan.get(step.unit))
        elif step.report and step.report.units:
            plan = {u.name: u for u in step.report.units}
    return found


def last_of_each(units: Mapping[int, UnitShape]) -> list[UnitShape]:
    """The last word on each unit, in order."""
    return list({units[number].name: units[number] for number in sorted(units)}.values())


def _unit(run: RunView, step: StepView, came: Came | None, unit: Unit | None) -> UnitShape:
    files = came.files if came else ()
    checkout = came.checkout if came and came.checkout and Path(came.checkout).is_dir() else ""
    return UnitShape(
        name=step.unit,
        state=came.state.value if came else "",
        goal=unit.goal if unit else "",
        owns=list(unit.files[:_SHOWN_FILES]) if unit else [],
        topic=unit.topic if unit else "",
        why=came.why if came else "",
        files=list(files[:_SHOWN_FILES]),
        files_total=len(files),
        checkout=checkout,
        branch=came.branch if came and checkout else "",
        command=f"matrix-coder merge {run.run_id} {step.unit}" if _can_be_merged(run, came, checkout) else "",
    )


def _can_be_merged(run: RunView, came: Came | None, checkout: str) -> bool:
    taken = (UnitState.MERGED, UnitState.DONE, UnitState.EMPTY)
    left = came is not None and bool(came.files) and came.state not in taken
    return left and bool(checkout) and run.outcome is not None
