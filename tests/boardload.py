"""Many cards at once: runs written by the mirror's thread while a dashboard streams the board to many readers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect

from boardbench import NOWHERE, pytest_evidence, report
from matrix_coder.core.models import RunOutcome, RunView, StepVerdict
from matrix_coder.engine import views
from matrix_coder.hermes.card_book import StoreCardBook
from matrix_coder.hermes.kanban import KanbanMirror, SyncReport
from matrix_coder.hermes.kanban_cards import step_card
from matrix_coder.hermes.kanban_run_card import run_card
from matrix_coder.hermes.kanban_text import Card
from matrix_coder.hermes.kanban_thread import MirrorThread
from matrix_coder.testing import HermesHome
from webbench import TOKEN, Dashboard, Seeds

CARDS_OF_A_RUN = 3


class Streams:
    """Readers of the board's event stream, from its start, each on a connection of its own."""

    def __init__(self, port: int, count: int) -> None:
        self._url = f"ws://127.0.0.1:{port}/api/plugins/kanban/events?token={TOKEN}"
        self.broken = 0
        self.seen: list[Counter[tuple[str, str]]] = [Counter() for _ in range(count)]
        self.cursors = [0] * count
        self._loop = asyncio.new_event_loop()
        self._opened = threading.Barrier(2)
        self._tasks: list[asyncio.Task[None]] = []
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()
        self._opened.wait(60)

    def _work(self) -> None:
        self._loop.run_until_complete(self._read_all())
        self._loop.close()

    async def _read_all(self) -> None:
        ready = asyncio.Barrier(len(self.seen) + 1)
        self._tasks = [asyncio.create_task(self._read(at, ready)) for at in range(len(self.seen))]
        await ready.wait()
        self._opened.wait(60)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _read(self, at: int, ready: asyncio.Barrier) -> None:
        """Read on, from the last event that was seen where the host breaks a stream off, as its page does."""
        for turn in itertools.count():
            async with connect(f"{self._url}&since={self.cursors[at]}", max_size=None) as stream:
                if turn == 0:
                    await ready.wait()
                async for message in stream:
                    told = json.loads(message)
                    self.seen[at].update((e["task_id"], e["kind"]) for e in told["events"])
                    self.cursors[at] = told["cursor"]
            self.broken += 1

    def wait_for(self, event: int) -> None:
        """Until each reader has had this event."""
        deadline = time.monotonic() + 120
        while min(self.cursors) < event:
            assert time.monotonic() < deadline, f"a stream stands at {min(self.cursors)} of {event}"
            time.sleep(0.02)

    def close(self) -> None:
        """Leave."""
        self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in self._tasks])
        self._thread.join(30)


class BoardLoad:
    """A dashboard with its readers, and the mirror's thread of this process, which writes to the board behind it."""

    def __init__(self, root: Path, *, streams: int) -> None:
        self.home = HermesHome(root, NOWHERE)
        self.seeds = Seeds(self.home.path)
        self.syncs: list[float] = []
        self._reports: dict[str, SyncReport] = {}
        self._more = threading.Condition()
        self.dashboard = Dashboard(self.home)
        self.streams = Streams(self.dashboard.port, streams)
        self._stop = threading.Event()
        self.looks = self.failures = 0
        self._page = threading.Thread(target=self._look, daemon=True)
        self._page.start()

    def _look(self) -> None:
        """What a page does while it is open: read the board again and again."""
        with self.dashboard.client() as client:
            while not self._stop.wait(0.5):
                answer = client.get(f"{self.dashboard.url}/api/plugins/kanban/board")
                self.looks += answer.status_code == 200
                self.failures += answer.status_code == 500

    @contextlib.contextmanager
    def _writer(self) -> Iterator[MirrorThread]:
        with pytest.MonkeyPatch.context() as patch:
            for name in [n for n in os.environ if n.startswith("HERMES_KANBAN")]:
                patch.delenv(name)
            patch.setenv("HERMES_HOME", str(self.home.path))
            mirror = KanbanMirror(StoreCardBook(self.seeds.store))
            # A sync for each change, however close they are: as many writes as there can be.
            thread = MirrorThread(mirror, self._view, settle_s=0, first_wait_s=0.05, on_report=self._said)
            yield thread
            assert thread.stop(60)

    def _view(self, run_id: str) -> RunView:
        return views.view(self.seeds.store, views.run_number(run_id))

    def _said(self, run_id: str, report: SyncReport) -> None:
        with self._more:
            self._reports[run_id] = report
            self._more.notify_all()

    def write(self, cards: int) -> list[int]:
        """Runs of two steps until there are so many cards, each change of each shown before the next; the runs."""
        numbers = []
        with self._writer() as writer:
            for _ in range(-(-cards // CARDS_OF_A_RUN)):
                for number in self._life():
                    self._show(writer, number)
                numbers.append(number)
        return numbers

    def _show(self, writer: MirrorThread, number: int) -> None:
        run_id = views.run_id_of(number)
        begun = time.perf_counter()
        with self._more:
            self._reports.pop(run_id, None)
            writer.notify(run_id)
            shown = self._more.wait_for(
                lambda: run_id in self._reports and not self._reports[run_id].problems, timeout=60
            )
        assert shown, self._reports
        self.syncs.append(time.perf_counter() - begun)

    def _life(self) -> Iterator[int]:
        """A run, as often as it changed."""
        number = self.seeds.new(goal="write many cards", workspace="/srv/projects/load")
        self.seeds.store.update_run(number, status="running", started_at=self.seeds.clock())
        said = report(StepVerdict.PASS, "Did it.")
        for index, name, evidence in ((1, "executor", []), (2, "verify", [pytest_evidence(15)])):
            self.seeds.store.open_step(number, index, step=name, role=name, iteration=1)
            yield number
            self.seeds.step(number, index, name, 1, report=said, evidence=evidence)
            self.seeds.store.update_step(number, index, attempt=1)
            yield number
        self.seeds.store.end_run(number, RunOutcome.VERIFIED, reason="15/15")
        yield number

    def expected(self, numbers: list[int]) -> dict[str, Card]:
        """Each card as it must read now, by its key."""
        found = [views.view(self.seeds.store, number) for number in numbers]
        cards = [card for run in found for card in (run_card(run), *(step_card(run, s) for s in run.steps))]
        return {card.key: card for card in cards}

    def board(self) -> tuple[dict[str, dict[str, Any]], int]:
        """The cards that the dashboard shows, by key, and the board's last event. No card is there twice."""
        board: dict[str, Any] = {}
        with self.dashboard.client() as client:
            while not board:
                # While its log is folded away, the host takes the file for torn: a person would reload the page.
                answer = client.get(f"{self.dashboard.url}/api/plugins/kanban/board")
                self.failures += answer.status_code == 500
                assert self.failures < 100
                board = answer.json() if answer.status_code == 200 else {}
        cards = [card for column in board["columns"] for card in column["tasks"]]
        keyed = {card["idempotency_key"]: card for card in cards}
        assert len(keyed) == len(cards)
        return keyed, board["latest_event_id"]

    def comments(self) -> Counter[tuple[str, str]]:
        """Every comment with its card, as the board's file has them."""
        with contextlib.closing(sqlite3.connect(self.home.path / "kanban.db")) as db:
            return Counter(db.execute("select task_id, body from task_comments").fetchall())

    def assert_nothing_lost(self, numbers: list[int]) -> int:
        """Each card is there once and complete, and each reader saw it come and end. The number of events."""
        wanted = self.expected(numbers)
        shown, last = self.board()
        assert set(shown) == set(wanted)
        fields = ("title", "body", "status", "result")
        for key, card in wanted.items():
            assert tuple(shown[key][f] for f in fields) == (card.title, card.body, "done", card.line)
        comments = {(shown[key]["id"], text): 1 for key, card in wanted.items() for text in card.comments}
        assert self.comments() == comments
        progress = [shown[key]["progress"] for key in wanted if key.endswith(":0")]
        assert progress == [{"done": 2, "total": 2}] * len(numbers)
        self.streams.wait_for(last)
        for seen in self.streams.seen:
            assert all(seen[card["id"], kind] == 1 for card in shown.values() for kind in ("created", "completed"))
        return last

    def close(self) -> None:
        """End the readers and the dashboard."""
        self._stop.set()
        self._page.join(30)
        self.streams.close()
        self.dashboard.process.kill()
        self.dashboard.close()
