"""Each outcome of each workflow, reached by a walk through the core alone; the whole runs are in contract/."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from matrix_coder.core.models import Evidence, RunOutcome, StepReport, StepVerdict
from matrix_coder.core.names import Role, Workflow
from matrix_coder.core.registry import load_workflow
from matrix_coder.core.workflow import Course, End, Guard, RunStep, StepResult

CAP = 4
RED = Evidence(name="check", command="pytest -q", exit_code=1, duration_s=1.0, tree="start", cases={"t::a": "failed"})
GREEN = replace(RED, exit_code=0, tree="end", cases={"t::a": "passed"})
# A workflow without a loop starts no second iteration: neither the cap nor a standstill can end it.
UNREACHABLE = {(Workflow.ULTRAWORK, RunOutcome.CAP_REACHED), (Workflow.ULTRAWORK, RunOutcome.STALLED)}

Play = Callable[[RunStep, bool], StepResult]


def _said(verdict: StepVerdict, verifies: bool, evidence: Evidence, **more: Any) -> StepResult:
    """What a step came to; the engine's checks stand beside a verify step only."""
    gathered = (evidence,) if verifies else ()
    return StepResult(report=StepReport(verdict=verdict), evidence=gathered, guard=Guard.CLEAN, **more)


def _stopped(outcome: RunOutcome) -> Play:
    """The engine ends the run before its second step."""

    def play(at: RunStep, verifies: bool) -> StepResult:
        stop = End(outcome=outcome, reason="it has to stop") if at.number == 2 else None
        return _said(StepVerdict.PASS, verifies, GREEN, stop=stop)

    return play


def _doubtful(_: RunStep, verifies: bool) -> StepResult:
    return _said(StepVerdict.UNVERIFIABLE if verifies else StepVerdict.PASS, verifies, GREEN)


def _busy(at: RunStep, verifies: bool) -> StepResult:
    return _said(StepVerdict.PASS, verifies, replace(RED, tree=f"tree-{at.number}"))


PLAYS: dict[RunOutcome, Play] = {
    RunOutcome.VERIFIED: lambda _, verifies: _said(StepVerdict.PASS, verifies, GREEN),
    RunOutcome.UNVERIFIED: _doubtful,
    RunOutcome.CAP_REACHED: _busy,
    RunOutcome.STALLED: lambda _, verifies: _said(StepVerdict.PASS, verifies, RED),
    RunOutcome.BLOCKED: lambda _, verifies: _said(StepVerdict.BLOCKED, verifies, RED),
    RunOutcome.BUDGET: _stopped(RunOutcome.BUDGET),
    RunOutcome.TAMPERED: lambda _, verifies: _said(StepVerdict.PASS, verifies, GREEN, tampering=("t::a is gone",)),
    RunOutcome.CANCELLED: _stopped(RunOutcome.CANCELLED),
    RunOutcome.FAILED: _stopped(RunOutcome.FAILED),
}
PAIRS = [
    pytest.param(w, o, marks=pytest.mark.outcome(w, o, walk=True), id=f"{w}-{o}")
    for w in Workflow
    for o in RunOutcome
    if (w, o) not in UNREACHABLE
]


def _walk(workflow: Workflow, play: Play) -> tuple[End, list[RunStep]]:
    """The end of a run whose steps come to what `play` says, and its steps."""
    definition = load_workflow(workflow)
    course = Course(definition, (RED,))
    moves: list[RunStep] = []
    while isinstance(course.move, RunStep):
        moves.append(course.move)
        course.take(play(course.move, definition.steps[course.move.step].role is Role.VERIFY), cap=CAP)
    return course.move, moves


@pytest.mark.parametrize(("workflow", "outcome"), PAIRS)
def test_walk_when_the_steps_come_to_it_then_ends_in_each_outcome(workflow: Workflow, outcome: RunOutcome) -> None:
    """Every outcome that a workflow can have is had, within the cap."""
    end, moves = _walk(workflow, PLAYS[outcome])
    assert end.outcome is outcome, end.reason
    assert moves[-1].iteration <= CAP
    assert end.reason or end.outcome is RunOutcome.BLOCKED


@pytest.mark.parametrize(("workflow", "outcome"), sorted(UNREACHABLE))
def test_walk_when_a_workflow_has_no_loop_then_neither_cap_nor_standstill_end_it(
    workflow: Workflow, outcome: RunOutcome
) -> None:
    """The pairs that the table leaves out can't happen: nothing in the definition leads to them."""
    definition = load_workflow(workflow)
    targets = {target for moves in definition.transitions.values() for target in moves.values()}
    assert not any(target.startswith("loop:") or target == f"end:{outcome}" for target in targets)
    assert not definition.stalled
    end, moves = _walk(workflow, PLAYS[outcome])
    assert end.outcome is RunOutcome.FAILED
    assert {m.iteration for m in moves} == {1}
