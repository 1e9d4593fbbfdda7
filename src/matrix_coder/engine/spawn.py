"""Starting the worker on demand: one for each store, held by a lock that the kernel frees when it dies."""

from __future__ import annotations

import fcntl
import os
import sys
from contextlib import suppress
from pathlib import Path

from .dispatch import LAUNCHER
from .paths import private_dir, state_dir
from .procs import host_environment

# Workers that this process started: reaped at the next start, never waited for.
_started: set[int] = set()


class WorkerLock:
    """The lock of one store's worker. Held for as long as the process lives, or until released."""

    def __init__(self, home: Path) -> None:
        self.path = state_dir(home) / "worker.lock"
        self._fd: int | None = None

    def acquire(self) -> bool:
        """Whether this process holds the lock now, and is named in it."""
        if not self.try_lock():
            return False
        os.ftruncate(self._held(), 0)
        os.pwrite(self._held(), str(os.getpid()).encode(), 0)
        return True

    def _held(self) -> int:
        if self._fd is None:
            raise RuntimeError("the lock is not held")
        return self._fd

    def try_lock(self) -> bool:
        """Whether this process holds the lock now; who did last stays written in it."""
        fd = os.open(private_dir(self.path.parent) / self.path.name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def release(self) -> None:
        """Let another process have it."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None


def worker_is_alive(home: Path) -> bool:
    """Whether a worker holds this store right now."""
    lock = WorkerLock(home)
    if not lock.try_lock():
        return True
    lock.release()
    return False


def worker_pid(home: Path) -> int:
    """The process that holds this store now; 0 when none does."""
    return int(WorkerLock(home).path.read_text() or 0) if worker_is_alive(home) else 0


def trouble_file(home: Path) -> Path:
    """Where a worker that can't work says why, for whoever waits for a run."""
    return state_dir(home) / "worker.trouble"


def worker_trouble(home: Path) -> str:
    """Why no worker can work on this store, in one line; empty while one is at work or nothing is known."""
    file = trouble_file(home)
    if not file.is_file() or worker_is_alive(home):
        return ""
    return file.read_text(encoding="utf-8").strip()


def ensure_worker(home: Path) -> None:
    """Start a worker where none is alive. It outlives this process; a second one gives way to the first."""
    if worker_is_alive(home):
        return
    # What an earlier one could not do, this one may.
    trouble_file(home).unlink(missing_ok=True)
    log = state_dir(home) / "worker.log"
    env = host_environment(os.environ) | {"HERMES_HOME": str(home)}
    for pid in list(_started):
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                continue
        _started.discard(pid)
    words = [sys.executable, str(LAUNCHER), "worker", str(home)]
    _started.add(
        os.posix_spawn(
            sys.executable,
            words,
            env,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
    )
