"""A step that is worked on in units: side by side, each in a checkout of its own, then merged one at a time.

Each unit has a row of its own among the run's steps, and keeps there what it came to: after a crash, or when the
step is done again, no unit that was worked on is worked on twice.
"""

from __future__ import annotations

import json
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from ..core.errors import MatrixError
from ..core.models import Evidence, RunOutcome, StepReport, StepStatus, StepVerdict, Unit
from ..core.names import Role
from ..core.registry import WorkflowDefinition
from ..core.render import one_line
from ..core.serde import dump, load_report
from ..core.units import UnitState, broken, owns, reads_only
from ..core.workflow import End, RunStep, StepResult
from . import views
from .checkout import open_checkout, remove_checkout
from .context import RunContext, brief
from .merge import Came, keep, load_came, merge, reference, remember, save, some, unit_rows
from .procs import end_attempt
from .specialist import Place, Specialist
from .unit_plan import planned
from .workspace import Trees

APPROVE_MERGE = "merge"
_WAVE = 3
_MAX_NOTE = 1_200
_MAX_FILES = 3_000


class Held(Exception):
    """The run has to wait for a person before this step can go on; the message says for what."""


def wave(home: Path) -> int:
    """How many children may work at once, as the host's own configuration says."""
    try:
        raw = yaml.safe_load((home / "config.yaml").read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        raw = None
    part = raw.get("delegation") if isinstance(raw, dict) else None
    found = part.get("max_concurrent_children") if isinstance(part, dict) else None
    if found is None:
        found = os.environ.get("DELEGATION_MAX_CONCURRENT_CHILDREN") or _WAVE
    try:
        return max(1, int(found))
    except (TypeError, ValueError):
        return _WAVE


def accounts(run: RunContext) -> tuple[str, ...]:
    """Each unit in one line, for whoever looks at the whole: the last word on each."""
    last = {r["step"]: r for r in unit_rows(run)}
    return tuple(f"Unit {step.partition('/')[2]}, {_account(run, row)}" for step, row in last.items())


def _account(run: RunContext, row: sqlite3.Row) -> str:
    came = load_came(row)
    if came is None:
        return "not finished"
    line = came.account(run.plan.run_id)
    report = load_report(json.loads(row["report"])) if row["report"] else None
    said = f". It said: {one_line(report.summary)}" if report and report.summary else ""
    return (line + said)[:_MAX_NOTE]


@dataclass(slots=True)
class Slot:
    """One unit and the number of its row; `came` is what is known of it."""

    unit: Unit
    index: int
    came: Came | None = None


class Fleet:
    """The units of the step `at`."""

    def __init__(self, run: RunContext, at: RunStep) -> None:
        self.run = run
        self.at = at
        self.units = planned(run, at.number)
        self.slots = [self._slot(i, u) for i, u in enumerate(self.units, at.number + 1)]

    def _slot(self, index: int, unit: Unit) -> Slot:
        """A row of its own; an earlier one where the unit was worked on before this step was begun again."""
        known = [(r["number"], load_came(r)) for r in unit_rows(self.run) if r["step"] == self._name(unit)]
        kept = [(n, c) for n, c in known if c is not None and (n == index or c.state is not UnitState.FAILED)]
        return Slot(unit, *kept[-1]) if kept else Slot(unit, index)

    def _name(self, unit: Unit) -> str:
        return f"{self.at.step}/{unit.name}"

    def work(self) -> StepResult:
        """The step's result: what each unit came to. Raises Held where a person is to approve the merges."""
        # The copies are made from a tree that is recorded, and nobody records while they are at work.
        self.run.trees.record()
        todo = [s for s in self.slots if s.came is None]
        with ThreadPoolExecutor(max_workers=wave(self.run.store.home)) as pool:
            for done in [pool.submit(self._work, slot) for slot in todo]:
                done.result()
        ready = [s for s in self.slots if s.came is not None and not s.came.ended]
        evidence: tuple[Evidence, ...] = ()
        if ready and self.run.must_stop() is None:
            self._require_approval()
            evidence = self._merge(ready)
        return self._result(evidence)

    def _work(self, slot: Slot) -> None:
        if self.run.must_stop() is None:
            slot.came = UnitWork(self.run, self.at, slot, self.units).work()

    def _require_approval(self) -> None:
        approve = self.run.plan.options.approve
        rows = [r for r in self.run.store.step_rows(self.run.number) if r["number"] < self.at.number]
        asked = 1 + len([r for r in rows if r["step"] in approve])
        given = len(self.run.store.controls(self.run.number, "approve"))
        if APPROVE_MERGE in approve and given < asked:
            raise Held("waiting for approval of the merge")

    def _merge(self, ready: list[Slot]) -> tuple[Evidence, ...]:
        known = reference(self.run, self.at.number)
        for slot in ready:
            if self.run.must_stop() is not None:
                break
            if slot.came is not None:
                slot.came, known = merge(self.run, slot.index, slot.came, known)
        return known

    def _result(self, evidence: tuple[Evidence, ...]) -> StepResult:
        came = [s.came for s in self.slots if s.came is not None and s.came.ended]
        failed = [c for c in came if c.state is UnitState.FAILED]
        verdict = StepVerdict.FAIL if failed else StepVerdict.PASS
        states = [f"{len([c for c in came if c.state is s])} {s.value}" for s in UnitState]
        summary = f"{len(self.slots)} units: {', '.join(s for s in states if not s.startswith('0 '))}"
        stop = self.run.must_stop() if len(came) < len(self.slots) else None
        if stop is not None:
            verdict = StepVerdict.UNVERIFIABLE
            for slot in self.slots:
                if slot.came is not None and not slot.came.ended:
                    slot.came = keep(self.run, slot.came)
                    remember(self.run, slot.index, slot.came)
                    leave(self.run, slot.index, stop, f"not merged, {slot.came.kept()}")
        take = [f"{c.unit} ({one_line(c.why)[:300]})" for c in failed]
        return StepResult(
            report=StepReport(verdict=verdict, summary=summary),
            evidence=evidence,
            stop=stop,
            failed_units=tuple(take),
            empty_units=tuple(c.unit for c in came if c.state is UnitState.EMPTY),
            last_number=self.at.number + len(self.slots),
        )


class UnitWork:
    """One unit at work, on a thread of its own: nothing in here records the workspace's own trees."""

    def __init__(self, run: RunContext, at: RunStep, slot: Slot, units: tuple[Unit, ...]) -> None:
        self.run = run
        self.at = at
        self.slot = slot
        self.unit = slot.unit
        self.units = units

    def work(self) -> Came | None:
        """What the unit came to; None when the run has to stop before that is known."""
        name = f"{self.at.step}/{self.unit.name}"
        row = self.run.store.open_step(
            self.run.number, self.slot.index, step=name, role=self.unit.role, iteration=self.at.iteration
        )
        end_attempt(self.run.cookie(self.slot.index), pid=row["pid"], started=row["pid_started"])
        try:
            trees = open_checkout(self.run, f"{self.slot.index}-{self.unit.name}")
            return self._work(trees, trees.record(), row["attempt"])
        except MatrixError as error:
            return self._end(Came(unit=self.unit.name, state=UnitState.FAILED, why=str(error)), None)

    def _work(self, trees: Trees, base: str, attempt: int) -> Came | None:
        place = Place(trees=trees, base=base, name=f"{self.at.step}/{self.unit.name}", definition=self._definition())
        at = replace(self.at, number=self.slot.index)
        specialist = Specialist(self.run, at, attempt, notes=self._brief(), place=place)
        result = specialist.work()
        if result.stop is not None and result.stop.outcome is not RunOutcome.FAILED:
            leave(self.run, self.slot.index, result.stop, "not finished")
            return None
        return self._judge(trees, base, result)

    def _definition(self) -> WorkflowDefinition:
        """The run's definition, with this unit's own role in the step's place."""
        definition = self.run.plan.definition
        step = replace(
            definition.steps[self.at.step], role=Role(self.unit.role), writes=not reads_only(self.unit), lens=None
        )
        return replace(definition, steps={**definition.steps, self.at.step: step})

    def _judge(self, trees: Trees, base: str, result: StepResult) -> Came | None:
        tree = trees.record()
        files = trees.changed(base, tree)
        came = Came(
            unit=self.unit.name,
            state=UnitState.FAILED,
            base=base,
            tree=tree,
            checkout=str(trees.workspace),
            files=() if reads_only(self.unit) else files,
        )
        report = result.report
        if result.stop is not None or report.verdict is not StepVerdict.PASS:
            why = result.stop.reason if result.stop else f"said {report.verdict}: {one_line(report.summary)[:300]}"
            return self._end(replace(came, why=why), report)
        if reads_only(self.unit):
            return self._end(replace(came, state=UnitState.DONE), report)
        if not files:
            return self._end(replace(came, state=UnitState.EMPTY, why="it changed nothing"), report)
        why, evidence = examine_unit(self.run, self.slot.index, self.unit, trees, files)
        if self.run.stop_words():
            leave(
                self.run, self.slot.index, End(outcome=RunOutcome.CANCELLED, reason=self.run.stop_words()), "unchecked"
            )
            return None
        state = UnitState.FAILED if why else UnitState.READY
        return self._end(replace(came, state=state, why=why), report, evidence)

    def _end(self, came: Came, report: StepReport | None, evidence: tuple[Evidence, ...] = ()) -> Came:
        if came.state is UnitState.FAILED and came.base == came.tree and came.checkout:
            # Nothing was made in it that could ever be taken.
            remove_checkout(self.run, Path(came.checkout))
            came = replace(came, checkout="")
        if came.state is UnitState.FAILED:
            came = keep(self.run, came)
        told = report or StepReport(verdict=StepVerdict.UNVERIFIABLE, summary=came.why)
        save(
            self.run,
            self.slot.index,
            came,
            report=json.dumps(dump(told), ensure_ascii=False),
            evidence=json.dumps([dump(e) for e in evidence], ensure_ascii=False),
        )
        self.run.event(
            "verdict",
            step=self.slot.index,
            name=f"{self.at.step}/{self.unit.name}",
            claimed=told.verdict,
            summary=told.summary,
            verified=[brief(e) for e in evidence],
        )
        if came.state in (UnitState.DONE, UnitState.EMPTY):
            remove_checkout(self.run, Path(came.checkout))
        return came

    def _brief(self) -> tuple[str, ...]:
        unit = self.unit
        notes = [f"Your unit is `{unit.name}`. What it has to come to: {one_line(unit.goal)}"]
        if reads_only(unit):
            notes.append(f"It changes nothing. Its topic: {one_line(unit.topic)}")
        else:
            notes.append(f"The files that it may change, and no others: {', '.join(unit.files)[:_MAX_FILES]}")
        others = [u.name for u in self.units if u.name != unit.name]
        if others:
            notes.append(f"Units of others, at work at the same time: {', '.join(others)}")
        return tuple(notes)


def leave(run: RunContext, index: int, stop: End, what: str) -> None:
    """Say in a unit's row that the run stopped before its end."""
    status = StepStatus.CANCELLED if stop.outcome is RunOutcome.CANCELLED else StepStatus.FAILED
    note = f"{what}: {stop.reason}"
    run.store.update_step(run.number, index, status=status, note=note, ended_at=run.store.clock())


def examine_unit(
    run: RunContext, index: int, unit: Unit, trees: Trees, files: tuple[str, ...]
) -> tuple[str, tuple[Evidence, ...]]:
    """Why what stands in a unit's checkout may not be merged, empty where it may; and what the checks say there."""
    outside = [f for f in files if not owns(unit, f)]
    if outside:
        return f"it changed files that are not its own: {some(outside)}", ()
    runs = run.plan.options.check_runs
    evidence = run.check(f"unit-{index}-{unit.name}", index, runs=runs, trees=trees)
    bad = broken(views.baseline(run.store, run.number), evidence)
    return (f"red in its own checkout: {'; '.join(bad)}" if bad else ""), evidence
