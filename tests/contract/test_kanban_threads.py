"""The thread that shows runs on the board while nobody waits for it."""

from __future__ import annotations

import contextlib
import sqlite3
import time

from matrix_coder.core.models import (
    StepStatus,
)
from matrix_coder.hermes.kanban import KanbanMirror
from matrix_coder.hermes.kanban_thread import MirrorThread

from .mirrorbench import CLEAN, Board, MemoryBook, Reports, ralph, run, step


def test_thread_when_notified_many_times_then_the_board_shows_the_last_state_at_stop(
    board: Board, mirror: KanbanMirror
) -> None:
    """A thousand notices are a few syncs, and what was told last is on the board when the thread ends."""
    states, said = list(ralph()), Reports()
    now = [states[0]]
    thread = MirrorThread(mirror, lambda _: now[0], on_report=said)
    for n in range(1_000):
        now[0] = states[min(n // 100, len(states) - 1)]
        thread.notify("r8")
    now[0] = states[-1]
    thread.notify("r8")
    assert thread.stop(60)
    assert set(board.statuses().values()) == {"done"}
    assert len(said.said) < 100


def test_thread_when_first_told_of_a_run_then_shows_it_at_once_and_more_of_it_later(
    board: Board, mirror: KanbanMirror
) -> None:
    """A card does not wait for more news; what comes right after it waits, and is not lost."""
    said = Reports()
    now = [run()]
    thread = MirrorThread(mirror, lambda _: now[0], settle_s=3_600, on_report=said)
    thread.notify("r8")
    said.wait_for(lambda r: r.created)
    now[0] = run(step(1, "executor", StepStatus.RUNNING))
    thread.notify("r8")
    assert board.statuses() == {"matrix:r8:0": "running"}
    assert thread.stop(60)
    assert board.statuses() == {"matrix:r8:0": "running", "matrix:r8:1": "running"}


def test_thread_when_the_board_is_locked_then_notify_returns_and_the_card_comes_later(
    board: Board, mirror: KanbanMirror
) -> None:
    """The caller never waits for a board; the thread tries again until it is written."""
    said = Reports()
    thread = MirrorThread(mirror, lambda _: run(), first_wait_s=0.05, on_report=said)
    with contextlib.closing(sqlite3.connect(board.home / "kanban.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        thread.notify("r8")
        said.wait_for(lambda r: r.problems)
        for _ in range(1_000):
            thread.notify("r8")
        assert board.statuses() == {}
        other.execute("rollback")
    said.wait_for(lambda r: r.created)
    assert thread.stop(60)
    assert board.statuses() == {"matrix:r8:0": "running"}


def test_thread_when_a_live_card_is_dragged_then_it_comes_back_without_a_notice(
    board: Board, mirror: KanbanMirror
) -> None:
    """A run that goes on is looked at again from time to time."""
    said = Reports()
    thread = MirrorThread(mirror, lambda _: run(), refresh_s=0.05, on_report=said)
    thread.notify("r8")
    said.wait_for(lambda r: r.created)
    board.drag("matrix:r8:0", "done")
    said.wait_for(lambda r: r.repaired)
    assert thread.stop(60)
    assert board.statuses() == {"matrix:r8:0": "running"}


def test_thread_when_a_run_changes_all_the_time_then_its_older_cards_are_still_looked_after(
    board: Board, mirror: KanbanMirror
) -> None:
    """Notices keep nobody from the whole look: a card of an earlier round that was dragged away comes back."""
    said = Reports()
    steps = (step(1, "executor"), step(2, "verify"), step(3, "executor", StepStatus.RUNNING))
    thread = MirrorThread(mirror, lambda _: run(*steps), refresh_s=0.2, on_report=said)
    thread.notify("r8")
    said.wait_for(lambda r: r.created)
    board.drag("matrix:r8:1", "todo")
    deadline = time.monotonic() + 60
    while board.card("matrix:r8:1")["status"] != "done" and time.monotonic() < deadline:
        thread.notify("r8")
        time.sleep(0.01)
    assert thread.stop(60)
    assert board.card("matrix:r8:1")["status"] == "done"


def test_thread_when_told_of_an_ended_run_that_is_shown_then_it_leaves_the_board_alone(board: Board) -> None:
    """The next worker is told of every run: those that are shown cost nothing, and what a person deleted stays away."""
    *_, last = ralph()
    book, said = MemoryBook(), Reports()
    assert KanbanMirror(book).sync(last).problems == ()
    with board.kb.connect_closing() as conn:
        board.kb.delete_task(conn, board.card("matrix:r8:2")["id"])
    thread = MirrorThread(KanbanMirror(book), lambda _: last, on_report=said)
    thread.notify("r8")
    assert thread.stop(60)
    assert said.said == [CLEAN]
    assert len(board.statuses()) == 4
