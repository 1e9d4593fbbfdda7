"""The worker: the one process that launches the durable engine on a store and drives its runs.

It holds the store's lock for life, so there is never a second one; whatever it was doing when it died goes on in
the next, from the last step that ended.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer, SetWorkflowID

from ..core.errors import StoreUntrusted
from ..core.models import RunOutcome
from . import driver, forkserver, guarded
from .dispatch import LAUNCHER, step_environment
from .paths import state_dir
from .procs import end_everything
from .spawn import WorkerLock
from .store import Store

# Names the driver's step protocol, not the release: a run of an earlier release goes on under a later one.
PROTOCOL = "matrix-driver-1"
IDLE_SECONDS = 30.0
_TICK_S = 0.1
_DRAIN_S = 0.4
_LOCK_TRIES = 5


def prepare_database(path: Path) -> None:
    """The engine's own database, owner-only, in WAL mode.

    Raises StoreUntrusted when it is no database, or holds what could run code: rows of another form than JSON in
    whatever table, triggers, views.
    """
    path.touch(mode=0o600)
    path.chmod(0o600)
    db = sqlite3.connect(path, timeout=30)
    try:
        db.execute("pragma journal_mode = wal")
        _refuse_foreign(db, path)
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        raise _untrusted(path, str(error)) from error
    finally:
        db.close()


def _refuse_foreign(db: sqlite3.Connection, path: Path) -> None:
    for kind, name in db.execute("select type, name from sqlite_master").fetchall():
        if kind in ("trigger", "view"):
            raise _untrusted(path, f"a {kind} named {name}")
        quoted = '"' + name.replace('"', '""') + '"'
        if kind != "table" or "serialization" not in {row[1] for row in db.execute(f"pragma table_info({quoted})")}:
            continue
        # A row without a form of its own is read as JSON.
        where = "serialization is not null and serialization != 'portable_json'"
        (foreign,) = db.execute(f"select count(*) from {quoted} where {where}").fetchone()
        if foreign:
            raise _untrusted(path, f"{foreign} row(s) of another form in {name}")


def _untrusted(path: Path, found: str) -> StoreUntrusted:
    return StoreUntrusted(f"JSON rows only in {path}", found, "move the file away and start again")


def teach_old_sqlite() -> None:
    """Give SQLite before 3.42 the clock that the engine's schema asks it for.

    On Python 3.12 and later the library writes `unixepoch('subsec')` into its tables' defaults; an older SQLite answers
    NULL to that, and every insert fails.
    """
    if sqlite3.sqlite_version_info < (3, 42):
        sa.event.listen(sa.Engine, "connect", _add_clock)


def _add_clock(connection: Any, _: object) -> None:
    connection.create_function("unixepoch", -1, _unixepoch)


def _unixepoch(*modifiers: object) -> float | int:
    now = time.time()
    return now if "subsec" in modifiers else int(now)


class Worker:
    """Finds queued runs, starts them, and goes when there has been nothing to do for a while."""

    def __init__(
        self,
        home: Path,
        *,
        on_change: Callable[[int], None] = lambda _: None,
        on_leave: Callable[[], None] = lambda: None,
        idle_s: float = IDLE_SECONDS,
    ) -> None:
        self.home = home
        self.lock = WorkerLock(home)
        self.on_change = on_change
        self.on_leave = on_leave
        self.idle_s = idle_s
        self._known: set[tuple[int, int]] = set()
        self._seen_event = 0
        self._leaving = False

    def serve(self) -> None:
        """Work until idle or told to stop. Returns at once where another worker holds the store."""
        os.chdir(state_dir(self.home))
        guarded.adopt_orphans()
        while self._acquire():
            store = Store(self.home)
            driver.connect(store)
            # It loads the host while the engine starts and the first run opens.
            command = [sys.executable, str(LAUNCHER), "forkserver"]
            log, loaded = state_dir(self.home) / "worker.log", (self.home / "config.yaml", self.home / "plugins")
            forkserver.start(command, step_environment(os.environ), log, loaded)
            self._launch()
            signal.signal(signal.SIGTERM, self._told_to_leave)
            signal.signal(signal.SIGINT, self._told_to_leave)
            with store.kept_open():
                self._loop(store)
            if self._leaving:
                driver.draining.set()
                try:
                    self._drain(store)
                finally:
                    # The threads of live steps have parked; nothing else would end this process.
                    os._exit(0)
            DBOS.destroy()
            forkserver.stop()
            self.lock.release()
            # A run that was queued after the last look and before the release would have found the lock taken.
            if not self._live(store):
                self.on_leave()
                return

    def _told_to_leave(self, *_: object) -> None:
        # Only a mark: a handler interrupts whatever is at work, and what waits on a lock in there would wait for ever.
        self._leaving = True

    def _acquire(self) -> bool:
        """Whether this is the store's worker now. Somebody who only looks holds the lock for a moment, too."""
        for _ in range(_LOCK_TRIES):
            if self.lock.acquire():
                return True
            time.sleep(_TICK_S)
        return False

    def _launch(self) -> None:
        database = state_dir(self.home) / "dbos.db"
        prepare_database(database)
        teach_old_sqlite()
        config: DBOSConfig = {
            "name": "matrix-coder",
            "system_database_url": f"sqlite:///{database}",
            "application_version": PROTOCOL,
            "executor_id": "matrix-worker",
            "serializer": DBOSPortableJSONSerializer(),
            "enable_otlp": False,
            "log_level": "WARNING",
        }
        DBOS(config=config)
        DBOS.launch()

    def _loop(self, store: Store) -> None:
        busy = time.monotonic()
        while not self._leaving:
            forkserver.refresh()
            live = self._live(store)
            for number in live:
                self._start(store, number)
            self._tell(store)
            if live:
                busy = time.monotonic()
            elif time.monotonic() - busy > self.idle_s:
                return
            time.sleep(_TICK_S)

    @staticmethod
    def _live(store: Store) -> list[int]:
        return [
            row["id"] for row in store.read("select id from runs where status in ('queued', 'running') order by id")
        ]

    def _start(self, store: Store, number: int) -> None:
        """Start a run that the engine does not know yet; one that it knows it recovers by itself."""
        generation = int(store.run_row(number)["generation"])
        if (number, generation) in self._known:
            return
        self._known.add((number, generation))
        workflow = f"run-{number}-{generation}"
        status = DBOS.get_workflow_status(workflow)
        if status is None:
            with SetWorkflowID(workflow):
                DBOS.start_workflow(driver.drive, number)
        elif status.status not in ("PENDING", "ENQUEUED"):
            store.end_run(number, RunOutcome.FAILED, reason=f"the engine gave the run up ({status.status})")

    def _tell(self, store: Store) -> None:
        rows = store.read("select max(id) as id, run_id from events where id > ? group by run_id", self._seen_event)
        for row in rows:
            self._seen_event = max(self._seen_event, row["id"])
            self.on_change(row["run_id"])

    def _drain(self, store: Store) -> None:
        """Leave at once: the threads of live steps have parked, their processes are ended, their runs stay pending."""
        time.sleep(_DRAIN_S)
        guarded.end_all()
        forkserver.stop()
        rows = store.read(
            "select s.* from steps s join runs r on r.id = s.run_id where s.result is null and r.status != 'ended'"
        )
        for row in rows:
            cookie = f"{state_dir(self.home)}:r{row['run_id']}/{row['number']}"
            end_everything(cookie, pid=row["pid"], started=row["pid_started"])
        for number in self._live(store):
            end_everything(f"{state_dir(self.home)}:r{number}/0")
        self.on_leave()
