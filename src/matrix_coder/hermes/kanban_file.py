"""How the file of one Kanban board is opened: short waits for locks, and no connection that outlives a look.

Two habits of the host make this more than `connect`. A call waits up to 12 minutes for a locked database;
here it waits two seconds. And each write drops the locks that SQLite holds for the whole process, so that
another process, closing its own connection, may delete a write-ahead log that is still in use, with what
was just written. A lock that only its own descriptor can drop (`F_OFD_SETLK`) tells others that the file
is in use (`keep_in_use`); where there is none, each call has a connection of its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BUSY_MS = 250
"""For each of the host's six tries: about two seconds before a locked board is given up for now."""

LOG_PAGES = 400
"""After so many the log is folded away, 1.6 MB: while that goes on, the host takes the file for torn in other programs.

The host does so after every 100."""

_BUSY_VARIABLE = "HERMES_KANBAN_BUSY_TIMEOUT_MS"
_environment = threading.Lock()
_files = threading.Lock()
_in_use: dict[Path, int] = {}


class BoardError(Exception):
    """The board could not take a call. `lasting` when the next call would fare no better just now."""

    def __init__(self, what: str, *, lasting: bool) -> None:
        super().__init__(what)
        self.lasting = lasting


class BoardFile:
    """The connections to one board's file."""

    def __init__(self, kb: Any, slug: str) -> None:
        self._kb = kb
        self._slug = slug
        self._shared: Any = None

    @contextlib.contextmanager
    def call(self) -> Iterator[Any]:
        """A connection for one call: the block's, inside `shared`, else one of its own."""
        if self._shared is not None:
            with troubles():
                yield self._shared
            return
        with troubles(), self._opened() as conn:
            yield conn

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """One connection for all calls of the block, on a file that is kept in use. It is a fresh one each time."""
        with troubles(), self._opened() as conn:
            self._shared = conn if self._keep(conn) else None
            conn.execute(f"pragma wal_autocheckpoint={LOG_PAGES}")
            try:
                yield
            finally:
                self._shared = None

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """One transaction for all calls of the block, where they share a connection.

        Others see all of it or nothing, and so never a card between two moves. A refused call undoes itself alone.
        """
        plain = self._shared
        if plain is None:
            yield
            return
        with troubles(), self._kb.write_txn(plain):
            self._shared = _Joined(plain)
            try:
                yield
            finally:
                self._shared = plain

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        with contextlib.ExitStack() as stack:
            with _short_waits():
                conn = stack.enter_context(self._kb.connect_closing(board=self._slug))
            yield conn

    def _keep(self, conn: Any) -> bool:
        """Whether other processes take the board's file for one in use from now on, whatever the host drops."""
        conn.execute("select 1 from tasks limit 1").fetchall()
        if conn.execute("pragma journal_mode").fetchone()[0] != "wal":
            return False
        return keep_in_use(Path(self._kb.kanban_db_path(board=self._slug)))


_INSTEAD = {
    "BEGIN IMMEDIATE": ("savepoint matrix_coder",),
    "COMMIT": ("release matrix_coder",),
    "ROLLBACK": ("rollback to matrix_coder", "release matrix_coder"),
    # With this the host begins to compare the file's size with its header, which nothing has changed yet.
    "PRAGMA database_list": ("select null where false",),
}


class _Joined:
    """A connection for the host's calls inside one transaction of ours: what each begins and ends is a savepoint."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn

    def execute(self, sql: str, values: Any = ()) -> sqlite3.Cursor:
        *before, last = _INSTEAD.get(sql, (sql,))
        for word in before:
            self._conn.execute(word)
        return self._conn.execute(last, values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._conn, name)


@contextlib.contextmanager
def troubles() -> Iterator[None]:
    """Every way in which the host's board fails, as one error that says whether to go on."""
    try:
        yield
    except ImportError as error:
        raise BoardError(f"the host has no Kanban board: {error}", lasting=True) from error
    except (sqlite3.OperationalError, OSError) as error:
        raise BoardError(f"the Kanban board can't be written now: {error}", lasting=True) from error
    except (sqlite3.Error, ValueError, RuntimeError) as error:
        lasting = type(error).__name__ == "KanbanDbCorruptError"
        raise BoardError(f"the Kanban board refused a call: {error}", lasting=lasting) from error


@contextlib.contextmanager
def _short_waits() -> Iterator[None]:
    """The host reads its lock time-out from the environment, once for each connection."""
    with _environment:
        before = os.environ.get(_BUSY_VARIABLE)
        os.environ[_BUSY_VARIABLE] = str(BUSY_MS)
        try:
            yield
        finally:
            if before is None:
                del os.environ[_BUSY_VARIABLE]
            else:
                os.environ[_BUSY_VARIABLE] = before


def keep_in_use(database: Path) -> bool:
    """Let other programs see one more idle connection on this file, until this process ends; whether they do.

    That is SQLite's shared lock on the file and the one on the index of its log. They stop nobody from
    reading, writing or checkpointing. Without the second, each new connection would rebuild the index,
    and the log would grow for ever. A connection must be open meanwhile that has read from the file, in
    write-ahead mode: it vouches for the index. The descriptors are never closed: that would drop the
    locks of every connection that this process has on the file.
    """
    if sys.platform != "linux":
        return False
    with _files:
        held = _in_use.get(database)
        # Where it failed once, each new try would cost descriptors that may never be closed.
        if held is None or (held >= 0 and not _same_file(held, database)):
            first = _lock_shared(database, 0x40000002, 510)  # SHARED_FIRST, SHARED_SIZE
            second = _lock_shared(database.with_name(database.name + "-shm"), 128, 1)  # UNIX_SHM_DMS
            held = _in_use[database] = first if second >= 0 else -1
        return held >= 0


def _same_file(descriptor: int, path: Path) -> bool:
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(descriptor), path.stat())
    return False


def _lock_shared(path: Path, first: int, length: int) -> int:
    """A descriptor with that lock; -1 where the file system has none, and then nothing but safety is lost."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        lock = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, first, length, 0)
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, lock)
        return descriptor
    return -1
