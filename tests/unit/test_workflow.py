"""A workflow's moves: who comes next, when the loop turns, and how each run ends."""

from __future__ import annotations

import pytest

from matrix_coder.core.models import Evidence, RunOutcome, StepReport, StepVerdict
from matrix_coder.core.names import Workflow
from matrix_coder.core.registry import load_workflow
from matrix_coder.core.workflow import End, Move, RunStep, StepResult, advance, begin

RALPH = load_workflow("ralph")
RED = Evidence(
    name="check", command="pytest -q", exit_code=1, duration_s=1.0, tree="a", cases={"t::a": "failed", "t::b": "passed"}
)
GREEN = Evidence(
    name="check", command="pytest -q", exit_code=0, duration_s=1.0, tree="b", cases={"t::a": "passed", "t::b": "passed"}
)
VERIFY = RunStep(step="verify", number=2, iteration=1)


def said(verdict: StepVerdict, *evidence: Evidence, stop: End | None = None, **words: object) -> StepResult:
    return StepResult(report=StepReport(verdict=verdict, **words), evidence=evidence, stop=stop)  # type: ignore[arg-type]


def after(at: RunStep, result: StepResult, *, cap: int = 5, baseline: tuple[Evidence, ...] = (RED,)) -> Move:
    return advance(RALPH, at, result, cap=cap, baseline=baseline)


@pytest.mark.parametrize("workflow", Workflow)
def test_begin_when_any_workflow_starts_then_first_step_of_first_iteration(workflow: Workflow) -> None:
    """Counting starts at one, at the definition's own start."""
    definition = load_workflow(workflow)
    assert begin(definition) == RunStep(step=definition.start, number=1, iteration=1)


@pytest.mark.parametrize("verdict", [StepVerdict.PASS, StepVerdict.FAIL, StepVerdict.UNVERIFIABLE])
def test_executor_when_it_says_anything_but_blocked_then_verify_follows(verdict: StepVerdict) -> None:
    """An executor's opinion of its own work decides nothing, also not when it says PASS beside green checks."""
    assert after(begin(RALPH), said(verdict, GREEN)) == VERIFY


@pytest.mark.parametrize(
    ("words", "question"),
    [
        ({"open_questions": ("Which port?", "Why?"), "summary": "stuck"}, "Which port?"),
        ({"summary": "stuck"}, "stuck"),
        ({}, "the specialist named no question"),
    ],
)
@pytest.mark.parametrize("at", [begin(RALPH), VERIFY])
def test_step_when_blocked_then_the_run_ends_with_the_question(
    at: RunStep, words: dict[str, object], question: str
) -> None:
    """A blocked gate surfaces: the first open question, else the summary, also when the checks are green."""
    end = after(at, said(StepVerdict.BLOCKED, GREEN, **words))
    assert isinstance(end, End)
    assert (end.outcome, end.question) == (RunOutcome.BLOCKED, question)


def test_verify_when_it_passes_and_checks_mend_the_start_then_verified() -> None:
    """A passing verify halts the loop when the engine's own check went from red to green."""
    end = after(VERIFY, said(StepVerdict.PASS, GREEN))
    assert isinstance(end, End)
    assert end.outcome is RunOutcome.VERIFIED


def test_verify_when_it_passes_on_the_last_allowed_iteration_then_verified() -> None:
    """A success on the last iteration is a success."""
    end = after(RunStep(step="verify", number=10, iteration=5), said(StepVerdict.PASS, GREEN))
    assert isinstance(end, End)
    assert end.outcome is RunOutcome.VERIFIED


@pytest.mark.parametrize("verdict", [StepVerdict.PASS, StepVerdict.UNVERIFIABLE, StepVerdict.FAIL])
def test_verify_when_the_check_is_red_then_the_loop_turns_whatever_it_says(verdict: StepVerdict) -> None:
    """A model that says PASS while the check fails never ends a run."""
    assert after(VERIFY, said(verdict, RED)) == RunStep(step="executor", number=3, iteration=2)


def test_verify_when_it_fails_beside_green_checks_then_the_loop_turns() -> None:
    """A model's words can lower a verdict."""
    assert after(VERIFY, said(StepVerdict.FAIL, GREEN)) == RunStep(step="executor", number=3, iteration=2)


@pytest.mark.parametrize(
    ("result", "why"),
    [
        (said(StepVerdict.PASS, RED), "check `pytest -q` failed (1/2)"),
        (said(StepVerdict.FAIL, GREEN), "verify said FAIL"),
    ],
)
def test_cap_when_it_is_used_up_then_the_run_ends_and_says_why(result: StepResult, why: str) -> None:
    """The cap fires after the last allowed iteration, with what kept it from success."""
    end = after(RunStep(step="verify", number=4, iteration=2), result, cap=2)
    assert end == End(outcome=RunOutcome.CAP_REACHED, reason=f"2 of 2 iterations used; at the last, {why}")


def test_gate_when_no_check_exists_then_unverified() -> None:
    """PASS without a check that the engine could run proves nothing."""
    end = after(VERIFY, said(StepVerdict.PASS), baseline=())
    assert end == End(outcome=RunOutcome.UNVERIFIED, reason="no check existed that the engine could run")


def test_gate_when_verify_gave_no_verdict_beside_green_checks_then_unverified() -> None:
    """Green checks alone are not a verdict."""
    end = after(VERIFY, said(StepVerdict.UNVERIFIABLE, GREEN))
    assert end == End(outcome=RunOutcome.UNVERIFIED, reason="the checks are green, but verify gave no verdict")


def test_gate_when_one_of_two_checks_is_red_then_the_loop_turns() -> None:
    """All checks have to be green."""
    other = Evidence(name="check-2", command="ruff check .", exit_code=1, duration_s=1.0, tree="b")
    assert after(VERIFY, said(StepVerdict.PASS, GREEN, other)) == RunStep(step="executor", number=3, iteration=2)


def test_gate_when_a_check_ran_into_its_time_limit_then_it_is_red() -> None:
    """A check that did not end did not pass."""
    hung = Evidence(name="check", command="pytest -q", exit_code=None, duration_s=600.0, tree="b")
    end = after(VERIFY, said(StepVerdict.PASS, hung), cap=1)
    assert isinstance(end, End)
    assert (end.outcome, "timed out" in end.reason) == (RunOutcome.CAP_REACHED, True)


def test_gate_when_the_exit_code_says_0_over_failing_cases_then_tampered() -> None:
    """An exit code that was forced to 0 while cases still fail ends the run, and the reason names them."""
    forced = Evidence(name="check", command="pytest -q", exit_code=0, duration_s=1.0, tree="b", cases=RED.cases)
    end = after(VERIFY, said(StepVerdict.PASS, forced))
    assert end == End(outcome=RunOutcome.TAMPERED, reason="`pytest -q` exits with 0 although t::a failed")


def test_gate_when_the_check_always_hid_failing_cases_then_they_are_red_and_then_proof() -> None:
    """A person's own `pytest || true` is no tampering: its cases decide, at both ends."""
    lenient = Evidence(name="check", command="pytest -q", exit_code=0, duration_s=1.0, tree="a", cases=RED.cases)
    assert after(VERIFY, said(StepVerdict.PASS, lenient), baseline=(lenient,)) == RunStep(
        step="executor", number=3, iteration=2
    )
    end = after(VERIFY, said(StepVerdict.PASS, GREEN), baseline=(lenient,))
    assert isinstance(end, End)
    assert end.outcome is RunOutcome.VERIFIED


@pytest.mark.parametrize("outcome", [RunOutcome.CANCELLED, RunOutcome.BUDGET, RunOutcome.FAILED])
@pytest.mark.parametrize("verdict", StepVerdict)
def test_stop_when_the_engine_set_one_then_no_verdict_overrules_it(outcome: RunOutcome, verdict: StepVerdict) -> None:
    """Cancelled, over budget or failed for good: the run ends there, whatever the report says."""
    stop = End(outcome=outcome, reason="because")
    assert after(VERIFY, said(verdict, GREEN, stop=stop)) == stop


def test_loop_start_when_it_is_not_the_first_step_then_red_checks_go_there() -> None:
    """Autopilot plans once: a red gate goes back to its executor."""
    move = advance(
        load_workflow("autopilot"),
        RunStep(step="verify", number=5, iteration=1),
        said(StepVerdict.PASS, RED),
        cap=5,
        baseline=(RED,),
    )
    assert move == RunStep(step="executor", number=6, iteration=2)
