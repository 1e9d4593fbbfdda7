"""The real worker and the board: what it owes outlives it, it keeps to the chosen board and to the chosen kinds."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from matrix_coder.core.models import RunOutcome
from matrix_coder.engine.dispatch import LAUNCHER
from matrix_coder.testing import HermesHome
from webbench import Seeds

NOWHERE = "http://127.0.0.1:9/v1"
CARDS_OF_A_RUN = 3
COMMENTS_OF_A_RUN = 1 + 2 + 3


class Place:
    """A home with ended runs that no board shows yet, and workers over it."""

    def __init__(self, root: Path, **kanban: str) -> None:
        settings = {"kanban": kanban} if kanban else {}
        config = {"plugins": {"entries": {"matrix_coder": {"settings": settings}}}}
        self.home = HermesHome(root, NOWHERE, config=config)
        self.seeds = Seeds(self.home.path)
        self.default = self.home.path / "kanban.db"
        self.started: list[subprocess.Popen[bytes]] = []

    def ended(self, count: int) -> None:
        """So many more verified runs of two steps."""
        for n in range(count):
            self.seeds.ended(RunOutcome.VERIFIED, f"goal {n}", reason="15/15")

    def worker(self) -> subprocess.Popen[bytes]:
        """A worker, started as the engine starts it."""
        words = [sys.executable, str(LAUNCHER), "worker", str(self.home.path)]
        with self.log.open("ab") as log:
            one = subprocess.Popen(words, env=self.home.environment(), stdout=log, stderr=log, start_new_session=True)
        self.started.append(one)
        return one

    @property
    def log(self) -> Path:
        return self.home.path / "matrix_coder" / "worker.log"

    def told(self) -> list[str]:
        """What workers said about the board."""
        return [line for line in self.log.read_text().splitlines() if "kanban:" in line]

    def rows(self, sql: str, board: Path | None = None) -> list[tuple[Any, ...]]:
        """Rows of a board's file; none while it is not there yet."""
        with contextlib.closing(sqlite3.connect(board or self.default)) as db:
            try:
                return db.execute(sql).fetchall()
            except sqlite3.OperationalError as error:
                assert "no such table" in str(error)
                return []

    def assert_complete(self, runs: int, board: Path | None = None) -> None:
        """Each card of so many runs once, done, with its result, its comments and its link."""
        cards = self.rows("select idempotency_key, status, result from tasks", board)
        assert len(cards) == len({key for key, _, _ in cards}) == CARDS_OF_A_RUN * runs
        assert [card for card in cards if card[1] != "done" or not card[2]] == []
        comments = self.rows("select task_id, body from task_comments", board)
        assert len(comments) == len(set(comments)) == COMMENTS_OF_A_RUN * runs
        assert len(self.rows("select * from task_links", board)) == 2 * runs

    def close(self) -> None:
        """End every worker that was started."""
        for one in self.started:
            if one.poll() is None:
                one.kill()
            one.wait()


@pytest.fixture
def make_place(tmp_path: Path) -> Iterator[Callable[..., Place]]:
    """A factory of one home: `make_place(board="matrix")`."""
    made: list[Place] = []

    def make(**kanban: str) -> Place:
        made.append(Place(tmp_path, **kanban))
        return made[-1]

    yield make
    for place in made:
        place.close()


def until(what: Callable[[], object]) -> None:
    """Wait until something is so; how long that takes is nobody's promise."""
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.02)


def leave(worker: subprocess.Popen[bytes]) -> None:
    """Ask a worker to go; it goes in peace."""
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0


def test_worker_when_killed_while_the_board_is_locked_then_the_next_shows_all_of_it_once(
    make_place: Callable[..., Place],
) -> None:
    """What a worker still owed the board dies with it, and is found again from the run store."""
    place = make_place()
    place.ended(1)
    first = place.worker()
    until(lambda: place.rows("select 1 from tasks where status = 'done' and priority = 1"))
    with contextlib.closing(sqlite3.connect(place.default, isolation_level=None)) as other:
        other.execute("begin immediate")
        place.ended(2)
        until(lambda: any("locked" in line for line in place.told()))
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        other.execute("rollback")
    place.assert_complete(1)
    second = place.worker()
    until(lambda: len(place.rows("select 1 from tasks where status = 'done' and priority = 1")) == 3)
    leave(second)
    place.assert_complete(3)


def test_worker_when_killed_again_and_again_while_it_catches_up_then_no_card_is_double_or_half(
    make_place: Callable[..., Place],
) -> None:
    """SIGKILL between any two writes leaves nothing that the next worker doesn't finish."""
    place, runs = make_place(), 60
    place.ended(runs)
    for share in (1, 2, 3):
        worker = place.worker()
        until(lambda at=share: len(place.rows("select 1 from tasks")) >= at * runs * CARDS_OF_A_RUN // 4)
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
    last = place.worker()
    until(lambda: len(place.rows("select 1 from tasks where status = 'done' and priority = 1")) == runs)
    leave(last)
    place.assert_complete(runs)


def test_worker_when_its_board_is_missing_then_one_line_says_so_and_the_cards_come_once_it_exists(
    make_place: Callable[..., Place],
) -> None:
    """A board chosen by its slug gets the cards; while it is missing, no other board does."""
    place = make_place(board="matrix")
    place.ended(3)
    worker = place.worker()
    until(place.told)
    (line,) = place.told()
    assert "there is no Kanban board 'matrix'; `hermes kanban boards create matrix` makes it" in line
    place.home.hermes("kanban", "boards", "create", "matrix")
    board = place.home.path / "kanban" / "boards" / "matrix" / "kanban.db"
    until(lambda: len(place.rows("select 1 from tasks where status = 'done' and priority = 1", board)) == 3)
    place.home.hermes("kanban", "boards", "switch", "default")
    place.ended(1)
    until(lambda: len(place.rows("select 1 from tasks where status = 'done' and priority = 1", board)) == 4)
    leave(worker)
    place.assert_complete(4, board)
    assert len(place.told()) == 1
    assert place.rows("select * from tasks") == []
    listed = place.home.hermes("kanban", "--board", "matrix", "list").out
    assert listed.count(" ralph · verified · goal ") == 4


@pytest.mark.parametrize(("mirror", "shown"), [("all", 1), ("explicit", 1), ("workflows", 1), ("off", 0)])
def test_run_when_the_worker_drives_it_then_it_has_cards_unless_they_are_switched_off(
    make_place: Callable[..., Place], mirror: str, shown: int
) -> None:
    """A workflow has its cards with `all`, `explicit` and `workflows`, and none with `off`."""
    place = make_place(mirror=mirror)
    number = place.seeds.new(goal="no such folder", workspace=place.home.root / "nowhere")
    worker = place.worker()
    until(lambda: place.seeds.store.run_row(number)["status"] == "ended")
    leave(worker)
    cards = place.rows("select status, title from tasks where priority = 1")
    assert len(cards) == shown
    assert all(card == ("done", "r1 ralph · failed · no such folder") for card in cards)
