"""What works on runs: the store, the worker, and what confines a step."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..core.errors import StoreError, WorkspaceRefused
from ..core.render import counted
from ..engine import layer
from ..engine.dispatch import LAUNCHER, step_environment
from ..engine.forkserver import ForkServer
from ..engine.guarded import Guarded
from ..engine.paths import private_dir, state_dir
from ..engine.spawn import WorkerLock, trouble_file
from ..engine.store_file import SCHEMA_VERSION
from ..engine.workspace import find_workspace
from .diagnosis import Diagnosis, Place, note, ok, problem, read_only, unseen

_FORK_SERVER_S = 60.0
_PROBE_S = 10.0
# A run that was just started has its worker on its way.
_LOOKS, _BETWEEN_LOOKS_S = 4, 0.5
_LIVE = "select id, status from runs where status != 'ended' order by id"
_LINUX = "linux"


def store(place: Place) -> Diagnosis:
    """The run store can be opened, and is of a version that we can read."""
    file = state_dir(place.home) / "runs.db"
    if not file.exists():
        return ok("none yet: the first run makes it")
    try:
        with read_only(file) as db:
            known = db.execute("select 1 from sqlite_master where name = 'meta'").fetchone()
            row = db.execute("select value from meta where key = 'schema_version'").fetchone() if known else None
            (runs,) = db.execute("select count(*) from runs").fetchone() if known else (0,)
    except (sqlite3.Error, OSError) as error:
        return problem(f"a run store at {file}", str(error), "make it readable, or move it away and start again")
    version = str(row["value"]) if row else ""
    if known and not (version.isascii() and version.isdigit()):
        return problem(f"a run store at {file}", f"version {version!r}", "move the file away and start again")
    if known and int(version) > SCHEMA_VERSION:
        expected = f"a run store of version {SCHEMA_VERSION} or older at {file}"
        remedy = "upgrade matrix-coder, or point HERMES_HOME elsewhere"
        return problem(expected, f"version {version}, written by a newer matrix-coder", remedy)
    if not os.access(file, os.W_OK):
        return problem(f"a writable run store at {file}", "it is read-only", "make it writable")
    return ok(f"version {version or SCHEMA_VERSION}, {counted(runs, 'run')}, {file}")


def live_runs(place: Place) -> Diagnosis:
    """Which runs have not ended."""
    try:
        live = _live(place.home)
    except (sqlite3.Error, OSError):
        return unseen("see run store")
    return ok(", ".join(f"r{number} {status}" for number, status in live) or "none")


def worker(place: Place) -> Diagnosis:
    """A worker is at work, or nothing speaks against one."""
    try:
        pid = _worker_pid(place.home)
        file = trouble_file(place.home)
        trouble = file.read_text(encoding="utf-8", errors="replace") if not pid and file.is_file() else ""
    except (OSError, ValueError) as error:
        return problem("a worker's lock that can be read", str(error), "make it readable")
    if pid:
        return ok(f"at work, pid {pid}")
    if trouble.strip():
        remedy = f"mend that and remove {file}; the next run starts a worker"
        return problem("a worker that could work when it last tried", trouble, remedy)
    return ok("none at work; a run starts one")


def unattended(place: Place) -> Diagnosis:
    """No run waits for a worker that is not there."""
    try:
        for _ in range(_LOOKS):
            waiting = [f"r{number}" for number, status in _live(place.home) if status != "paused"]
            if not waiting or _worker_pid(place.home):
                return ok("none")
            time.sleep(_BETWEEN_LOOKS_S)
    except (sqlite3.Error, OSError, ValueError):
        return unseen("see run store and worker")
    return problem(f"a worker for {', '.join(waiting)}", "none", f"matrix-coder watch {waiting[0]} starts one")


def fork_server(_: Place) -> Diagnosis:
    """The process that each step's process is forked from can load the host. It is tried in a home of its own."""
    if sys.platform != _LINUX:
        return note("there is none outside Linux", "nothing to do: each step loads the host anew, which takes a second")
    begun = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="matrix-coder-doctor-") as folder:
            ready, said = _try_fork_server(Path(folder), begun + _FORK_SERVER_S)
    except OSError as error:
        return problem("a process that loads the host", str(error), "see whether processes can be started at all")
    if ready:
        return ok(f"loads the host in {time.monotonic() - begun:.1f} s")
    return note(f"it can't fork: {said or 'not ready in time'}", "nothing to do: each step loads the host anew")


def _try_fork_server(folder: Path, deadline: float) -> tuple[bool, str]:
    """Whether one could fork, and the last line that it said. Raises OSError."""
    log = folder / "log"
    environment = step_environment(os.environ) | {"HERMES_HOME": str(folder)}
    server = ForkServer([sys.executable, str(LAUNCHER), "forkserver"], environment, log)
    try:
        ready = server.wait(lambda: time.monotonic() > deadline)
    finally:
        server.stop()
    said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return ready, said[-1] if said else ""


def landlock(place: Place) -> Diagnosis:
    """The kernel refuses a write to a process that may not write."""
    without = "nothing to do: what a reading step writes is found afterwards, by a look at the tree, and fails it"
    if sys.platform != _LINUX:
        return note("there is none outside Linux", without)
    try:
        with _probe_folder(place.home) as folder:
            refused, allowed = folder / "shut" / "file", folder / "open" / "file"
            for file in (refused, allowed):
                file.parent.mkdir()
            _under_guard(["/bin/sh", "-c", ': > "$0"; : > "$1"', str(allowed), str(refused)], protect=refused.parent)
            tried, written = allowed.exists(), refused.exists()
    except (OSError, StoreError) as error:
        return unseen(f"no probe could be made ({error})")
    if not tried:
        return unseen("the probe did not run")
    return note("the kernel has none", without) if written else ok("the kernel refuses writes to steps that only read")


def layers(place: Place) -> Diagnosis:
    """Steps that only read can see the current repository through a throw-away layer."""
    try:
        workspace = find_workspace(place.directory)
    except WorkspaceRefused as refused:
        return note(f"not looked at: {refused.found} is not {refused.expected}", refused.remedy)
    if state_dir(place.home).resolve().is_relative_to(workspace):
        return problem(f"a workspace that does not hold {state_dir(place.home)}", str(workspace), "move HERMES_HOME")
    try:
        with _probe_folder(place.home) as folder:
            usable = layer.usable(workspace, folder / "layer")
    except (OSError, StoreError) as error:
        return unseen(f"no probe could be made ({error})")
    if usable:
        return ok(f"steps that only read get one over {workspace}")
    instead = "nothing to do: a copy takes its place, which costs time and space in a large one"
    return note(f"none over {workspace}", instead)


def _live(home: Path) -> list[tuple[int, str]]:
    file = state_dir(home) / "runs.db"
    if not file.exists():
        return []
    with read_only(file) as db:
        if not db.execute("select 1 from sqlite_master where name = 'runs'").fetchone():
            return []
        return [(row["id"], row["status"]) for row in db.execute(_LIVE)]


def _worker_pid(home: Path) -> int:
    """The process that holds the store; 0 when none does. Makes no lock where there is none. Raises OSError."""
    path = WorkerLock(home).path
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return int(path.read_text(encoding="ascii") or 0)
    finally:
        os.close(fd)
    return 0


@contextmanager
def _probe_folder(home: Path) -> Iterator[Path]:
    """A folder beside the throw-away copies of runs, gone afterwards, as is the state directory if it was not there."""
    if not home.is_dir():
        raise FileNotFoundError(f"there is no {home}")
    state = state_dir(home)
    was_there = state.exists()
    private_dir(state)
    try:
        with tempfile.TemporaryDirectory(prefix="doctor-", dir=state) as folder:
            yield Path(folder)
    finally:
        if not was_there:
            with suppress(OSError):
                state.rmdir()


def _under_guard(command: list[str], *, protect: Path) -> None:
    running = Guarded(
        command, cookie="", protect=protect, cwd=protect, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    running.await_end(_PROBE_S)
    running.end()
