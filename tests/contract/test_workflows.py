"""Every workflow and every outcome, with the real host; and what a person can do with a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from matrix_coder.core.errors import InputError
from matrix_coder.core.models import RunOutcome, RunStatus
from matrix_coder.testing import Rule

from .runbench import EXECUTOR, MEND, Bench, RunBench, report, rules, says, scripts

HIGH = [{"severity": "HIGH", "summary": "it must not ship", "file": "calc.py", "line": 5}]


def _roles(place: RunBench, run_id: str = "r1") -> list[str]:
    return [s.role for s in place.client.show(run_id).steps]


@pytest.mark.outcome("autopilot", "verified")
def test_autopilot_when_all_agree_then_plans_once_and_ends_verified(bench: Bench) -> None:
    """Plan, then executor, test, review and verify; each by its own specialist, the plan once."""
    place = bench(
        scripts(plan=[says("PASS")], executor=[says("PASS", MEND)], test=[says("PASS")], review=[says("PASS")])
        + scripts(verify=[says("PASS")])
    )
    result = place.run(workflow="autopilot")
    assert result.outcome is RunOutcome.VERIFIED, result.reason
    assert _roles(place) == ["plan", "executor", "test", "review", "verify"]


@pytest.mark.outcome("autopilot", "verified")
def test_autopilot_when_review_finds_something_grave_then_goes_back_whatever_its_verdict(bench: Bench) -> None:
    """A HIGH finding beside a PASS sends the run back to the executor; the plan is not made again."""
    reviews = [[report("PASS", findings=HIGH), {"text": "done"}], says("PASS")]
    place = bench(
        scripts(plan=[says("PASS")], executor=[says("PASS", MEND), says("PASS")], test=[says("PASS")], review=reviews)
        + scripts(verify=[says("PASS")])
    )
    result = place.run(workflow="autopilot")
    assert result.outcome is RunOutcome.VERIFIED, result.reason
    assert _roles(place) == ["plan", "executor", "test", "review", "executor", "test", "review", "verify"]
    assert result.iterations == 2


@pytest.mark.outcome("autopilot", "blocked")
def test_autopilot_when_the_plan_is_blocked_then_no_file_is_touched(bench: Bench) -> None:
    """A question in the plan stops the run before anything is changed."""
    place = bench(scripts(plan=[says("BLOCKED", open_questions=["Which way?"])]))
    result = place.run(workflow="autopilot")
    assert (result.outcome, result.question, result.changed_files) == (RunOutcome.BLOCKED, "Which way?", ())


@pytest.mark.outcome("ultraqa", "verified")
def test_ultraqa_when_the_suite_is_green_then_ends_at_once(bench: Bench) -> None:
    """A suite that is green already is told so, without one specialist."""
    place = bench([])
    (place.repo / "calc.py").write_text((place.repo / "calc.py").read_text().replace("a - b", "a + b"))
    result = place.run(workflow="ultraqa")
    assert (result.outcome, result.reason) == (RunOutcome.VERIFIED, "already green, nothing changed")
    assert result.steps == ()


@pytest.mark.outcome("ultraqa", "verified")
def test_ultraqa_when_the_suite_is_red_then_fixes_it_even_if_verify_calls_it_green(bench: Bench) -> None:
    """Test, verify, fix: a red suite goes to the fix, whatever the specialists claim."""
    place = bench(scripts(test=[says("PASS")], verify=[says("PASS")], fix=[says("PASS", MEND)]))
    result = place.run(workflow="ultraqa")
    assert result.outcome is RunOutcome.VERIFIED, result.reason
    assert _roles(place) == ["test", "verify", "executor", "test", "verify"]


@pytest.mark.outcome("ralph", "stalled")
def test_stalled_when_nothing_changes_then_is_diagnosed_once_and_stops(bench: Bench) -> None:
    """The same failures on the same tree twice: a debug specialist in a fresh context, once; then the run stops."""
    place = bench(rules([says("PASS")], [says("FAIL")]) + scripts(diagnose=[says("PASS", summary="it never edits")]))
    result = place.run(cap=10)
    assert result.outcome is RunOutcome.STALLED, result.reason
    assert _roles(place) == ["executor", "verify", "executor", "verify", "debug", "executor", "verify"]
    prompts = [json.dumps(b) for b in place.model.bodies if "it never edits" in json.dumps(b)]
    assert prompts, "the executor after the diagnosis was not told of it"


@pytest.mark.outcome("ralph", "budget")
@pytest.mark.outcome("ralph", "verified")
def test_budget_when_the_tokens_are_used_up_then_stops_and_goes_on_when_raised(bench: Bench) -> None:
    """Tokens are counted before each step; only a raise lets the run go on, with its counters as they were."""
    place = bench(rules([says("PASS"), says("PASS", MEND)], [says("PASS")]))
    result = place.run(limits={"tokens": 100})
    assert result.outcome is RunOutcome.BUDGET
    used = result.usage.tokens
    with pytest.raises(InputError, match="limits only go up"):
        place.client.raise_limits("r1", tokens=50)
    place.client.raise_limits("r1", tokens=1_000_000)
    after = place.finish("r1")
    assert after.outcome is RunOutcome.VERIFIED, after.reason
    assert after.usage.tokens > used


@pytest.mark.outcome("ralph", "cap_reached")
@pytest.mark.outcome("ralph", "verified")
def test_cap_when_raised_then_goes_on_from_where_it_stopped(bench: Bench) -> None:
    """A run that used up its cap goes on with the next iteration, not from the start."""
    place = bench(rules([says("PASS"), says("PASS", MEND)], [says("PASS")]))
    assert place.run(cap=1).outcome is RunOutcome.CAP_REACHED
    place.client.raise_limits("r1", cap=3)
    result = place.finish("r1")
    assert (result.outcome, result.iterations, len(result.steps)) == (RunOutcome.VERIFIED, 2, 4)


@pytest.mark.outcome("ralph", "blocked")
@pytest.mark.outcome("ralph", "verified")
def test_blocked_when_answered_then_the_same_step_is_done_again_knowing_the_answer(bench: Bench) -> None:
    """The answer reaches the step that asked, and the run goes on from there."""
    place = bench(rules([says("BLOCKED", open_questions=["plus or minus?"]), says("PASS", MEND)], [says("PASS")]))
    assert place.run().question == "plus or minus?"
    with pytest.raises(InputError, match="the answer"):
        place.client.answer("r1", "  ")
    place.client.answer("r1", "plus, of course")
    result = place.finish("r1")
    assert (result.outcome, result.iterations) == (RunOutcome.VERIFIED, 1)
    assert any("plus, of course" in json.dumps(b) for b in place.model.bodies)


def test_pause_when_asked_then_waits_before_the_next_step_and_resumes(bench: Bench) -> None:
    """A paused run has no process and keeps its place; steering reaches the step after it."""
    slow = {"tool": "terminal", "args": {"command": "sleep 1.5"}}
    place = bench(rules([says("PASS", slow, MEND)], [says("PASS")]))
    run = place.start()
    place.event_of(1, "tool", step=1, name="terminal")
    place.client.pause(run.run_id)
    held = place.client.wait(run.run_id, timeout_s=30)
    assert (held.status, held.outcome, len(held.steps)) == (RunStatus.PAUSED, None, 1)
    assert not place.left_over()
    place.client.steer(run.run_id, "mind the negative numbers")
    place.client.resume(run.run_id)
    assert place.finish(run.run_id).outcome is RunOutcome.VERIFIED
    assert any("mind the negative numbers" in json.dumps(b) for b in place.model.bodies)


@pytest.mark.outcome("autopilot", "verified")
def test_approval_when_the_plan_needs_it_then_nothing_is_touched_before(bench: Bench) -> None:
    """`approve=plan` holds the run after the plan until a person approves."""
    place = bench(
        scripts(plan=[says("PASS")], executor=[says("PASS", MEND)], test=[says("PASS")], review=[says("PASS")])
        + scripts(verify=[says("PASS")])
    )
    run = place.start(workflow="autopilot", options={"approve": ("plan",)})
    held = place.client.wait(run.run_id, timeout_s=60)
    assert (held.status, held.reason) == (RunStatus.PAUSED, "waiting for approval of the plan")
    assert "a - b" in (place.repo / "calc.py").read_text()
    place.client.approve(run.run_id)
    assert place.finish(run.run_id).outcome is RunOutcome.VERIFIED


@pytest.mark.outcome("autopilot", "cancelled")
def test_cancel_when_a_run_is_paused_then_ends_it(bench: Bench) -> None:
    """A held run can be cancelled; it ends as cancelled and not as anything else."""
    place = bench(scripts(plan=[says("PASS")]))
    run = place.start(workflow="autopilot", options={"approve": ("plan",)})
    place.client.wait(run.run_id, timeout_s=60)
    place.client.cancel(run.run_id)
    assert place.finish(run.run_id, timeout_s=30).outcome is RunOutcome.CANCELLED


def test_rate_limit_when_the_provider_asks_to_wait_then_costs_no_iteration(bench: Bench) -> None:
    """A 429 is waited out with a shown resume time, and the step is done then."""
    body = json.dumps({"error": {"message": "slow down"}})
    busy = says("PASS", {**MEND, "http": 429, "body": body, "fail_times": 1})
    place = bench([Rule(match=EXECUTOR, steps=busy), *rules([says("PASS")], [says("PASS")])[1:]])
    result = place.run(limits={"rate_wait_s": 0.5})
    assert (result.outcome, result.iterations) == (RunOutcome.VERIFIED, 1)
    waits = [data for kind, data in place.events if kind == "waiting"]
    assert waits
    assert waits[0]["resumes_at"] > 0


def test_flaky_suite_when_several_green_runs_are_asked_for_then_one_is_not_enough(bench: Bench) -> None:
    """With `check_runs=3` a check that passes twice and then fails is red."""
    place = bench(rules([says("PASS", MEND)], [says("PASS")]))
    counter = place.repo.parent / "runs"
    flaky = f'echo x >> {counter}; [ "$(wc -l < {counter})" != 4 ] && pytest -q'
    result = place.run(cap=1, checks=(flaky,), options={"check_runs": 3})
    assert result.outcome is RunOutcome.CAP_REACHED, result.reason
    assert "run 3 of 3" in result.evidence[0].environment


def test_undo_when_a_run_has_ended_then_the_tree_is_what_it_was_with_the_persons_own_changes(bench: Bench) -> None:
    """Undo puts back what the run changed, byte for byte; uncommitted and ignored files of the person stay."""
    new = {"tool": "write_file", "args": {"path": "new.txt", "content": "made by the run\n"}}
    place = bench(rules([says("PASS", MEND, new)], [says("PASS")]))
    (place.repo / "notes.txt").write_bytes(b"mine\r\n\xff")
    (place.repo / ".gitignore").write_text("__pycache__/\n.pytest_cache/\n*.log\n")
    (place.repo / "keep.log").write_text("ignored")
    before = {p.name: p.read_bytes() for p in place.repo.iterdir() if p.is_file()}
    assert place.run().changed_files == ("calc.py", "new.txt")
    assert "+    return a + b" in place.client.diff("r1")
    assert place.client.undo("r1") == ("calc.py", "new.txt")
    assert {p.name: p.read_bytes() for p in place.repo.iterdir() if p.is_file()} == before


def test_undo_when_the_person_changed_the_same_file_then_refuses_and_changes_nothing(bench: Bench) -> None:
    """What a person did to a file after the run is never overwritten."""
    place = bench(rules([says("PASS", MEND)], [says("PASS")]))
    place.run()
    file = place.repo / "calc.py"
    file.write_text(file.read_text() + "# mine\n")
    with pytest.raises(InputError, match=r"changes of your own since in calc\.py"):
        place.client.undo("r1")
    assert file.read_text().endswith("# mine\n")


@pytest.mark.outcome("ralph", "failed")
@pytest.mark.outcome("ralph", "verified")
def test_failed_run_when_resumed_then_the_last_step_is_tried_again(bench: Bench) -> None:
    """After the provider is back, a failed run goes on where it failed."""
    body = json.dumps({"error": {"message": "no such key"}})
    down = says("PASS", {**MEND, "http": 401, "body": body, "fail_times": 1})
    place = bench([Rule(match=EXECUTOR, steps=down), *rules([says("PASS")], [says("PASS")])[1:]])
    assert place.run().outcome is RunOutcome.FAILED
    place.client.resume("r1")
    assert place.finish("r1").outcome is RunOutcome.VERIFIED


def test_isolated_run_when_it_has_ended_then_the_repository_is_untouched_until_it_is_taken(bench: Bench) -> None:
    """`isolate=yes` works in a checkout of its own; `take` brings the result, unless the same file changed since."""
    place = bench(rules([says("PASS", MEND)], [says("PASS")]))
    calc = place.repo / "calc.py"
    (place.repo / "mine.txt").write_text("uncommitted")
    before = calc.read_text()
    result = place.run(options={"isolate": True})
    assert (result.outcome, result.changed_files) == (RunOutcome.VERIFIED, ("calc.py",))
    assert calc.read_text() == before
    assert f"brings that into {place.repo}" in Path(result.report_path).read_text()
    calc.write_text(before + "# meanwhile\n")
    with pytest.raises(InputError, match=r"other changes since in calc\.py"):
        place.client.take("r1")
    calc.write_text(before)
    assert place.client.take("r1") == ("calc.py",)
    assert "a + b" in calc.read_text()
    assert (place.repo / "mine.txt").read_text() == "uncommitted"
    assert place.client.take("r1") == ("calc.py",)


def test_budget_when_the_time_is_used_up_by_a_hanging_child_then_ends_the_run(bench: Bench) -> None:
    """Time counts by the clock, also that of a child which never answers and is ended by the engine."""
    hang = {"tool": "terminal", "args": {"command": "sleep 100"}}
    place = bench(rules([says("PASS", hang)], [says("PASS")]))
    result = place.run(limits={"budget_s": 15.0})
    assert result.outcome is RunOutcome.BUDGET, result.reason
    assert len(result.steps) <= 2
    assert "of 15 s used" in result.reason
