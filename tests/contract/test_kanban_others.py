"""The mirror beside others on the board: its dispatcher, its people, its readers, other workers."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from dataclasses import replace

import pytest

from matrix_coder.core.models import (
    RunOutcome,
    StepStatus,
)
from matrix_coder.hermes.kanban import KanbanMirror, SyncReport

from .mirrorbench import CLEAN, Board, ended, ralph, run, step


def test_cards_when_the_dispatcher_passes_ten_times_then_none_is_touched_or_spawned(
    board: Board, mirror: KanbanMirror
) -> None:
    """Neither a default assignee nor auto-decompose makes the host work on our cards, in whatever state."""
    (board.home / "config.yaml").write_text("kanban: {default_assignee: default, auto_decompose: true}\n")
    asked = step(1, "plan", StepStatus.BLOCKED)
    mirror.sync(ended(RunOutcome.BLOCKED, asked, question="which?"))
    mirror.sync(replace(run(step(1, "executor"), step(2, "verify", StepStatus.RUNNING)), run_id="r9"))
    card_id = mirror.open_specialist_card("review security", "look at the login", "s1")
    before = board.rows("select * from tasks order by id")
    spawned: list[object] = []
    for _ in range(10):
        with board.kb.connect_closing() as conn:
            found = board.kb.dispatch_once(conn, spawn_fn=lambda *a: spawned.append(a), default_assignee="default")
        assert (found.spawned, found.reclaimed, found.promoted, found.crashed) == ([], 0, 0, [])
    board.hermes("kanban", "dispatch")
    from hermes_cli import kanban_decompose

    assert kanban_decompose.list_triage_ids() == []
    assert spawned == []
    assert board.rows("select * from tasks order by id") == before
    assert card_id in {row["id"] for row in before}


def test_running_card_when_the_host_calls_it_stale_then_the_next_sync_takes_it_back(
    board: Board, mirror: KanbanMirror
) -> None:
    """The host frees cards without a heartbeat after four hours; ours send none and come back."""
    state = run(step(1, "executor", StepStatus.RUNNING))
    mirror.sync(state)
    board.write("update task_runs set started_at = started_at - 20000")
    with board.kb.connect_closing() as conn:
        assert len(board.kb.dispatch_once(conn, spawn_fn=lambda *a: None, stale_timeout_seconds=14_400).stale) == 2
    assert mirror.sync(state) == SyncReport(repaired=2)
    assert set(board.statuses().values()) == {"running"}
    assert len(board.rows("select * from task_links")) == 1


@pytest.mark.parametrize("key", ["matrix:r8:0", "matrix:r8:1"])
@pytest.mark.parametrize("column", ["done", "todo", "blocked", "scheduled", "triage"])
def test_running_card_when_a_person_drags_it_away_then_it_is_taken_back_and_says_why(
    board: Board, mirror: KanbanMirror, key: str, column: str
) -> None:
    """The board shows what is: a dragged card comes back, once told why, and the run never fails for it."""
    state = run(step(1, "executor", StepStatus.RUNNING))
    mirror.sync(state)
    board.drag(key, column)
    assert mirror.sync(state).problems == ()
    assert set(board.statuses().values()) == {"running"}
    assert board.comments(key) == [f"moved to {column} here, but the work goes on: the card is back in running"]
    assert mirror.sync(state) == CLEAN
    assert len(board.rows("select * from task_links")) == 1
    mirror.sync(ended(RunOutcome.VERIFIED, step(1, "executor")))
    assert set(board.statuses().values()) == {"done"}


@pytest.mark.parametrize("column", ["todo", "ready", "triage"])
def test_closed_card_when_a_person_drags_it_away_then_it_is_closed_again(
    board: Board, mirror: KanbanMirror, column: str
) -> None:
    """A finished step stays finished, with its verdict, wherever it is dragged."""
    *_, last = ralph()
    mirror.sync(last)
    before = board.card("matrix:r8:2")["result"]
    board.drag("matrix:r8:2", column)
    assert mirror.sync(last).problems == ()
    assert (board.card("matrix:r8:2")["status"], board.card("matrix:r8:2")["result"]) == ("done", before)


@pytest.mark.parametrize("key", ["matrix:r8:0", "matrix:r8:1"])
def test_card_when_a_person_archives_it_then_it_stays_away_and_no_new_one_comes(
    board: Board, mirror: KanbanMirror, key: str
) -> None:
    """Archiving is how a person puts a card away, and the only change that is kept."""
    state = run(step(1, "executor", StepStatus.RUNNING))
    mirror.sync(state)
    board.drag(key, "archived")
    for later in (state, run(step(1, "executor")), ended(RunOutcome.VERIFIED, step(1, "executor"))):
        assert mirror.sync(later).problems == ()
    assert board.statuses()[key] == "archived"
    assert len(board.statuses()) == 2
    assert set(board.statuses().values()) == {"archived", "done"}
    with board.kb.connect_closing() as conn:
        board.kb.delete_archived_task(conn, board.card(key)["id"])
    mirror.sync(ended(RunOutcome.VERIFIED, step(1, "executor")))
    assert len(board.statuses()) == 1


def test_run_whose_card_is_archived_when_it_goes_on_then_it_opens_no_more_step_cards(
    board: Board, mirror: KanbanMirror
) -> None:
    """Who puts a run's card away wants to see no more of that run."""
    mirror.sync(run(step(1, "executor", StepStatus.RUNNING)))
    board.drag("matrix:r8:0", "archived")
    assert mirror.sync(run(step(1, "executor"), step(2, "verify", StepStatus.RUNNING))).problems == ()
    assert board.statuses() == {"matrix:r8:0": "archived", "matrix:r8:1": "done"}


def test_card_when_a_person_rewrites_it_and_comments_then_the_text_returns_and_the_comment_stays(
    board: Board, mirror: KanbanMirror
) -> None:
    """Our words are put back; a person's words are theirs."""
    state = run(step(1, "executor", StepStatus.RUNNING))
    mirror.sync(state)
    card = board.card("matrix:r8:1")
    board.write("update tasks set title = 'mine', body = 'now', priority = 7 where id = ?", card["id"])
    with board.kb.connect_closing() as conn:
        board.kb.add_comment(conn, card["id"], "SwitchUI", "please hurry")
    assert mirror.sync(state) == SyncReport(repaired=1)
    after = board.card("matrix:r8:1")
    assert (after["title"], after["body"], after["priority"]) == (card["title"], card["body"], 0)
    assert board.comments("matrix:r8:1") == ["please hurry"]


def test_card_when_a_person_gives_it_to_a_profile_then_it_comes_back_to_our_lane(
    board: Board, mirror: KanbanMirror
) -> None:
    """A card that was freed and given to another profile is ours again before anyone works on it."""
    state = run(step(1, "executor", StepStatus.RUNNING))
    mirror.sync(state)
    with board.kb.connect_closing() as conn:
        board.kb.reassign_task(conn, board.card("matrix:r8:1")["id"], "default", reclaim_first=True)
    assert board.card("matrix:r8:1")["assignee"] == "default"
    assert mirror.sync(state).problems == ()
    card = board.card("matrix:r8:1")
    assert (card["assignee"], card["status"]) == ("matrix-coder", "running")


def test_card_when_another_worker_holds_it_then_it_is_left_alone_and_reported(
    board: Board, mirror: KanbanMirror
) -> None:
    """We never pull a card from under a worker that is not ours."""
    mirror.sync(run())
    with board.kb.connect_closing() as conn:
        card = board.card("matrix:r8:0")["id"]
        board.kb.reassign_task(conn, card, "default", reclaim_first=True)
        board.kb.claim_task(conn, card, claimer="host:1")
    (problem,) = mirror.sync(ended(RunOutcome.VERIFIED)).problems
    assert "another worker" in problem
    assert board.card("matrix:r8:0")["claim_lock"] == "host:1"


def test_cards_when_somebody_reads_all_the_time_then_none_is_ever_seen_ready_or_unclaimed(
    board: Board, mirror: KanbanMirror
) -> None:
    """A dispatcher that passes at any moment finds none of our cards where it would take it: moves come together."""
    seen: list[int] = []
    over = threading.Event()

    def watch() -> None:
        sql = "select count(*) from tasks where status not in ('running', 'done', 'blocked')"
        with contextlib.closing(sqlite3.connect(board.home / "kanban.db")) as db:
            while not over.is_set():
                seen.append(db.execute(sql).fetchone()[0])

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for number in range(10):
            for state in ralph():
                assert mirror.sync(replace(state, run_id=f"r{number}")).problems == ()
    finally:
        over.set()
        watcher.join()
    assert len(board.statuses()) == 50
    assert set(seen) == {0}
