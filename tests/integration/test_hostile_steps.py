"""Steps that turn on what watches them: their guard, the fork server, the pipes that tell of their end."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from kernel import needs_layers
from matrix_coder.engine.dispatch import Job, run_attempt
from matrix_coder.engine.forkserver import Forked, ForkServer, Wanted
from matrix_coder.engine.guarded import Guarded

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="guards and fork servers are Linux's")

SERVER = """
import sys, time
from matrix_coder.engine.forkserver import serve

def run(job_file, channel):
    exec(compile(open(job_file).read(), job_file, "exec"), {})
    return 3

sys.exit(serve(int(sys.argv[2]), lambda: time.sleep(float(sys.argv[1])), run))
"""
# A worker with one command that is started anew and one that is forked; it says what it has left at their end.
WORKER = """
import os, subprocess, sys, time
from pathlib import Path
from matrix_coder.engine.forkserver import ForkServer, Wanted
from matrix_coder.engine.guarded import Guarded, adopt_orphans

adopt_orphans()
folder, server = Path(sys.argv[1]), [sys.executable, "-c", sys.argv[2], "0"]
server = ForkServer(server, dict(os.environ), folder / "server.log")
server.wait(lambda: False)
own = subprocess.Popen(["sleep", "7031.5"])
word = ["/bin/sh", "-c", "env -i setsid sleep 7032.5 & sleep 0.2; kill -9 $PPID; sleep 7033.5"]
if sys.argv[3] == "anew":
    running = Guarded(word, cookie="test-hostile", stdin=subprocess.DEVNULL)
else:
    wanted = Wanted(job_file=folder / "job.py", directory=folder, environment={"PATH": os.environ["PATH"]}, cookie="c")
    running = server.fork(wanted, channel=0, log=2)
while running.running():
    time.sleep(0.01)
print(running.end(), own.poll(), server._process.poll(), flush=True)
own.kill()
own.wait()
server.stop()
"""
KILLER = """
import os, signal, subprocess, time
if os.fork() == 0:
    os.setsid()
    os.execvp("sleep", ["sleep", "7034.5"])
subprocess.Popen("env -i setsid sleep 7032.5 &", shell=True).wait()
time.sleep(0.2)
os.kill(os.getppid(), signal.SIGKILL)
time.sleep(7033)
"""


def sleepers(*seconds: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        if (process.info["cmdline"] or [""])[-1] in seconds and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


def until(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not what():
        assert time.monotonic() < deadline, "not seen within 20 s"
        time.sleep(0.02)


@pytest.mark.parametrize("way", ["anew", "forked"])
def test_end_when_a_step_has_killed_its_guard_then_daemons_without_a_trace_end_all_the_same(
    way: str, tmp_path: Path
) -> None:
    """Nothing in its environment, session or parents leads to such a daemon; the worker has become its parent."""
    (tmp_path / "job.py").write_text(KILLER)
    words = [sys.executable, "-c", WORKER, str(tmp_path), SERVER, way]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "-9 None None\n", done.stderr
    assert sleepers("7031.5", "7032.5", "7033.5", "7034.5") == []


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., ForkServer]]:
    made: list[ForkServer] = []

    def start(load_s: float = 60.0, *, takes: str = "0") -> ForkServer:
        command = [sys.executable, "-c", SERVER, takes]
        made.append(ForkServer(command, {**os.environ}, tmp_path / "server.log", load_s=load_s))
        return made[-1]

    yield start
    for one in made:
        one.stop()


def fork(server: ForkServer, tmp_path: Path, script: str, stop: Callable[[], bool] = lambda: False) -> Forked | None:
    job = tmp_path / "job.py"
    job.write_text(script)
    wanted = Wanted(job_file=job, directory=tmp_path, environment={"PATH": os.environ["PATH"]}, cookie="test-hostile")
    assert server.wait(lambda: False)
    with (tmp_path / "log").open("wb") as log:
        return server.fork(wanted, channel=log.fileno(), log=log.fileno(), stop=stop)


FORGE = """
import os, time
for fd in os.listdir(f"/proc/{os.getppid()}/fd"):
    try:
        if int(fd) > 2 and os.readlink(f"/proc/{os.getppid()}/fd/{fd}").startswith("pipe:"):
            os.write(os.open(f"/proc/{os.getppid()}/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK), b"no code")
    except OSError:
        pass
open("forged", "w").close()
time.sleep(7035)
"""


def test_fork_when_a_step_forges_its_guard_s_last_words_then_its_end_is_still_the_guard_s(
    make: Callable[..., ForkServer], tmp_path: Path
) -> None:
    """Whatever is found in the pipe, a step is over when its guard is, and not before."""
    process = fork(make(), tmp_path, FORGE)
    assert process is not None
    until((tmp_path / "forged").exists)
    assert process.running()
    os.kill(process.pid, signal.SIGKILL)
    until(lambda: not process.running())
    assert process.end() == -9
    assert not psutil.pid_exists(process.pid)


def test_fork_when_a_step_has_stopped_its_guard_then_the_end_is_not_waited_for_in_vain(
    make: Callable[..., ForkServer], tmp_path: Path
) -> None:
    """The guard is woken, and ends everything as ever: 70, not what a guard would leave that had to be killed."""
    process = fork(make(), tmp_path, "import os, time\nos.kill(os.getppid(), 19)\ntime.sleep(7036)\n")
    assert process is not None
    until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    assert process.end() == 70


def test_server_when_it_does_not_get_done_loading_then_it_is_given_up(make: Callable[..., ForkServer]) -> None:
    """A host that hangs while it is loaded does not stall a run: its steps are started anew."""
    server = make(0.3, takes="3600")
    assert not server.wait(lambda: False)
    assert server._process.wait(timeout=20) == -signal.SIGKILL


def test_fork_when_the_server_was_stopped_then_a_cancelled_run_does_not_wait_for_it(
    make: Callable[..., ForkServer], tmp_path: Path
) -> None:
    """It is told to go after a second, and the server with it."""
    server, asked = make(), threading.Event()
    assert server.wait(lambda: False)
    os.kill(server._process.pid, signal.SIGSTOP)

    def stop() -> bool:
        asked.set()
        return True

    assert fork(server, tmp_path, "", stop) is None
    assert asked.is_set()
    assert server._process.wait(timeout=20) == -signal.SIGKILL


def test_server_when_it_was_stopped_and_its_engine_is_killed_then_it_goes_too(tmp_path: Path) -> None:
    """A process that sees nothing of its socket's end is ended by the kernel."""
    script = (
        "import os, sys, time\nfrom pathlib import Path\nfrom matrix_coder.engine.forkserver import ForkServer\n"
        "s = ForkServer([sys.executable, '-c', sys.argv[1], '0'], dict(os.environ), Path(sys.argv[2]))\n"
        "s.wait(lambda: False)\nos.kill(s._process.pid, 19)\nprint(s._process.pid, flush=True)\ntime.sleep(600)\n"
    )
    words = [sys.executable, "-c", script, SERVER, str(tmp_path / "log")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdout is not None
        server = psutil.Process(int(engine.stdout.readline()))
        engine.kill()
        until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE)


def landlock() -> int:
    """The kernel's version of it; below 1 where it has none."""
    return int(ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), ctypes.c_uint32(1)))


@pytest.mark.skipif(landlock() < 6, reason="kernels before 6.12 can't keep signals in")
@pytest.mark.parametrize("layered", [pytest.param(True, marks=needs_layers), False])
def test_guard_when_a_reading_step_sends_signals_then_they_reach_its_own_processes_only(
    layered: bool, tmp_path: Path
) -> None:
    """It ends what it has started; its guard and its engine never hear of it."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "layer").mkdir()
    script = (
        f"kill -9 $PPID; kill -STOP $PPID; kill -0 {os.getpid()} && exit 1; "
        "sleep 7037.5 & kill $!; wait $!; [ $? = 143 ] && exit 5"
    )
    command = Guarded(
        ["/bin/sh", "-c", script],
        cookie="test-hostile",
        protect=tmp_path / "ws",
        layer=tmp_path / "layer" if layered else None,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    until(lambda: not command.running())
    assert command.end() == 5


def test_attempt_when_its_process_can_not_be_started_then_nothing_stays_open(tmp_path: Path) -> None:
    """A disk that is full for hours is tried again and again; the worker does not run out of descriptors by it."""
    before = psutil.Process().num_fds()
    for turn in range(3):
        job = Job(
            cookie="test-hostile",
            role="verify",
            writes=False,
            task="",
            context="",
            workspace=tmp_path,
            directory=tmp_path / "missing",
            record=tmp_path / f"{turn}",
            limit_s=5.0,
        )
        with pytest.raises(FileNotFoundError):
            run_attempt(job, on_start=lambda *_: None, on_event=lambda *_: None, stop=lambda: "")
    assert psutil.Process().num_fds() == before
