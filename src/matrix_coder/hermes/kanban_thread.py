"""The threads that write cards, so that no step, hook or event loop ever waits for a board."""

from __future__ import annotations

import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable

from ..core.errors import MatrixError, RunUnknown
from ..core.models import RunStatus, RunView
from .kanban import KanbanMirror, SyncReport
from .kanban_text import CardEnd

_log = logging.getLogger(__name__)


class MirrorThread:
    """Shows runs on the board some time soon after each `notify`.

    The first notice of a run is followed at once, so that a step's card is there before its child is at work; further
    ones become one sync, `settle_s` after the sync before. A sync with problems is tried
    again, at first after `first_wait_s`, then after twice as long each time, up to `longest_wait_s`. A run that
    goes on is looked at whole every `refresh_s`, so that cards which a person moved come back, and once more at
    its end.

    Nothing is owed across a process's death: tell the next one of all runs, and what the board does not show
    yet is written; a run that ended and is shown costs two reads of the store.
    """

    def __init__(
        self,
        mirror: KanbanMirror,
        read_run: Callable[[str], RunView],
        *,
        settle_s: float = 0.25,
        first_wait_s: float = 0.5,
        longest_wait_s: float = 60.0,
        refresh_s: float = 60.0,
        on_report: Callable[[str, SyncReport], None] | None = None,
    ) -> None:
        self._mirror = mirror
        self._read_run = read_run
        self._settle = settle_s
        self._first_wait, self._longest_wait, self._refresh = first_wait_s, longest_wait_s, refresh_s
        self._on_report = on_report
        self._due: dict[str, float] = {}
        self._waits: dict[str, float] = {}
        self._synced: dict[str, float] = {}
        self._told: dict[str, tuple[str, ...]] = {}
        self._looked: dict[str, float] = {}
        self._stopping = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="matrix-kanban", daemon=True)
        self._thread.start()

    def notify(self, run_id: str) -> None:
        """Say that something about a run changed. Returns at once."""
        with self._changed:
            soon = max(time.monotonic(), self._synced.get(run_id, -self._settle) + self._settle)
            known = self._due.setdefault(run_id, soon)
            if run_id not in self._waits:
                self._due[run_id] = min(known, soon)
            self._changed.notify()

    def stop(self, timeout: float = 5.0) -> bool:
        """Write what is waiting, once more, and end; whether that was done within `timeout` seconds."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join(timeout)
        return not self._thread.is_alive() and not self._waits

    def _work(self) -> None:
        while (run_id := self._next()) is not None:
            self._show(run_id)

    def _next(self) -> str | None:
        """The run that is due first, when it is; when stopping, each one once; None at the end."""
        with self._changed:
            while True:
                run_id = min(self._due, key=self._due.__getitem__, default=None)
                if self._stopping:
                    if run_id is not None:
                        del self._due[run_id]
                    return run_id
                wait = None if run_id is None else self._due[run_id] - time.monotonic()
                if run_id is not None and wait is not None and wait <= 0:
                    del self._due[run_id]
                    return run_id
                self._changed.wait(wait)

    def _show(self, run_id: str) -> None:
        live = True
        try:
            run = self._read_run(run_id)
            live = run.status is not RunStatus.ENDED
            report = self._sync(run)
        except RunUnknown:
            report, live = SyncReport(), False
        except (MatrixError, sqlite3.Error, OSError) as error:
            report = SyncReport(problems=(f"the run can't be read now: {error}",))
        self._tell(run_id, report)
        self._plan_next(run_id, report, live=live)
        if live:
            self._synced[run_id] = time.monotonic()
        else:
            self._synced.pop(run_id, None)

    def _sync(self, run: RunView) -> SyncReport:
        """Whole after trouble, at the end and every `refresh_s` while the run goes on; else what has changed."""
        now = time.monotonic()
        looked = self._looked.get(run.run_id)
        live = run.status is not RunStatus.ENDED
        due = looked is None or now - looked >= self._refresh if live else looked is not None
        whole = due or run.run_id in self._waits
        report = self._mirror.sync(run, whole=whole)
        if not live:
            self._looked.pop(run.run_id, None)
        elif whole:
            self._looked[run.run_id] = now
        return report

    def _plan_next(self, run_id: str, report: SyncReport, *, live: bool) -> None:
        with self._changed:
            if report.problems:
                wait = self._waits[run_id] = min(self._waits.get(run_id, self._first_wait / 2) * 2, self._longest_wait)
            else:
                self._waits.pop(run_id, None)
                wait = self._refresh
            if (report.problems or live) and not self._stopping:
                self._due.setdefault(run_id, time.monotonic() + wait)

    def _tell(self, run_id: str, report: SyncReport) -> None:
        """One line in the log for each new problem, however many tries and runs meet it."""
        known = {problem for told in self._told.values() for problem in told}
        self._told[run_id] = report.problems
        for problem in report.problems:
            if problem not in known:
                _log.warning("kanban: run %s: %s", run_id, problem)
        if not report.problems:
            del self._told[run_id]
        if self._on_report:
            self._on_report(run_id, report)


class SpecialistThread:
    """Opens and closes the cards of single specialists, in order, some time soon. Nothing here blocks.

    A board that can't be written costs the card of that turn, and nothing else: a card that was opened
    but not closed is closed as interrupted when the next one opens.
    """

    def __init__(self, mirror: KanbanMirror) -> None:
        self._mirror = mirror
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._open: dict[str, str] = {}
        self._thread = threading.Thread(target=self._work, name="matrix-kanban-single", daemon=True)
        self._thread.start()

    def open(self, turn: str, route: str, goal: str, session_id: str) -> None:
        """A specialist begins. `turn` names its turn, and is what `close` is called with."""
        self._jobs.put(lambda: self._do_open(turn, route, goal, session_id))

    def close(self, turn: str, how: CardEnd | str, *, route: str = "", goal: str = "", line: str = "") -> None:
        """A specialist's turn ended, with one line about how. Without a card for that turn, nothing happens."""
        end = CardEnd(how)
        self._jobs.put(lambda: self._do_close(turn, end, route, goal, line))

    def stop(self, timeout: float = 2.0) -> bool:
        """Write what is waiting and end; whether that was done within `timeout` seconds."""
        self._jobs.put(None)
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _do_open(self, turn: str, route: str, goal: str, session_id: str) -> None:
        card_id = self._mirror.open_specialist_card(route, goal, session_id, turn)
        if card_id:
            self._open[turn] = card_id

    def _do_close(self, turn: str, end: CardEnd, route: str, goal: str, line: str) -> None:
        card_id = self._open.pop(turn, None)
        if card_id:
            self._mirror.close_specialist_card(card_id, end, route=route, goal=goal, line=line)
