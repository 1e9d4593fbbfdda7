"""The file that the run store is: made, looked at before it is trusted, opened and written to in transactions."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

from ..core.errors import StoreError, StoreTooNew, StoreUntrusted, StoreUnwritable
from .paths import hermes_home, private_dir, state_dir

SCHEMA_VERSION = 1
_BUSY_SECONDS = 5.0


class StoreFile:
    """The store's file under one HERMES_HOME, made where it is missing. Raises StoreError when it can't be used."""

    def __init__(self, home: Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self.home = home or hermes_home()
        self.clock = clock
        directory = private_dir(state_dir(self.home))
        self.path = directory / "runs.db"
        self._keeps = False
        self._kept = threading.local()
        self._prepare()

    def _prepare(self) -> None:
        try:
            self.path.touch(mode=0o600)
            self.path.chmod(0o600)
        except OSError as error:
            raise StoreUnwritable(
                f"a writable run store at {self.path}",
                error.strerror or str(error),
                "make its directory writable",
            ) from error
        try:
            with self._connect() as db:
                if not self._has_table(db, "meta"):
                    self._create(db)
                found = db.execute("select value from meta where key = 'schema_version'").fetchone()
                if self._version(found) == SCHEMA_VERSION and not self._has_table(db, "milestones"):
                    # A store of before this table; what knows nothing of it still opens it: it only has more.
                    self._run_schema(db)
        except sqlite3.DatabaseError as error:
            raise self._broken(error) from error
        version = self._version(found)
        if version > SCHEMA_VERSION:
            raise StoreTooNew(
                f"a run store of version {SCHEMA_VERSION} or older at {self.path}",
                f"version {version}, written by a newer matrix-coder",
                "upgrade matrix-coder or point HERMES_HOME elsewhere",
            )

    def _version(self, found: sqlite3.Row | None) -> int:
        text = str(found["value"]) if found else "0"
        if not (text.isascii() and text.isdigit()):
            raise StoreUntrusted(
                f"a run store at {self.path}", f"version {text[:40]!r}", "move the file away and start again"
            )
        return int(text)

    @staticmethod
    def _has_table(db: sqlite3.Connection, name: str) -> bool:
        return db.execute("select 1 from sqlite_master where name = ?", (name,)).fetchone() is not None

    def _create(self, db: sqlite3.Connection) -> None:
        with _alone(self.path.parent):
            if self._has_table(db, "meta"):
                return
            _switch_to_wal(db)
            self._run_schema(db, f"insert into meta values ('schema_version', '{SCHEMA_VERSION}');")

    @staticmethod
    def _run_schema(db: sqlite3.Connection, then: str = "") -> None:
        script = files(__package__).joinpath("schema.sql").read_text(encoding="utf-8")
        db.executescript(f"begin immediate;\n{script}\n{then}\ncommit;")

    def _broken(self, error: sqlite3.Error) -> StoreError:
        text = str(error)
        if "readonly" in text or "unable to open" in text:
            return StoreUnwritable(
                f"a writable run store at {self.path}", text, "make the file and its directory writable"
            )
        if "not a database" in text or "malformed" in text:
            return StoreUntrusted(f"a run store at {self.path}", text, "move the file away and start again")
        return StoreError(f"a usable run store at {self.path}", text, "try again in a moment")

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        """A connection: this thread's own while they are kept and it is free, else one for this use alone."""
        # What is kept may be over while this one is in use.
        kept = self._kept
        if not self._keeps or getattr(kept, "busy", False):
            db = self._open()
            try:
                yield db
            finally:
                db.close()
            return
        db = self._own(kept)
        kept.busy = True
        try:
            yield db
        except BaseException:  # an interrupt, too: a connection in an unknown state is not used again
            kept.connection = None
            db.close()
            raise
        finally:
            kept.busy = False

    def _open(self) -> sqlite3.Connection:
        # The connection of a thread that has ended is closed by another.
        db = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        db.row_factory = sqlite3.Row
        db.execute("pragma foreign_keys = on")
        return db

    def _own(self, kept: threading.local) -> sqlite3.Connection:
        """This thread's connection; a new one where another file is there now, which the old would never write to."""
        place = self._place()
        known: sqlite3.Connection | None = getattr(kept, "connection", None)
        if known is not None and kept.place == place:
            return known
        if known is not None:
            known.close()
        fresh = self._open()
        kept.connection, kept.place = fresh, place or self._place()
        return fresh

    def _place(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """While this lasts, each thread keeps its connection: to open one for each call costs more than most calls."""
        self._keeps = True
        try:
            with self._connect() as db:
                db.execute("select 1 from meta").fetchone()
            yield
        finally:
            self._keeps = False
            kept, self._kept = self._kept, threading.local()
            if getattr(kept, "connection", None) is not None:
                kept.connection.close()

    @contextmanager
    def transaction(self, *, synced: bool = True) -> Iterator[sqlite3.Connection]:
        """A connection inside one write transaction; committed at the end, rolled back on an error.

        What is not `synced` outlives every process, but the machine's sudden end only once a later transaction is.
        """
        with self._connect() as db:
            db.execute(f"pragma synchronous = {'full' if synced else 'normal'}")
            db.execute("begin immediate")
            try:
                yield db
            except BaseException:  # whatever ends the block, an interrupt too: nothing half-done is kept; it goes on up
                db.execute("rollback")
                raise
            db.execute("commit")

    def read(self, sql: str, *values: object) -> list[sqlite3.Row]:
        """The rows of one query."""
        with self._connect() as db:
            return db.execute(sql, values).fetchall()


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """While this lasts, no other process is in here; a process that dies in here lets the next one in."""
    fd = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _switch_to_wal(db: sqlite3.Connection) -> None:
    """SQLite does not wait by itself for readers to let it switch, so this does."""
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            db.execute("pragma journal_mode = wal")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.02)
