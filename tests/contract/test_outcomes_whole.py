"""The ends that take a run several steps to come to, in each workflow that can, with the real host."""

from __future__ import annotations

import pytest

from matrix_coder.core.models import RunOutcome
from matrix_coder.testing import Rule

from .runbench import MEND, Bench, RunBench, report, says, scripts

GAMED = {
    "tool": "patch",
    "args": {
        "mode": "replace",
        "path": "test_calc.py",
        "old_string": "    assert add(2, 3) == 5",
        "new_string": "    add(2, 3)",
    },
}
UNITS = [{"name": "sums", "role": "executor", "goal": "mend the sums", "files": ["test_calc.py"]}]


ALL_SAY_PASS = Rule(match=r"step \d+: ", steps=says("PASS"))


def _roles(place: RunBench) -> list[str]:
    return [s.role for s in place.client.show("r1").steps]


@pytest.mark.parametrize(
    ("workflow", "writer"),
    [
        pytest.param("autopilot", "executor", marks=pytest.mark.outcome("autopilot", "tampered"), id="autopilot"),
        pytest.param("ultraqa", "fix", marks=pytest.mark.outcome("ultraqa", "tampered"), id="ultraqa"),
        pytest.param("ultrawork", "units/sums", marks=pytest.mark.outcome("ultrawork", "tampered"), id="ultrawork"),
    ],
)
def test_run_when_the_failing_assertion_is_taken_out_then_is_tampered_with_its_line(
    bench: Bench, workflow: str, writer: str
) -> None:
    """Whatever workflow it is: a suite that is green because a test asks less is no success, and the line is told."""
    plan = [Rule(match=r"step \d+: plan\b", steps=says("PASS", units=UNITS))] if workflow == "ultrawork" else []
    gamer = Rule(match=rf"step \d+: {writer}\b", steps=says("PASS", GAMED, summary="All tests pass now."))
    place = bench([*plan, gamer, ALL_SAY_PASS])
    result = place.run(workflow=workflow)
    assert result.outcome is RunOutcome.TAMPERED, result.reason
    assert "test_calc.py" in result.reason
    assert [e.passed for e in result.evidence] == [True]


@pytest.mark.parametrize(
    ("workflow", "roles"),
    [
        pytest.param(
            "autopilot",
            ["plan", *["executor", "test", "review", "verify"] * 2, "debug", "executor", "test", "review", "verify"],
            marks=pytest.mark.outcome("autopilot", "stalled"),
            id="autopilot",
        ),
        pytest.param(
            "ultraqa",
            [*["test", "verify", "executor"] * 2, "debug", "test", "verify", "executor"],
            marks=pytest.mark.outcome("ultraqa", "stalled"),
            id="ultraqa",
        ),
    ],
)
def test_run_when_nothing_changes_then_is_diagnosed_once_and_stops(
    bench: Bench, workflow: str, roles: list[str]
) -> None:
    """Whatever loop it is: the same failures on the same tree twice, one look in a fresh context, then it stops."""
    place = bench([ALL_SAY_PASS])
    result = place.run(workflow=workflow, cap=10)
    assert result.outcome is RunOutcome.STALLED, result.reason
    assert _roles(place) == roles


@pytest.mark.outcome("ultraqa", "unverified")
def test_ultraqa_when_the_suite_turns_green_and_verify_is_silent_then_is_unverified(bench: Bench) -> None:
    """Green checks without a verdict from verify are said to be just that."""
    silent = [report("UNVERIFIABLE", "I could not tell."), {"text": "done"}]
    place = bench(scripts(test=[says("PASS")], fix=[says("PASS", MEND)], verify=[says("FAIL"), silent]))
    result = place.run(workflow="ultraqa")
    assert (result.outcome, [e.passed for e in result.evidence]) == (RunOutcome.UNVERIFIED, [True]), result.reason
    assert "verify gave no verdict" in result.reason
