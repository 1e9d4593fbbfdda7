"""The ends that come before any work is done, in each workflow, with the real host."""

from __future__ import annotations

import json

import pytest

from matrix_coder.core.models import RunOutcome
from matrix_coder.testing import Rule

from .runbench import Bench, says

FIRST = r"step 1: "
REFUSED = {"http": 401, "body": json.dumps({"error": {"message": "no such key"}})}


def _pairs(outcome: RunOutcome, *workflows: str) -> list[object]:
    return [pytest.param(w, marks=pytest.mark.outcome(w, outcome), id=w) for w in workflows]


@pytest.mark.parametrize("workflow", _pairs(RunOutcome.BLOCKED, "ultraqa", "ultrawork"))
def test_run_when_its_first_step_has_a_question_then_is_blocked_with_it(bench: Bench, workflow: str) -> None:
    """Whatever workflow it is: a question that only a person can answer ends the run and is told."""
    place = bench([Rule(match=FIRST, steps=says("BLOCKED", open_questions=["plus or minus?"]))])
    result = place.run(workflow=workflow)
    assert (result.outcome, result.question, len(result.steps)) == (RunOutcome.BLOCKED, "plus or minus?", 1)


@pytest.mark.parametrize("workflow", _pairs(RunOutcome.FAILED, "autopilot", "ultraqa", "ultrawork"))
def test_run_when_the_provider_refuses_then_fails_at_once_with_its_words(bench: Bench, workflow: str) -> None:
    """Whatever workflow it is: a refusal that will not go away ends the run, in the provider's words."""
    place = bench([Rule(match=FIRST, steps=(REFUSED,))])
    result = place.run(workflow=workflow)
    assert (result.outcome, len(result.steps)) == (RunOutcome.FAILED, 1)
    assert "no such key" in result.reason


@pytest.mark.parametrize("workflow", _pairs(RunOutcome.BUDGET, "autopilot", "ultraqa"))
def test_run_when_its_first_step_uses_all_tokens_then_no_second_one_starts(bench: Bench, workflow: str) -> None:
    """Whatever workflow it is: the budget is asked before each step."""
    place = bench([Rule(match=r"step \d+: ", steps=says("PASS"))])
    result = place.run(workflow=workflow, limits={"tokens": 10})
    assert result.outcome is RunOutcome.BUDGET
    assert {kind for kind, data in place.events if kind == "child" and data["step"] != 1} == set()
    assert result.usage.tokens > 10


@pytest.mark.outcome("ultraqa", "cancelled")
def test_ultraqa_when_cancelled_in_a_step_then_ends_as_that(bench: Bench) -> None:
    """Cancel ends an ultraqa run in its step, too, and leaves no process."""
    slow = {"tool": "terminal", "args": {"command": "sleep 61"}}
    place = bench([Rule(match=FIRST, steps=says("PASS", slow))])
    run = place.start(workflow="ultraqa")
    place.event_of(1, "tool", step=1, name="terminal")
    place.client.cancel(run.run_id)
    assert place.finish(run.run_id, timeout_s=20).outcome is RunOutcome.CANCELLED
    assert not place.left_over()
