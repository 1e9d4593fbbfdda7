"""The worker: the one process that launches the durable engine on a store and drives its runs.

It holds the store's lock for life, so there is never a second one; whatever it was doing when it died goes on in
the next, from the last step that ended.
"""

from __future__ import annotations

import errno
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer, SetWorkflowID

from ..core.errors import MatrixError, StoreUntrusted
from ..core.models import RunOutcome
from ..core.serde import Json, load_evidence
from ..core.workflow import End, RunStep, advance, begin
from .paths import state_dir
from .procs import end_everything
from .spawn import WorkerLock
from .steps import Run, load_result
from .store import Store

# Names the driver's step protocol, not the release: a run of an earlier release goes on under a later one.
PROTOCOL = "matrix-driver-1"
IDLE_SECONDS = 30.0
_TICK_S = 0.1
_DRAIN_S = 0.4
_STORAGE_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO})

_store: Store | None = None
_draining = threading.Event()


@DBOS.workflow(name="matrix.run", max_recovery_attempts=1_000)
def drive(number: int) -> str:
    """Drive one run to its outcome. Deterministic: all it knows comes from its durable steps."""
    try:
        return _drive(number)
    except Exception as error:  # noqa: BLE001 - whatever is wrong in here must end the run, not leave it live for ever
        reason = str(error) or type(error).__name__
        return str(DBOS.run_step({"name": "fail"}, _patiently, _fail, number, reason))


def _drive(number: int) -> str:
    baseline = load_evidence(DBOS.run_step({"name": "open"}, _patiently, _open, number))
    plan = _run(number).plan
    move: RunStep | End = begin(plan.definition)
    while isinstance(move, RunStep):
        name = f"{move.number} {move.step}"
        data = DBOS.run_step({"name": name}, _patiently, _step, number, move.step, move.number, move.iteration)
        move = advance(plan.definition, move, load_result(data), cap=plan.limits.cap, baseline=baseline)
    return str(
        DBOS.run_step({"name": "close"}, _patiently, _close, number, move.outcome.value, move.reason, move.question)
    )


def _patiently(step: Callable[..., Any], *arguments: Any) -> Any:
    """The step's result, however long its storage is locked, full or gone: that pauses a run and never ends it."""
    pause = 0.5
    while True:
        try:
            return step(*arguments)
        except (sqlite3.OperationalError, OSError) as error:
            if isinstance(error, OSError) and error.errno not in _STORAGE_ERRNOS:
                raise
            print(f"waiting for storage: {error}", flush=True)  # noqa: T201 - the worker's log
            time.sleep(pause)
            pause = min(pause * 2, 30.0)


def _run(number: int) -> Run:
    if _store is None:
        raise RuntimeError("the worker has not opened its store")
    return Run(_store, number, draining=_draining.is_set)


def _open(number: int) -> list[dict[str, Json]]:
    return _run(number).open()


def _step(number: int, step: str, index: int, iteration: int) -> dict[str, Json]:
    return _run(number).step(RunStep(step=step, number=index, iteration=iteration))


def _close(number: int, outcome: str, reason: str, question: str) -> str:
    return _run(number).close(End(outcome=RunOutcome(outcome), reason=reason, question=question))


def _fail(number: int, reason: str) -> str:
    """End the run as failed: with its tree and report where they can be made, without them where not."""
    try:
        return _close(number, RunOutcome.FAILED.value, reason, "")
    except MatrixError as error:
        cast("Store", _store).end_run(
            number, RunOutcome.FAILED, reason=f"{reason}; no report could be written: {error}"
        )
        return RunOutcome.FAILED.value


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
        self._known: set[int] = set()
        self._seen_event = 0

    def serve(self) -> None:
        """Work until idle or told to stop. Returns at once where another worker holds the store."""
        global _store  # noqa: PLW0603 - durable functions are found by name at recovery; they share the worker's store
        while self.lock.acquire():
            _store = Store(self.home)
            self._launch()
            signal.signal(signal.SIGTERM, lambda *_: _draining.set())
            signal.signal(signal.SIGINT, lambda *_: _draining.set())
            self._loop(_store)
            if _draining.is_set():
                self._drain(_store)
                return
            DBOS.destroy()
            self.lock.release()
            # A run that was queued after the last look and before the release would have found the lock taken.
            if not self._live(_store):
                self.on_leave()
                return

    def _launch(self) -> None:
        database = state_dir(self.home) / "dbos.db"
        prepare_database(database)
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
        while not _draining.is_set():
            live = self._live(store)
            for number in live:
                self._start(store, number)
            self._tell(store)
            if live:
                busy = time.monotonic()
            elif time.monotonic() - busy > self.idle_s:
                return
            _draining.wait(_TICK_S)

    @staticmethod
    def _live(store: Store) -> list[int]:
        return [row["id"] for row in store.read("select id from runs where status != 'ended' order by id")]

    def _start(self, store: Store, number: int) -> None:
        """Start a run that the engine does not know yet; one that it knows it recovers by itself."""
        if number in self._known:
            return
        self._known.add(number)
        status = DBOS.get_workflow_status(f"run-{number}")
        if status is None:
            with SetWorkflowID(f"run-{number}"):
                DBOS.start_workflow(drive, number)
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
        rows = store.read(
            "select s.* from steps s join runs r on r.id = s.run_id where s.result is null and r.status != 'ended'"
        )
        for row in rows:
            cookie = f"{state_dir(self.home)}:r{row['run_id']}/{row['number']}"
            end_everything(cookie, pid=row["pid"], started=row["pid_started"])
        for number in self._live(store):
            end_everything(f"{state_dir(self.home)}:r{number}/0")
        self.on_leave()
        os._exit(0)
