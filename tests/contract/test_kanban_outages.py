"""The mirror and a board that is late, locked, broken, busy, or has lost what was written."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from matrix_coder.core.models import (
    RunOutcome,
    StepStatus,
)
from matrix_coder.hermes.kanban import KanbanMirror, SyncReport
from matrix_coder.hermes.kanban_file import keep_in_use

from .mirrorbench import CLEAN, Board, MemoryBook, ended, evidence, ralph, run, step


def test_run_when_the_board_was_away_for_all_of_it_then_one_sync_shows_it_whole(
    board: Board, mirror: KanbanMirror
) -> None:
    """A board that comes late gets every card, closed, with its evidence, and nothing twice."""
    *_, last = ralph()
    assert mirror.sync(last) == SyncReport(created=5)
    assert mirror.sync(last) == CLEAN
    assert set(board.statuses().values()) == {"done"}
    assert len(board.comments("matrix:r8:2")) == 2


def test_sync_when_the_database_is_locked_then_it_gives_up_soon_and_catches_up_later(
    board: Board, mirror: KanbanMirror
) -> None:
    """A stuck writer costs a sync seconds, not the host's twelve minutes, and no card."""
    state = run(step(1, "executor", StepStatus.RUNNING))
    with contextlib.closing(sqlite3.connect(board.home / "kanban.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        started = time.monotonic()
        (problem,) = mirror.sync(state).problems
        took = time.monotonic() - started
        other.execute("rollback")
    assert "locked" in problem
    assert took < 30, "far from the 720 s that the host would wait"
    assert mirror.sync(state) == SyncReport(created=2)
    assert "HERMES_KANBAN_BUSY_TIMEOUT_MS" not in os.environ


def test_sync_when_the_board_is_garbage_then_it_reports_and_raises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mirror: KanbanMirror
) -> None:
    """A damaged file is a problem of the board, not of the run."""
    home = tmp_path / "damaged"
    home.mkdir()
    (home / "kanban.db").write_bytes(b"not a database" * 500)
    monkeypatch.setenv("HERMES_HOME", str(home))
    assert len(mirror.sync(run()).problems) == 1


def test_sync_when_the_named_board_is_missing_then_the_problem_says_how_to_make_it(board: Board) -> None:
    """The person's own board is used once it is there; nothing lands on another meanwhile."""
    mirror = KanbanMirror(MemoryBook(), board="matrix")
    (problem,) = mirror.sync(run()).problems
    assert "hermes kanban boards create matrix" in problem
    board.kb.create_board("matrix")
    assert mirror.sync(run()) == SyncReport(created=1)
    assert board.statuses() == {}


def test_run_when_the_person_switches_boards_then_its_cards_stay_where_they_began(
    board: Board, mirror: KanbanMirror
) -> None:
    """A run lives on the board that was current when it started."""
    mirror.sync(run())
    board.kb.create_board("other")
    board.kb.set_current_board("other")
    mirror.sync(run(step(1, "executor", StepStatus.RUNNING)))
    assert len(board.statuses()) == 2


DYING = """
import os, sys, time
sys.path.insert(0, {tests!r})
from matrix_coder.core.models import StepStatus
from matrix_coder.hermes.kanban import KanbanMirror
from mirrorbench import MemoryBook, run, step
class Dying(MemoryBook):
    calls = 0
    def record(self, run_id, cards):
        self.calls += 1
        if self.calls > {die_at}:
            os._exit(9)
        super().record(run_id, cards)
KanbanMirror(Dying()).sync(run(step(1, "executor"), step(2, "verify", StepStatus.RUNNING)))
"""


@pytest.mark.parametrize("die_at", [0, 1])
def test_process_when_killed_between_create_and_record_then_the_next_makes_no_second_card(
    board: Board, mirror: KanbanMirror, die_at: int
) -> None:
    """The card is found again by its key, although nobody remembers it."""
    code = DYING.format(tests=str(Path(__file__).parent), die_at=die_at)
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    state = run(step(1, "executor"), step(2, "verify", StepStatus.RUNNING))
    assert mirror.sync(state).problems == ()
    assert board.statuses() == {"matrix:r8:0": "running", "matrix:r8:1": "done", "matrix:r8:2": "running"}
    assert mirror.sync(state) == CLEAN


def test_card_when_the_board_lost_it_then_it_comes_back_with_its_comments_and_link(
    board: Board, mirror: KanbanMirror
) -> None:
    """What the host loses or a person deletes is put back, from the truth in our own store."""
    *_, last = ralph()
    mirror.sync(last)
    for key in ("matrix:r8:0", "matrix:r8:2"):
        with board.kb.connect_closing() as conn:
            board.kb.delete_task(conn, board.card(key)["id"])
    report = mirror.sync(last)
    assert (report.created, report.problems) == (0, ())
    assert set(board.statuses().values()) == {"done"}
    assert len(board.statuses()) == 5
    assert len(board.comments("matrix:r8:2")) == 2
    parent = board.card("matrix:r8:0")["id"]
    assert len(board.rows("select * from task_links where parent_id = ?", parent)) == 4


def test_parts_of_cards_when_the_board_lost_them_then_one_sync_mends_all(board: Board, mirror: KanbanMirror) -> None:
    """A lost `done`, a lost comment and a lost link are each found by reading back."""
    *_, last = ralph()
    mirror.sync(last)
    board.write("update tasks set status = 'running', result = null where idempotency_key = 'matrix:r8:1'")
    board.write("delete from task_comments where body like 'verified: FAIL%'")
    board.write("delete from task_links where child_id = ?", board.card("matrix:r8:3")["id"])
    assert mirror.sync(last) == SyncReport(repaired=3)
    assert mirror.sync(last) == CLEAN
    assert board.card("matrix:r8:1")["status"] == "done"


def test_run_number_when_an_older_store_had_it_then_the_old_cards_are_left_alone(board: Board) -> None:
    """A new store counts from one again: its runs get cards of their own."""
    *_, last = ralph()
    KanbanMirror(MemoryBook()).sync(last)
    board.write("update tasks set created_at = created_at - 86400")
    mirror = KanbanMirror(MemoryBook())
    new = run(step(1, "executor", StepStatus.RUNNING))
    assert mirror.sync(new) == SyncReport(created=2)
    assert mirror.sync(new) == CLEAN
    assert list(board.statuses().values()).count("running") == 2
    assert len(board.statuses()) == 7


TRAFFIC = """
import sys, time
from hermes_cli import kanban_db as kb
while True:
    try:
        with kb.connect_closing() as conn:
            kb.list_tasks(conn)
            kb.add_comment(conn, kb.create_task(conn, title="foreign", assignee="other"), "other", "x" * 200)
    except Exception as error:
        print(error, file=sys.stderr)
    time.sleep(0.005)
"""


def test_150_quick_cards_when_another_process_writes_all_the_time_then_each_is_complete(
    board: Board, mirror: KanbanMirror
) -> None:
    """Of 50 runs of two steps, written as they happen beside a busy foreign writer, no card lacks anything."""
    other = subprocess.Popen([sys.executable, "-c", TRAFFIC], stderr=subprocess.DEVNULL)
    try:
        while not board.rows("select 1 from tasks"):
            time.sleep(0.01)
        for number in range(50):
            one, two = step(1, "executor"), step(2, "verify", evidence=(evidence(15),))
            working = step(1, "executor", StepStatus.RUNNING)
            for state in (run(working), run(one), ended(RunOutcome.VERIFIED, one, two, reason="15/15")):
                assert mirror.sync(replace(state, run_id=f"r{number}")).problems == ()
    finally:
        other.kill()
        other.wait()
    cards = board.rows("select id, status, result from tasks where idempotency_key is not null")
    assert [c for c in cards if c["status"] != "done" or not c["result"]] == []
    assert len(cards) == 150
    ours = "select count(*) as n from task_comments where author = 'matrix-coder'"
    assert board.rows(ours) == [{"n": 50 * (1 + 2 + 3)}]
    assert board.rows("select count(*) as n from task_links") == [{"n": 100}]


CLOSER = """
import contextlib, os, sqlite3, sys
with contextlib.closing(sqlite3.connect(os.environ["HERMES_HOME"] + "/kanban.db")) as db:
    print(db.execute("select count(*) from tasks").fetchone()[0])
"""


def test_log_of_the_board_when_another_process_closes_last_then_a_held_file_keeps_it(board: Board) -> None:
    """The host drops SQLite's locks with each write; ours holds, so that no other process deletes the log in use."""
    log = board.home / "kanban.db-wal"
    with board.kb.connect_closing() as conn:
        board.kb.list_tasks(conn)
        keep_in_use(board.home / "kanban.db")
        for number in range(5):
            board.kb.create_task(conn, title=f"card {number}")
            before = log.stat().st_ino
            seen = subprocess.run([sys.executable, "-c", CLOSER], capture_output=True, text=True, check=True)
            assert (int(seen.stdout), log.stat().st_ino) == (number + 1, before)


def test_log_of_the_board_when_hundreds_of_writes_went_through_it_then_it_stays_small(
    board: Board, mirror: KanbanMirror
) -> None:
    """Holding the file keeps nobody from checkpointing: the log starts over again and again."""
    steps = tuple(step(n, "executor") for n in range(1, 81))
    assert mirror.sync(run(*steps)) == SyncReport(created=81)
    assert (board.home / "kanban.db-wal").stat().st_size < 2_000_000
