"""The one card of a single specialist's turn, on the host's real board."""

from __future__ import annotations

import contextlib
import sqlite3
import time

import pytest

from matrix_coder.hermes.kanban import KanbanMirror
from matrix_coder.hermes.kanban_thread import SpecialistThread

from .mirrorbench import Board, MemoryBook


@pytest.mark.parametrize("how", ["done", "interrupted", "failed"])
def test_specialist_card_when_its_turn_ends_then_it_is_closed_with_what_happened(
    board: Board, mirror: KanbanMirror, how: str
) -> None:
    """One turn, one card, closed as done, interrupted or failed."""
    card_id = mirror.open_specialist_card("review security", "look at the login", "s1", turn="t1")
    assert card_id is not None
    assert mirror.open_specialist_card("review security", "look at the login", "s1", turn="t1") == card_id
    assert mirror.open_specialist_card("review security", "look at the login", "s2", turn="t1") != card_id
    assert board.rows("select status, title from tasks where id = ?", card_id) == [
        {"status": "running", "title": "review security · look at the login"}
    ]
    line = "2 findings"
    assert mirror.close_specialist_card(card_id, how, route="review security", goal="look at the login", line=line)
    assert board.rows("select status, title, result from tasks where id = ?", card_id) == [
        {"status": "done", "title": f"review security · {how} · look at the login", "result": f"{how}: 2 findings"}
    ]


def test_specialist_card_when_its_session_goes_on_without_closing_it_then_it_is_closed_as_interrupted(
    board: Board, mirror: KanbanMirror
) -> None:
    """A turn that no hook ended leaves no card open behind it; nor does a session that died."""
    left = mirror.open_specialist_card("debug", "why", "s1")
    foreign = mirror.open_specialist_card("plan", "how", "s2")
    later = KanbanMirror(MemoryBook(), clock=lambda: time.time() + 90_000)
    mirror.open_specialist_card("executor", "then", "s1")
    rows = {r["id"]: r["status"] for r in board.rows("select id, status from tasks")}
    assert (rows[left], rows[foreign]) == ("done", "running")
    later.open_specialist_card("executor", "much later", "s3")
    rows = {r["id"]: r["status"] for r in board.rows("select id, status from tasks")}
    assert rows[foreign] == "done"


def test_specialist_card_when_the_board_is_locked_then_there_is_none_and_nothing_raises(
    board: Board, mirror: KanbanMirror
) -> None:
    """A chat turn never fails for its card."""
    with contextlib.closing(sqlite3.connect(board.home / "kanban.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        assert mirror.open_specialist_card("debug", "why", "s1") is None
        assert mirror.close_specialist_card("t_00000000", "done") is False
        other.execute("rollback")


def test_specialist_thread_when_turns_come_and_go_then_each_has_its_closed_card(
    board: Board, mirror: KanbanMirror
) -> None:
    """Hooks hand over and go on; the cards are there when the thread has ended."""
    thread = SpecialistThread(mirror)
    for turn in ("t1", "t2"):
        thread.open(turn, "debug", "why", "s1")
        thread.close(turn, "done", route="debug", goal="why", line="a typo")
    thread.close("never opened", "failed")
    assert thread.stop(60)
    rows = board.rows("select title, status, result from tasks")
    assert rows == [{"title": "debug · done · why", "status": "done", "result": "done: a typo"}] * 2
