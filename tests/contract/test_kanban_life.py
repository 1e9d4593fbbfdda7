"""The life of a run on the host's real Kanban board: what its commands and its page show."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from matrix_coder.core.models import (
    Finding,
    RunOutcome,
    Severity,
    StepStatus,
    StepVerdict,
    StepView,
)
from matrix_coder.hermes.kanban import KanbanMirror

from .mirrorbench import CLEAN, Board, ended, evidence, ralph, report, run, step


def test_life_of_a_ralph_run_when_synced_at_each_state_then_hermes_kanban_tells_it(
    board: Board, mirror: KanbanMirror
) -> None:
    """A ralph run of two rounds reads back from the host's own commands as it happened."""
    for state in ralph():
        assert mirror.sync(state).problems == ()
        live = {s.number for s in state.steps if s.status is StepStatus.RUNNING}
        shown = {key for key, status in board.statuses().items() if status == "running"}
        assert shown - {"matrix:r8:0"} == {f"matrix:r8:{n}" for n in live}
        assert mirror.sync(state) == CLEAN
    lines = board.hermes("kanban", "list")
    for title in (
        "r8 ralph · verified · make the tests pass",
        "r8 · 1/5 executor · says PASS",
        "r8 · 1/5 verify · FAIL 13/15 (claims PASS)",
        "r8 · 2/5 executor · says PASS",
        "r8 · 2/5 verify · PASS 15/15",
    ):
        assert sum(title in line and " done " in line and "[matrix-r8]" in line for line in lines.splitlines()) == 1
    shown = board.hermes("kanban", "show", board.card("matrix:r8:0")["id"])
    assert "Verified: yes, 15/15 (pytest -q)" in shown
    assert "#2 round 1 verify · FAIL 13/15 (claims PASS) · 4 s" in shown
    assert all(board.card(f"matrix:r8:{n}")["id"] in shown for n in range(1, 5))
    assert "Diagnostics" not in shown
    red = board.hermes("kanban", "show", board.card("matrix:r8:2")["id"])
    assert "claimed: PASS by verify" in red
    assert "verified: FAIL 13/15 · pytest -q · 3.2 s" in red
    assert "Claimed: PASS by verify\n- Verified: no, 13/15 (pytest -q)" in red


def test_board_of_a_run_when_read_by_the_dashboard_then_progress_and_facts_are_there(
    board: Board, mirror: KanbanMirror
) -> None:
    """The host's page counts the steps that ended and shows flat facts under each."""
    from plugins.kanban.dashboard import plugin_api

    *_, before_last, _last = ralph()
    mirror.sync(before_last)
    columns = plugin_api.get_board(
        tenant="matrix-r8", include_archived=False, board=None, workflow_template_id=None, current_step_key=None
    )["columns"]
    cards = {c["title"]: c for column in columns for c in column["tasks"]}
    assert cards["r8 ralph · make the tests pass"]["progress"] == {"done": 4, "total": 4}
    assert cards["r8 ralph · make the tests pass"]["status"] == "running"
    verify = plugin_api.get_task(
        cards["r8 · 2/5 verify · PASS 15/15"]["id"], board=None, run_state_type=None, run_state_name=None
    )
    facts = verify["runs"][0]["metadata"]
    assert {"claimed": "PASS", "verified": "yes", "check": "pytest -q", "tests": "15/15"}.items() <= facts.items()
    assert (facts["exit_code"], facts["child_session"]) == (0, "s4")


def test_step_card_when_its_step_starts_then_it_is_open_under_the_run_before_any_result(
    board: Board, mirror: KanbanMirror
) -> None:
    """A step that works is in the running column, linked to its run, claimed by us for days, without a pid."""
    mirror.sync(run(step(1, "executor", StepStatus.RUNNING)))
    card = board.card("matrix:r8:1")
    assert (card["status"], card["assignee"], card["worker_pid"]) == ("running", "matrix-coder", None)
    assert card["claim_lock"] == "matrix_coder:r8:1:1"
    assert card["claim_expires"] > time.time() + 7 * 86_400
    assert board.rows("select * from task_links") == [
        {"parent_id": board.card("matrix:r8:0")["id"], "child_id": card["id"]}
    ]


@pytest.mark.parametrize(
    ("outcome", "last", "label"),
    [
        (RunOutcome.CANCELLED, StepStatus.CANCELLED, "CANCELLED"),
        (RunOutcome.FAILED, StepStatus.FAILED, "ERROR"),
        (RunOutcome.CAP_REACHED, StepStatus.DONE, "says PASS"),
    ],
)
def test_cards_when_a_run_ends_without_a_pass_then_they_are_closed_and_say_so(
    board: Board, mirror: KanbanMirror, outcome: RunOutcome, last: StepStatus, label: str
) -> None:
    """The board has one closed column: the outcome stands in the title, never only in the column."""
    mirror.sync(run(step(1, "executor", StepStatus.RUNNING)))
    mirror.sync(ended(outcome, step(1, "executor", last, note="the provider answered 401"), reason="why"))
    assert set(board.statuses().values()) == {"done"}
    assert board.card("matrix:r8:0")["title"] == f"r8 ralph · {outcome} · make the tests pass"
    assert board.card("matrix:r8:1")["title"] == f"r8 · 1/5 executor · {label}"
    assert board.card("matrix:r8:0")["result"] == f"{outcome}: why"


def test_step_left_running_when_its_run_ended_then_its_card_is_closed_as_unfinished(
    board: Board, mirror: KanbanMirror
) -> None:
    """No card stays in the running column after its run."""
    mirror.sync(ended(RunOutcome.CANCELLED, step(1, "executor", StepStatus.RUNNING)))
    assert board.card("matrix:r8:1")["status"] == "done"
    assert board.card("matrix:r8:1")["result"] == "Did not finish: the run ended first"


def test_blocked_run_when_synced_then_its_question_is_on_both_cards(board: Board, mirror: KanbanMirror) -> None:
    """Only what waits for a person is in the blocked column, and the card says what is asked and how to answer."""
    question = "Which of the two databases may I drop?"
    asked = step(1, "plan", StepStatus.BLOCKED, report=report(StepVerdict.BLOCKED, open_questions=(question,)))
    mirror.sync(run(step(1, "plan", StepStatus.RUNNING)))
    mirror.sync(ended(RunOutcome.BLOCKED, asked, question=question))
    assert board.statuses() == {"matrix:r8:0": "blocked", "matrix:r8:1": "blocked"}
    for key in ("matrix:r8:0", "matrix:r8:1"):
        assert board.card(key)["body"].startswith(f"Question: {question}\n")
    assert "/matrix answer r8 <text>" in board.comments("matrix:r8:0")[-1]
    shown = board.hermes("kanban", "show", board.card("matrix:r8:0")["id"])
    assert f"→ Question: {question}" in shown


def test_blocked_run_when_answered_and_blocked_again_and_again_then_it_never_goes_to_triage(
    board: Board, mirror: KanbanMirror
) -> None:
    """A card in triage would be handed to a model by the host: blocking a run four times keeps it ours."""
    steps: tuple[StepView, ...] = ()
    for number in range(1, 5):
        question = f"question {number}?"
        mirror.sync(run(*steps, step(number, "plan", StepStatus.RUNNING)))
        assert board.statuses()["matrix:r8:0"] == "running"
        steps = (*steps, step(number, "plan", StepStatus.BLOCKED))
        assert mirror.sync(ended(RunOutcome.BLOCKED, *steps, question=question)).problems == ()
        assert board.statuses()["matrix:r8:0"] == "blocked"
    mirror.sync(ended(RunOutcome.VERIFIED, *steps))
    assert set(board.statuses().values()) == {"done"}


def test_second_attempt_when_the_first_died_then_the_card_keeps_both_apart(board: Board, mirror: KanbanMirror) -> None:
    """Attempts of one step are runs of one card, and the title says which one this is."""
    mirror.sync(run(step(1, "executor", StepStatus.RUNNING)))
    mirror.sync(run(step(1, "executor", StepStatus.RUNNING, attempt=2)))
    assert board.card("matrix:r8:1")["title"] == "r8 · 1/5 executor · try 2"
    assert board.card("matrix:r8:1")["status"] == "running"
    mirror.sync(run(step(1, "executor", attempt=2)))
    assert board.card("matrix:r8:1")["title"] == "r8 · 1/5 executor · says PASS · try 2"
    runs = board.rows("select outcome from task_runs where task_id = ? order by id", board.card("matrix:r8:1")["id"])
    assert [r["outcome"] for r in runs] == ["reclaimed", "completed"]
    assert len(board.rows("select * from task_links")) == 1


def test_whole_output_of_a_check_when_it_is_longer_than_its_comment_then_it_hangs_on_the_card(
    board: Board, mirror: KanbanMirror, tmp_path: Path
) -> None:
    """What a comment can't show is one click away, once."""
    output = tmp_path / "out.txt"
    output.write_text("line\n" * 5_000)
    checked = step(2, "verify", evidence=(evidence(13, output_path=str(output)),))
    mirror.sync(run(step(1, "executor"), checked))
    assert mirror.sync(run(step(1, "executor"), checked)) == CLEAN
    (file,) = board.rows("select * from task_attachments")
    assert (file["filename"], Path(file["stored_path"]).read_text()) == ("r8-2-try1-check1.txt", output.read_text())


def test_output_of_a_check_when_it_is_gone_or_short_then_the_card_is_right_without_it(
    board: Board, mirror: KanbanMirror, tmp_path: Path
) -> None:
    """A file that was removed, and one that the comment shows whole, are no reason to fail, nor to attach."""
    short = tmp_path / "short.txt"
    short.write_text("13 passed")
    found = (
        evidence(13, output_path=str(tmp_path / "gone.txt")),
        evidence(15, tail="13 passed", output_path=str(short)),
    )
    assert mirror.sync(run(step(1, "verify", evidence=found))).problems == ()
    assert board.rows("select * from task_attachments") == []
    assert board.card("matrix:r8:1")["status"] == "done"


def test_findings_when_a_review_reports_them_then_its_comment_lists_them(board: Board, mirror: KanbanMirror) -> None:
    """Severity, place and words of each finding are on the step's card."""
    finding = Finding(severity=Severity.HIGH, summary="SQL from user input", file="db.py", line=12)
    mirror.sync(run(step(1, "review", lens="security", report=report(StepVerdict.FAIL, findings=(finding,)))))
    (comment,) = board.comments("matrix:r8:1")
    assert comment.startswith("claimed: FAIL by review security\n\n```\n")
    assert "HIGH db.py:12 SQL from user input" in comment
