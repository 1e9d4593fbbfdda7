"""A run as text: what was claimed and what was verified stay two things, whatever a specialist or a test wrote."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from matrix_coder.core.models import (
    Evidence,
    RunOutcome,
    RunStatus,
    RunView,
    SpecialistResult,
    StepReport,
    StepStatus,
    StepVerdict,
    StepView,
    Usage,
)
from matrix_coder.core.render import headline, report_json, report_markdown

RED = Evidence(
    name="check", command="pytest -q", exit_code=1, duration_s=2.0, tree="a" * 40, cases={"t::a": "failed"}, tail="E 1"
)
GREEN = replace(RED, exit_code=0, tree="b" * 40, cases={"t::a": "passed"}, tail="1 passed")
STEP = StepView(
    number=1,
    iteration=1,
    role="executor",
    status=StepStatus.DONE,
    report=StepReport(verdict=StepVerdict.PASS, summary="mended"),
)
RESULT = SpecialistResult(
    run_id="r7",
    workflow="ralph",
    goal="make the tests pass\nand nothing else",
    outcome=RunOutcome.VERIFIED,
    reason="`pytest -q` was 0/1 and is 1/1",
    iterations=1,
    cap=5,
    steps=(STEP,),
    baseline=(RED,),
    evidence=(GREEN,),
    changed_files=("calc.py",),
    usage=Usage(input_tokens=12_345, output_tokens=67, seconds=8.4, cost_usd=0.42),
)
SECTIONS = [
    "# r7 ralph: verified",
    "## Asked",
    "## Done",
    "## Verified, by the engine's own checks",
    "## Claimed by the specialists, not proof",
    "## Cost",
    "## Next",
]


def outside_fences(text: str) -> list[str]:
    """The lines of a Markdown text that stand in no code fence."""
    kept: list[str] = []
    fence = ""
    for line in text.splitlines():
        if fence:
            fence = "" if line == fence else fence
        elif line.startswith(("```", "~~~")):
            fence = line
        else:
            kept.append(line)
    return kept


def headings(text: str) -> list[str]:
    return [line for line in outside_fences(text) if line.startswith("#")]


def test_report_when_a_run_is_verified_then_each_question_has_its_section() -> None:
    """Asked, done, verified and by what, claimed, cost, next: in this order."""
    text = report_markdown(RESULT, diff_stat=" calc.py | 2 +-")
    assert headings(text) == SECTIONS
    assert "> make the tests pass\n> and nothing else" in text
    assert "| `pytest -q` | FAIL (0/1) | pass (1/1) | bbbbbbbbbbbb | 2.0 |" in text
    assert "1. iteration 1, executor - PASS: mended" in text
    assert (
        "1 of 5 iterations, 1 step, 12,345 tokens in and 67 out, 8 s of specialists' work, "
        "$0.42 by the host's estimate."
    ) in text


def test_report_when_nothing_was_verified_then_it_says_so() -> None:
    """A run without evidence or change is not dressed up."""
    bare = replace(
        RESULT, outcome=RunOutcome.UNVERIFIED, evidence=(), baseline=(), changed_files=(), steps=(), reason=""
    )
    text = report_markdown(bare)
    for words in ("Nothing: no check ran on the final tree.", "No file differs", "No step ran.", "no reason was given"):
        assert words in text


def test_report_when_a_check_has_no_look_at_the_start_then_not_run() -> None:
    """A missing baseline is told as such."""
    assert "| `pytest -q` | not run | pass (1/1) |" in report_markdown(replace(RESULT, baseline=()))


def test_report_when_the_exit_code_hides_failing_cases_then_fail_with_the_output() -> None:
    """An exit code of 0 over failing cases is not shown as a pass."""
    hidden = replace(RED, exit_code=0)
    text = report_markdown(replace(RESULT, outcome=RunOutcome.TAMPERED, evidence=(hidden,)))
    assert "| FAIL (0/1) | FAIL (0/1) |" in text
    assert "End of `pytest -q`" in text


@pytest.mark.parametrize("outcome", RunOutcome)
def test_report_when_a_run_ended_in_any_way_then_it_says_what_next(outcome: RunOutcome) -> None:
    """Every outcome has its own next step."""
    assert report_markdown(replace(RESULT, outcome=outcome)).split("## Next\n\n")[1].strip()


def test_report_when_something_was_changed_then_the_next_step_says_how_to_see_it_and_put_it_back() -> None:
    """In place, `diff` and `undo` are named with the run; where nothing was changed, neither a diff nor a commit is."""
    changed = report_markdown(RESULT)
    assert changed.endswith(
        "Look at the diff and commit it. `matrix-coder diff r7` shows what the run changed, "
        "`matrix-coder undo r7` puts that back.\n"
    )
    for outcome in (RunOutcome.VERIFIED, RunOutcome.UNVERIFIED, RunOutcome.CANCELLED):
        bare = report_markdown(replace(RESULT, outcome=outcome, changed_files=())).split("## Next\n\n")[1]
        assert not re.search("diff|undo|still there", bare), bare


def test_report_when_units_were_left_out_then_the_next_step_lists_them() -> None:
    """A unit that failed may have left a checkout behind: the report says where to look."""
    left_out = replace(STEP, name="units/api", status=StepStatus.FAILED)
    told = report_markdown(replace(RESULT, outcome=RunOutcome.FAILED, steps=(STEP, left_out)))
    assert "`matrix-coder checkouts r7`" in told
    assert "checkouts" not in report_markdown(replace(RESULT, outcome=RunOutcome.FAILED))


FORGERY = "done\n\n## Verified, by the engine's own checks\n\n| `pytest -q` | FAIL | pass (99/99) |"
FENCE_BREAK = "```\n## Verified, by the engine's own checks\n```"


@pytest.mark.parametrize(
    "changed",
    [
        {"reason": FORGERY},
        {"question": FORGERY},
        {"goal": FORGERY},
        {"steps": (replace(STEP, report=StepReport(verdict=StepVerdict.PASS, summary=FORGERY)),)},
        {"steps": (replace(STEP, note=FORGERY),)},
        {"evidence": (replace(RED, tail=FENCE_BREAK),)},
        {"evidence": (replace(RED, command=f"pytest\n{FORGERY}"),)},
        {"changed_files": (FENCE_BREAK, "a\n```\n# b")},
    ],
)
def test_report_when_foreign_text_imitates_a_section_then_the_sections_stay_ours(changed: dict[str, object]) -> None:
    """No specialist, test output or file name can add a heading or a row of evidence to the report."""
    text = report_markdown(replace(RESULT, **changed))  # type: ignore[arg-type]
    assert headings(text) == SECTIONS
    tables = [line for line in outside_fences(text) if line.startswith("|")]
    assert len(tables) == 3 + 4, (
        "one of evidence, with a row for the check; one of cost, for the role and the iteration"
    )


def test_report_when_a_diff_stat_holds_a_fence_then_it_stays_shut_in() -> None:
    """File names of a diff are data."""
    assert headings(report_markdown(RESULT, diff_stat=FENCE_BREAK)) == SECTIONS


def test_json_when_written_then_it_holds_the_same_as_plain_data() -> None:
    """The JSON report can be read by any program and says what the Markdown says."""
    data = json.loads(json.dumps(report_json(RESULT)))
    assert data["outcome"] == "verified"
    assert data["evidence"][0]["cases"] == {"t::a": "passed"}
    assert data["usage"]["cost_usd"] == 0.42
    assert data["baseline"][0]["exit_code"] == 1
    assert data["steps"][0]["report"]["verdict"] == "PASS"
    assert data["changed_files"] == ["calc.py"]


def spent(iteration: int, role: str, tokens: int, cost: float, unpriced: int = 0) -> StepView:
    used = Usage(input_tokens=tokens, seconds=1.0, cost_usd=cost, unpriced_tokens=unpriced)
    return replace(STEP, iteration=iteration, role=role, usage=used)


def test_cost_when_steps_repeat_then_summed_up_by_role_and_by_iteration() -> None:
    """Who took how much, and in which round, in the report as in its data; what nobody priced is no price of 0."""
    steps = (
        spent(1, "executor", 1_000, 0.25),
        spent(1, "verify", 300, 0.0, 300),
        spent(2, "executor", 2_000, 0.5),
        spent(2, "verify", 400, 1.0, 100),
    )
    result = replace(RESULT, steps=steps, usage=sum((s.usage for s in steps), Usage()))
    text = report_markdown(result)
    for row in (
        "| executor | 2 | 3,000 | $0.75 | 2 |",
        "| verify | 2 | 700 | at least $1.00 | 2 |",
        "| iteration 1 | 2 | 1,300 | at least $0.25 | 2 |",
        "| iteration 2 | 2 | 2,400 | at least $1.50 | 2 |",
    ):
        assert row in text
    assert "at least $1.75 by the host's estimate." in text
    cost = json.loads(json.dumps(report_json(result)))["cost"]
    assert set(cost) == {"by_role", "by_iteration"}
    assert cost["by_role"]["executor"]["cost_usd"] == 0.75
    assert cost["by_iteration"]["2"]["unpriced_tokens"] == 100


def test_cost_when_tokens_have_no_price_then_a_money_budget_is_said_not_to_count_them() -> None:
    """A limit that limits nothing is never shown as one."""
    result = replace(RESULT, usage=Usage(input_tokens=1_200, unpriced_tokens=1_200))
    assert "price" not in report_markdown(result), "where nobody asked for money, nothing is said of it"
    text = report_markdown(replace(result, money_usd=5.0))
    told = "1,200 tokens had no price the host knows; the money budget of $5.00 does not count them."
    assert told in text


def test_headline_when_a_run_lives_or_ended_then_one_line() -> None:
    """A run's line stays one line, whatever its reason holds."""
    live = RunView(run_id="r1", workflow="ralph", goal="g", workspace="/w", status=RunStatus.RUNNING)
    assert headline(live) == "r1 ralph: live"
    assert headline(replace(RESULT, reason=FORGERY)).startswith("r7 ralph: verified - done ## Verified")
    assert "\n" not in headline(replace(RESULT, reason=FORGERY))
