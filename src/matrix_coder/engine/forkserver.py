"""The fork server: a process that has loaded the host once, and forks the process of each step from itself.

To load the host takes longer than all else that a step's start does. Each fork has a guard of its own above it, with
the same lease as every other command: nothing is less certain to end. The server does nothing else, knows nothing of
runs, and goes when the worker that started it does.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import guard
from .guarded import Running

_MAX_REQUEST = 1 << 20
_LOAD_S = 120.0
_FORK_S = 10.0
# A run that has to stop waits no longer than this for a server that does not answer.
_STOPPED_S = 1.0
_POLL_S = 0.05
_FDS = 5
_PR_SET_PDEATHSIG = 1


def serve(fd: int, preload: Callable[[], None], run: Callable[[str, int], int]) -> int:
    """Load the host, then fork a step's process for each request that comes over the socket `fd`, until that closes.

    `run` is what such a process does with its job file and its channel. A process with threads can't be forked
    safely: a server that finds itself with any says so and goes.
    """
    # Also where it has been stopped and sees nothing of its socket's end.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    connection = socket.socket(fileno=fd)
    preload()
    gc.collect()
    gc.freeze()
    alone = len([*Path("/proc/self/task").iterdir()]) == 1
    connection.send(json.dumps({"ready": alone}).encode())
    # The guards are nobody's to wait for; the engine knows them by their status pipe.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while alone:
        data, fds, _, _ = socket.recv_fds(connection, _MAX_REQUEST, _FDS)
        if not data:
            break
        pid = os.fork()
        if pid == 0:
            connection.close()
            os._exit(_forked(json.loads(data), fds, run))
        for one in fds:
            os.close(one)
        connection.send(json.dumps({"pid": pid}).encode())
    return 0


def _forked(request: dict[str, Any], fds: list[int], run: Callable[[str, int], int]) -> int:
    """The guard's life, in the process that was forked first; its exit code, told over the status pipe, too."""
    lease, status, channel, stdin, log = fds
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    for source, targets in ((stdin, (0,)), (log, (1, 2))):
        for target in targets:
            os.dup2(source, target)
        os.close(source)

    def become() -> int:
        os.environ.clear()
        os.environ.update(request["environment"])
        tempfile.tempdir = None
        os.chdir(request["directory"])
        guard.confine(request["protect"], keep=request["keep"], layer=request["layer"])
        try:
            return run(request["job_file"], channel)
        except Exception:  # noqa: BLE001 - the last frame of a process: what went wrong belongs into its log
            traceback.print_exc()
            return 1
        finally:
            sys.stdout.flush()
            sys.stderr.flush()

    code = guard.hold(become, lease, (status,), (channel,))
    os.write(status, f"{code}".encode())
    return code


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A step's process: what it works on, where, with which environment, and what it can't change (see `Guarded`)."""

    job_file: Path
    directory: Path
    environment: Mapping[str, str]
    cookie: str
    protect: Path | None = None
    keep: Sequence[Path] = ()
    layer: Path | None = None


class Forked(Running):
    """A step's process that the server has forked, seen from the engine."""

    def __init__(self, pid: int, lease: int, status: int, stdin: int, cookie: str) -> None:
        super().__init__(pid, lease, cookie)
        self._status = status
        self._stdin = stdin
        self._code: int | None = None
        # Its own thread waits for it, and the worker's when that has to go.
        self._lock = threading.Lock()
        os.set_blocking(status, False)
        try:
            self._guard = os.pidfd_open(pid)
        except ProcessLookupError:
            self._guard = -1
            self._code = self._told()

    def running(self) -> bool:
        return self._wait(0) is None

    def tell(self, word: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._stdin, word)
        os.close(self._stdin)
        self._stdin = -1

    def _wait(self, seconds: float) -> int | None:
        with self._lock:
            # The end of the guard itself counts: its words might be somebody else's.
            if self._code is None and select.select([self._guard], [], [], seconds)[0]:
                self._code = self._told()
            return self._code

    def _told(self) -> int:
        """The exit code that the guard has left; -9 where there is none: then it was killed."""
        try:
            said = os.read(self._status, 16)
        except BlockingIOError:
            said = b""
        return int(said) if said.isdigit() else -9

    def _wake(self) -> None:
        # Whoever waits for its end has woken it before.
        if self._lock.acquire(blocking=False):
            with contextlib.suppress(ProcessLookupError):
                if self._guard >= 0:
                    signal.pidfd_send_signal(self._guard, signal.SIGCONT)
            self._lock.release()

    def _forget(self) -> None:
        with self._lock:
            for fd in (self._status, self._stdin, self._guard):
                if fd >= 0:
                    os.close(fd)
            self._status = self._stdin = self._guard = -1
            if self._code is None:
                self._code = -9


class ForkServer:
    """The engine's end. One for a worker; each of its threads may ask for a process."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], log: Path, *, load_s: float = _LOAD_S
    ) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with log.open("ab") as sink:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                env=dict(environment),
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
            )
        theirs.close()
        self._ready: bool | None = None
        self._load_until = time.monotonic() + load_s

    def wait(self, stop: Callable[[], Any]) -> bool:
        """Whether it has loaded the host and can fork; waits for that, as long as `stop()` does not say otherwise."""
        while self._ready is None and not stop():
            with self._lock:
                if self._ready is None and select.select([self._socket], [], [], _POLL_S)[0]:
                    self._ready = bool(self._answer().get("ready"))
                elif self._ready is None and time.monotonic() > self._load_until:
                    self._give_up()
        return bool(self._ready)

    def fork(self, wanted: Wanted, *, channel: int, log: int, stop: Callable[[], Any] = lambda: False) -> Forked | None:
        """A step's process; it waits for its word. None where the server could not make one, and then it is over.

        `channel` and `log` are descriptors that it is given. Where `stop()` says so, a server that does not answer is
        not waited for much longer.
        """
        request = {
            "job_file": str(wanted.job_file),
            "directory": str(wanted.directory),
            "environment": dict(wanted.environment),
            "protect": str(wanted.protect or ""),
            "keep": [str(k) for k in wanted.keep],
            "layer": str(wanted.layer or ""),
        }
        lease_read, lease = os.pipe()
        status, status_write = os.pipe()
        stdin_read, stdin = os.pipe()
        theirs = (lease_read, status_write, channel, stdin_read, log)
        with self._lock:
            pid = self._ask(json.dumps(request).encode(), theirs, stop)
        for fd in (lease_read, status_write, stdin_read):
            os.close(fd)
        if pid:
            return Forked(pid, lease, status, stdin, wanted.cookie)
        for fd in (lease, status, stdin):
            os.close(fd)
        return None

    def _ask(self, request: bytes, fds: Sequence[int], stop: Callable[[], Any]) -> int:
        if not self._ready:
            return 0
        try:
            socket.send_fds(self._socket, [request], fds)
        except OSError:
            self._ready = False
            return 0
        begun = time.monotonic()
        while (waited := time.monotonic() - begun) < _FORK_S and not (waited > _STOPPED_S and stop()):
            if select.select([self._socket], [], [], _POLL_S)[0]:
                pid = int(self._answer().get("pid") or 0)
                if pid:
                    return pid
                break
        # Whatever it may still fork finds its lease let go.
        self._give_up()
        return 0

    def _give_up(self) -> None:
        """A server that does not answer is of no use to anybody: the steps' processes are started anew from now on."""
        self._ready = False
        self._process.kill()

    def _answer(self) -> dict[str, Any]:
        try:
            data = self._socket.recv(_MAX_REQUEST)
        except OSError:
            data = b""
        return json.loads(data) if data else {}

    def retire(self) -> None:
        """Let the server go once nobody waits for it."""
        with self._lock:
            self.stop()

    def stop(self) -> None:
        """Let the server go. What it forked lives on until its own lease is let go."""
        self._ready = False
        self._socket.close()
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()


@dataclass(frozen=True, slots=True)
class _Made:
    """How this process's server was made, and what it has loaded: each watched file's time, size and number."""

    make: Callable[[], ForkServer]
    watched: tuple[Path, ...]
    loaded: tuple[object, ...]


_current: list[ForkServer] = []
_made: list[_Made] = []


def current() -> ForkServer | None:
    """This process's fork server, where it has started one."""
    return _current[0] if _current else None


def start(command: Sequence[str], environment: Mapping[str, str], log: Path, watched: Sequence[Path] = ()) -> None:
    """Start this process's fork server; only Linux has what it takes. `watched` is what it loads and may change."""
    if sys.platform == "linux" and not _current:
        _begin(lambda: ForkServer(command, environment, log), tuple(watched))


def refresh() -> None:
    """Start another server where what the host loads is no longer what it was.

    For the thread that started the first one: a server ends with the thread that made it.
    """
    if _made and _made[0].loaded != _look(_made[0].watched):
        old = _current.pop()
        _begin(_made[0].make, _made[0].watched)
        # A thread may be waiting for its answer.
        threading.Thread(target=old.retire, daemon=True).start()


def _begin(make: Callable[[], ForkServer], watched: tuple[Path, ...]) -> None:
    _made[:] = [_Made(make, watched, _look(watched))]
    _current[:] = [make()]


def _look(watched: Sequence[Path]) -> tuple[object, ...]:
    found: list[object] = []
    for path in watched:
        try:
            stat = path.stat()
            found.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
        except OSError:
            found.append(None)
    return tuple(found)


def stop() -> None:
    """End this process's fork server."""
    _made.clear()
    while _current:
        _current.pop().stop()
