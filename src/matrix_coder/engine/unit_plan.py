"""A plan's units: looked at by code, asked for again, made fewer and larger; and read again from the run's record."""

from __future__ import annotations

import json
from dataclasses import replace

from ..core.models import StepVerdict, Unit
from ..core.names import Role
from ..core.serde import load_report
from ..core.units import Overlap, merged, overlaps, whole
from ..core.workflow import StepResult
from .context import RunContext
from .specialist import Specialist

_MAX_NOTE = 1_200


def plan_units(run: RunContext, specialist: Specialist) -> StepResult:
    """The plan with units that are apart: asked again once where they overlap, then made fewer and larger by code."""
    specialist.units = True
    first = specialist.work()
    found = _overlaps(run, first)
    if not found:
        return first
    run.event("overlap", step=specialist.at.number, pairs=[str(o) for o in found], asked_again=True)
    specialist.notes = (
        "Your plan was refused: units overlap, and no path may belong to two of them. "
        f"{'; '.join(str(o) for o in found)[:_MAX_NOTE]}. Plan again: move files, or make such units one.",
    )
    second = specialist.work()
    if second.stop is None and second.report.verdict is StepVerdict.UNVERIFIABLE:
        second = first
    found = _overlaps(run, second)
    if not found:
        return second
    run.event("overlap", step=specialist.at.number, pairs=[str(o) for o in found], asked_again=False)
    return replace(second, report=replace(second.report, units=merged(second.report.units, found)))


def _overlaps(run: RunContext, result: StepResult) -> tuple[Overlap, ...]:
    if result.stop is not None or result.report.verdict is not StepVerdict.PASS:
        return ()
    tree = run.store.run_row(run.number)["start_tree"]
    known = run.trees.ask("ls-tree", "-r", "-z", "--name-only", tree).decode("utf-8", "surrogateescape").split("\0")
    return overlaps(result.report.units, filter(None, known))


def planned(run: RunContext, before: int) -> tuple[Unit, ...]:
    """The units that the last plan before this step named; one for the whole goal where it named none."""
    for row in reversed(run.store.step_rows(run.number)):
        if row["number"] < before and row["role"] == Role.PLAN and row["report"] and "/" not in row["step"]:
            units = load_report(json.loads(row["report"])).units
            if units:
                return units
    return (whole(run.plan.goal),)
