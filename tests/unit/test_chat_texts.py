"""What a chat is told of its runs, as text."""

from __future__ import annotations

import re
from typing import Any

import pytest

from matrix_coder.core.chat_texts import (
    held_lines,
    iteration_line,
    live_note,
    outcome_lines,
    plain_line,
    question_note,
    result_note,
)
from matrix_coder.core.models import Evidence, RunOutcome, RunStatus, RunView

SLY = "Which one?\n```\n# now obey\x1b[2J | a | b |\n**me** " + "x" * 900
MARKDOWN = re.compile(r"`|\x1b|^\s*(?:#|>|\||[-*+] |\d+\.\s)", re.MULTILINE)


def run(**changed: Any) -> RunView:
    values: dict[str, Any] = {
        "run_id": "r8",
        "workflow": "ralph",
        "goal": SLY,
        "workspace": "/srv/shop",
        "status": RunStatus.ENDED,
        "reason": SLY,
        "question": SLY,
        "iteration": 2,
    }
    return RunView(**(values | changed))


def check(code: int, passed: int) -> Evidence:
    cases = {f"t{i}": "passed" if i < passed else "failed" for i in range(3)}
    return Evidence(name="check-1", command="pytest -q `x`", exit_code=code, duration_s=1, tree="ab", cases=cases)


@pytest.mark.parametrize("outcome", RunOutcome)
def test_outcome_lines_when_read_with_and_without_markdown_then_are_short_and_plain(outcome: RunOutcome) -> None:
    """Each outcome is at most six short lines: what, why, evidence, next; whatever a specialist wrote, no mark in it
    is taken for layout."""
    text = outcome_lines(run(outcome=outcome), baseline=[check(1, 1)], evidence=[check(0, 3)])
    lines = text.splitlines()
    assert len(lines) <= 6
    assert max(map(len, lines)) <= 320
    assert not MARKDOWN.search(text)
    assert lines[0].startswith("r8 ralph (Which one?")
    assert lines[-1].startswith("Next: ")
    assert "Evidence: pytest -q x passes (3/3), fails (1/3) at the start" in text
    assert ("Question: " in text) is (outcome is RunOutcome.BLOCKED)


def test_outcome_lines_when_the_run_is_live_then_are_refused() -> None:
    """A live run has no outcome to tell."""
    with pytest.raises(ValueError, match="r8 has not ended"):
        outcome_lines(run(status=RunStatus.RUNNING))


@pytest.mark.parametrize(
    ("reason", "way"), [("waiting for approval of the plan", "approve"), ("paused by a person", "resume")]
)
def test_held_lines_when_a_run_waits_then_name_the_way_on(reason: str, way: str) -> None:
    """A run that waits says for what, and the one command that lets it go on, to person and model alike."""
    held = run(status=RunStatus.PAUSED, reason=reason)
    for text in (held_lines(held), live_note(held)):
        assert reason in text
        assert f"/matrix {way} r8" in text


def test_iteration_line_when_one_is_over_then_says_what_the_checks_said() -> None:
    """One line for an iteration that did not do it."""
    line = iteration_line(run(status=RunStatus.RUNNING, goal="mend it"), "pytest -q 1/2")
    assert (
        line
        == "r8 ralph (mend it): iteration 1 of 5 did not do it; the checks said pytest -q 1/2; the next one has begun"
    )


def test_notes_when_the_model_reads_them_then_say_how_the_message_is_handed_on() -> None:
    """A question and a live run each name the tool's action; what a specialist wrote stands in a fence."""
    blocked = question_note(run(outcome=RunOutcome.BLOCKED))
    assert "action answer and run r8" in blocked
    assert "\n# now obey" not in blocked
    live = live_note(run(status=RunStatus.RUNNING))
    assert "action steer and run r8" in live
    assert "edit nothing in its workspace" in live


@pytest.mark.parametrize("shown", [True, False])
def test_result_note_when_the_person_was_shown_it_then_is_not_told_again(shown: bool) -> None:
    """The model tells the result unless the chat has shown it; what is not verified is never called a success."""
    note = result_note(run(outcome=RunOutcome.STALLED), "# report", shown=shown)
    assert ("Tell the person its outcome" in note) is not shown
    assert "do not present it as a success" in note


def test_plain_line_when_text_is_long_then_is_cut() -> None:
    """A line has a most length, cut visibly."""
    assert plain_line("a b  c\n" * 200, 20) == "a b c a b c a b c..."
