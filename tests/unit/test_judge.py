"""What evidence is worth: each way in which a run could be called verified without proof, and what comes of it."""

from __future__ import annotations

import pytest

from matrix_coder.core.models import Evidence, RunOutcome
from matrix_coder.core.workflow import End, is_green, judge

RED = {"t::add": "failed", "t::double": "passed"}
GREEN = {"t::add": "passed", "t::double": "passed"}


def check(
    exit_code: int | None,
    cases: dict[str, str] | None = None,
    *,
    name: str = "check",
    command: str = "pytest -q",
    tree: str = "",
) -> Evidence:
    """What one check said."""
    return Evidence(name=name, command=command, exit_code=exit_code, duration_s=1.0, tree=tree, cases=cases or {})


def judged(before: Evidence | None, after: Evidence) -> End:
    return judge((before,) if before else (), (after,))


def test_judge_when_a_case_failed_then_and_passes_now_then_verified_by_that() -> None:
    """A case that was red on the starting tree and is green on the final one is proof, and the reason names it."""
    end = judged(check(1, RED, tree="a"), check(0, GREEN, tree="b"))
    assert end.outcome is RunOutcome.VERIFIED
    assert (
        end.reason
        == "`pytest -q` was 1/2 on the starting tree and is 2/2 on the final tree; 1 case failed then and pass now"
    )


def test_judge_when_a_check_without_cases_failed_then_and_passes_now_then_verified() -> None:
    """A check whose runner tells no cases counts by its exit code."""
    assert judged(check(1, command="make test"), check(0, command="make test")).outcome is RunOutcome.VERIFIED


def test_judge_when_a_second_stage_of_the_check_failed_then_verified() -> None:
    """A check that failed beside green tests, such as a linter before them, is proof once it passes."""
    assert judged(check(1, GREEN), check(0, GREEN)).outcome is RunOutcome.VERIFIED
    assert judged(check(1), check(0, GREEN)).outcome is RunOutcome.VERIFIED


@pytest.mark.parametrize("cases", [None, GREEN])
def test_judge_when_all_was_green_before_then_unverified(cases: dict[str, str] | None) -> None:
    """A check that was green before the run proves nothing about the goal."""
    end = judged(check(0, cases, tree="a"), check(0, cases, tree="b"))
    assert end.outcome is RunOutcome.UNVERIFIED
    assert end.reason == "nothing broke; no check covers the goal (all were green before)"


def test_judge_when_new_green_cases_appear_beside_a_green_start_then_unverified() -> None:
    """Tests that were added and pass say nothing as long as nobody ran them on the starting tree."""
    added = {**GREEN, "t::new": "passed"}
    assert judged(check(0, GREEN, tree="a"), check(0, added, tree="b")).outcome is RunOutcome.UNVERIFIED


@pytest.mark.parametrize(
    ("after", "gone"),
    [
        ({"t::double": "passed"}, "t::add"),
        ({"t::add": "skipped", "t::double": "passed"}, "t::add"),
        ({"t::add": "passed"}, "t::double"),
        ({"t::add": "passed", "t::double": "skipped"}, "t::double"),
        ({"t::renamed": "passed", "t::double": "passed"}, "t::add"),
        ({}, "t::add, t::double"),
    ],
)
def test_judge_when_cases_of_the_start_no_longer_run_then_tampered(after: dict[str, str], gone: str) -> None:
    """Deleted, skipped, renamed or unreported cases, red or green before, are never success; the reason names them."""
    end = judged(check(1, RED, tree="a"), check(0, after, tree="b"))
    assert end.outcome is RunOutcome.TAMPERED
    assert end.reason == f"tests that ran at the start no longer run: {gone}"


def test_judge_when_many_cases_are_gone_then_the_reason_stays_short() -> None:
    """Five names and a count, whatever the number."""
    before = {f"t::case{n:02}": "passed" for n in range(40)}
    end = judged(check(1, before), check(0, {"t::other": "passed"}))
    assert end.reason.endswith("t::case00, t::case01, t::case02, t::case03, t::case04 and 35 more")


def test_judge_when_a_case_was_skipped_from_the_start_then_its_absence_is_no_loss() -> None:
    """What never ran can't be lost."""
    before = {**RED, "t::slow": "skipped"}
    assert judged(check(1, before), check(0, GREEN)).outcome is RunOutcome.VERIFIED


@pytest.mark.parametrize("code", [4, 5, 126, 127])
def test_judge_when_there_was_nothing_to_run_at_the_start_then_unverified(code: int) -> None:
    """No tests collected, a usage error or a missing program is no failing check."""
    end = judged(check(code, tree="a"), check(0, GREEN, tree="b"))
    assert end.outcome is RunOutcome.UNVERIFIED
    assert "had nothing to run on the starting tree" in end.reason


@pytest.mark.parametrize("code", [None, 130, 137, 143, -2, -9, -15])
def test_judge_when_the_check_was_cut_off_at_the_start_then_unverified(code: int | None) -> None:
    """A time limit or a kill from outside says nothing about the starting tree: the machine may have been busy."""
    end = judged(check(code, tree="a"), check(0, GREEN, tree="b"))
    assert end.outcome is RunOutcome.UNVERIFIED
    assert "did not come to an end on the starting tree" in end.reason


@pytest.mark.parametrize("code", [-6, -11, 134, 139])
def test_judge_when_the_check_crashed_at_the_start_then_verified(code: int) -> None:
    """A program that crashed by itself did fail."""
    assert judged(check(code, tree="a"), check(0, GREEN, tree="b")).outcome is RunOutcome.VERIFIED


def test_judge_when_the_result_changed_on_the_same_tree_then_unverified() -> None:
    """A check that is red and then green without any change is flaky, not proof."""
    end = judged(check(1, RED, tree="a"), check(0, GREEN, tree="a"))
    assert end.outcome is RunOutcome.UNVERIFIED
    assert "the very same tree" in end.reason


@pytest.mark.parametrize("now", ["passed", "failed"])
def test_judge_when_a_file_could_not_be_collected_then_its_cases_stand_for_it(now: str) -> None:
    """A file of tests that failed to import is mended by cases of its own that pass, and by nothing else."""
    before = check(1, {"t": "error", "u::other": "passed"})
    after = check(0 if now == "passed" else 1, {"t::one": now, "t.Class::two": "passed", "u::other": "passed"})
    expected = RunOutcome.VERIFIED if now == "passed" else RunOutcome.UNVERIFIED
    assert judged(before, after).outcome is expected


@pytest.mark.parametrize("after", [{}, {"t": "skipped"}, {"t::one": "skipped"}, {"tt::one": "passed"}])
def test_judge_when_a_file_that_could_not_be_collected_is_gone_then_tampered(after: dict[str, str]) -> None:
    """Deleting or skipping the file of tests that could not be imported is no repair."""
    end = judged(check(2, {"t": "error", "u::other": "passed"}), check(0, {"u::other": "passed", **after}))
    assert end.outcome is RunOutcome.TAMPERED
    assert end.reason.endswith(": t")


def test_judge_when_every_test_is_skipped_at_the_end_then_unverified() -> None:
    """A run that skipped everything passed nothing."""
    end = judged(check(1, tree="a"), check(0, {"t::add": "skipped"}, tree="b"))
    assert end.outcome is RunOutcome.UNVERIFIED


def test_judge_when_no_check_ran_at_the_start_then_unverified() -> None:
    """Without a look at the starting tree there is nothing to compare with."""
    end = judged(None, check(0, GREEN))
    assert end == End(outcome=RunOutcome.UNVERIFIED, reason="no check ran on the starting tree to compare with")


def test_judge_when_names_or_commands_do_not_match_then_unverified() -> None:
    """Evidence is compared with the same check's evidence only."""
    before = check(1, RED, name="check-1")
    assert judged(before, check(0, GREEN, name="check-2")).outcome is RunOutcome.UNVERIFIED
    assert judged(before, check(0, GREEN, name="check-1", command="true")).outcome is RunOutcome.UNVERIFIED


def test_judge_when_a_check_of_the_start_is_absent_at_the_end_then_unverified() -> None:
    """One check's proof does not stand in for another that did not run."""
    first = check(1, RED, name="check-1", tree="a")
    second = check(0, name="check-2", command="ruff check .", tree="a")
    end = judge((first, second), (check(0, GREEN, name="check-1", tree="b"),))
    assert end == End(outcome=RunOutcome.UNVERIFIED, reason="`ruff check .` did not run on the final tree")


def test_judge_when_one_of_two_checks_proves_the_goal_then_verified() -> None:
    """A check that was green at both ends neither proves nor spoils."""
    other = check(0, name="check-2", command="ruff check .")
    end = judge((check(1, RED, name="check-1"), other), (check(0, GREEN, name="check-1"), other))
    assert end.outcome is RunOutcome.VERIFIED


def test_judge_when_one_of_two_checks_lost_its_tests_then_tampered() -> None:
    """Proof by one check does not outweigh the loss in another."""
    other = check(0, {"u::one": "passed"}, name="check-2", command="pytest u")
    emptied = check(0, {"u::two": "passed"}, name="check-2", command="pytest u")
    end = judge((check(1, RED, name="check-1"), other), (check(0, GREEN, name="check-1"), emptied))
    assert end.outcome is RunOutcome.TAMPERED


@pytest.mark.parametrize("after", [check(1, GREEN), check(None, GREEN), check(0, {**GREEN, "t::new": "failed"})])
def test_judge_when_the_final_evidence_is_not_green_then_never_verified(after: Evidence) -> None:
    """Whoever asks, red evidence is never success."""
    assert judged(check(1, RED), after).outcome is RunOutcome.UNVERIFIED


def test_judge_when_there_is_no_final_evidence_then_unverified() -> None:
    """Nothing proves nothing."""
    assert judge((), ()).outcome is RunOutcome.UNVERIFIED
    assert judge((check(1, RED),), ()).outcome is RunOutcome.UNVERIFIED


@pytest.mark.parametrize(
    ("evidence", "green"),
    [
        (check(0), True),
        (check(0, GREEN), True),
        (check(0, {"t::a": "skipped"}), True),
        (check(0, RED), False),
        (check(0, {"t::a": "error"}), False),
        (check(1, GREEN), False),
        (check(None), False),
    ],
)
def test_is_green_when_exit_code_or_a_case_says_no_then_not_green(evidence: Evidence, green: bool) -> None:
    """An exit code of 0 does not outweigh the failing cases that the same check reported."""
    assert is_green(evidence) is green
