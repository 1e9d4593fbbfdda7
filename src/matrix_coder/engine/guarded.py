"""A command under the guard: when it is over, for whatever reason, nothing that it started is left."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from .procs import end_everything, started_at

_GUARD = Path(__file__).with_name("guard.py")
_PATIENCE_S = 10.0
_PAUSE_S = 0.002
_PR_SET_CHILD_SUBREAPER = 36
_live: weakref.WeakSet[Running] = weakref.WeakSet()
# Held while a command is started, so that nobody takes it for an orphan.
_starting = threading.RLock()
_adopting = threading.Event()


class Running(ABC):
    """A running command. `pid` and `started` are its guard's, and what a later worker knows the attempt by."""

    def __init__(self, pid: int, lease: int, cookie: str) -> None:
        self.pid = pid
        self.started = started_at(pid)
        self._lease = lease
        self._cookie = cookie
        with _starting:
            _live.add(self)

    @abstractmethod
    def running(self) -> bool:
        """Whether the command is still at work."""

    @abstractmethod
    def tell(self, word: bytes) -> None:
        """Write to the command's standard input, and close it."""

    @abstractmethod
    def _wait(self, seconds: float) -> int | None:
        """The guard's exit code, in so many seconds; None where it has not ended."""

    @abstractmethod
    def _forget(self) -> None:
        """Close what was open for it."""

    @abstractmethod
    def _wake(self) -> None:
        """Let a guard that was stopped go on."""

    def end(self) -> int:
        """End the command and all it started; its exit code, or how it was ended."""
        self.let_go()
        code = self._wait(_PATIENCE_S)
        if code is None or code < 0 or sys.platform != "linux":
            # A guard that ended by itself has left nothing; one that was killed may have.
            end_everything(self._cookie, pid=self.pid, started=self.started)
        self._forget()
        with _starting:
            _live.discard(self)
        end_orphans()
        return -9 if code is None else code

    def let_go(self) -> None:
        """Let go of the lease: the guard ends everything, whether or not this process lives to see it."""
        lease, self._lease = self._lease, -1
        if lease >= 0:
            os.close(lease)
            self._wake()

    def await_end(self, seconds: float) -> None:
        """Wait until it has ended by itself, at most so long."""
        self._wait(max(0.0, seconds))


class Guarded(Running):
    """A command that is started anew.

    `protect` names a directory that the command may not write below, `keep` what stays writable for it all the
    same; with `layer`, it may write in `protect` through a layer of its own, kept in that folder. `cookie` marks its
    processes where there is no guard (on systems other than Linux).
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cookie: str,
        protect: Path | None = None,
        keep: Sequence[Path] = (),
        layer: Path | None = None,
        pass_fds: Sequence[int] = (),
        **options: Any,
    ) -> None:
        read, lease = os.pipe()
        words = [*_guard(read, protect, keep, layer), *command]
        fds = (read, *pass_fds)
        try:
            with _starting:
                self.process: subprocess.Popen[bytes] = subprocess.Popen(
                    words, pass_fds=fds, start_new_session=True, stderr=subprocess.STDOUT, **options
                )
                super().__init__(self.process.pid, lease, cookie)
        except OSError:
            os.close(lease)
            raise
        finally:
            os.close(read)

    def running(self) -> bool:
        return self.process.poll() is None

    def tell(self, word: bytes) -> None:
        stdin = self.process.stdin
        if stdin is not None:
            with suppress(BrokenPipeError), stdin:
                stdin.write(word)

    def _wait(self, seconds: float) -> int | None:
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None

    def _wake(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def _forget(self) -> None:
        self.process.wait()
        if self.process.stdin is not None:
            with suppress(BrokenPipeError):
                self.process.stdin.close()


def end_all() -> None:
    """End every command of this process that is still at work."""
    with _starting:
        running = list(_live)
    for one in running:
        one.let_go()
    deadline = time.monotonic() + _PATIENCE_S
    for one in running:
        one.await_end(deadline - time.monotonic())
    end_orphans()


def adopt_orphans() -> None:
    """Make this process the parent of what a killed guard leaves behind: a command's end then reaches that, too.

    For a process whose own other children stay in its session.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        _adopting.set()


def end_orphans() -> None:
    """End what has become a child of this process without being started by it, until nothing of that is left."""
    deadline = time.monotonic() + _PATIENCE_S
    while _adopting.is_set() and time.monotonic() < deadline:
        with _starting:
            known = {one.pid for one in _live}
            orphans = [pid for pid in _children() if pid not in known and _left_session(pid)]
            for pid in orphans:
                with suppress(ProcessLookupError, ChildProcessError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, os.WNOHANG)
        if not orphans:
            return
        time.sleep(_PAUSE_S)


def _left_session(pid: int) -> bool:
    # A command's processes are in sessions of their own from the beginning, and nobody ever gets into another's.
    try:
        return os.getsid(pid) != os.getsid(0)
    except ProcessLookupError:
        return False


def _children() -> list[int]:
    try:
        lists = [task.joinpath("children").read_text() for task in Path("/proc/self/task").iterdir()]
    except FileNotFoundError:
        return [child.pid for child in psutil.Process().children()]
    return [int(pid) for line in lists for pid in line.split()]


def _guard(lease: int, protect: Path | None, keep: Sequence[Path], layer: Path | None) -> list[str]:
    if sys.platform != "linux":
        return []
    words = [sys.executable, "-I", "-S", str(_GUARD), str(lease)]
    if protect is not None:
        words += ["--protect", str(protect), *(w for k in keep for w in ("--keep", str(k)))]
    if layer is not None:
        words += ["--layer", str(layer)]
    return [*words, "--"]
