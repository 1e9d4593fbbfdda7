"""The fork server, as a real process: what it forks is as certain to end as what is started anew."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from matrix_coder.engine import forkserver
from matrix_coder.engine.forkserver import Forked, ForkServer, Wanted
from matrix_coder.engine.guarded import end_all
from matrix_coder.engine.procs import COOKIE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each step's process is started anew")

SERVER = """
import sys, threading, time
from matrix_coder.engine.forkserver import serve

def run(job_file, channel):
    exec(compile(open(job_file).read(), job_file, "exec"), {"channel": channel})
    return 3

def preload():
    if sys.argv[1] == "threads":
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    if sys.argv[1] == "broken":
        raise SystemExit("no host here")

sys.exit(serve(int(sys.argv[2]), preload, run))
"""


def until(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not what():
        assert time.monotonic() < deadline, "not seen within 20 s"
        time.sleep(0.02)


def sleepers(seconds: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        if (process.info["cmdline"] or [])[-1:] == [seconds] and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process)
    return found


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., ForkServer]]:
    made: list[ForkServer] = []

    def start(kind: str = "plain") -> ForkServer:
        made.append(ForkServer([sys.executable, "-c", SERVER, kind], {**os.environ}, tmp_path / "server.log"))
        return made[-1]

    yield start
    for one in made:
        one.stop()


def fork(server: ForkServer, tmp_path: Path, script: str, **more: object) -> Forked | None:
    job = tmp_path / f"job-{len([*tmp_path.iterdir()])}-{time.monotonic_ns()}.py"
    job.write_text(script)
    environment = {"PATH": os.environ["PATH"], "OWN": "its own", COOKIE: "test-forkserver"}
    wanted = Wanted(job_file=job, directory=tmp_path, environment=environment, cookie="test-forkserver", **more)  # type: ignore[arg-type]
    assert server.wait(lambda: False)
    channel = os.open(tmp_path / "channel", os.O_WRONLY | os.O_CREAT)
    try:
        with (tmp_path / "log").open("wb") as log:
            return server.fork(wanted, channel=channel, log=log.fileno())
    finally:
        os.close(channel)


def test_fork_when_asked_for_then_has_its_place_its_environment_and_its_pipes(
    make: Callable[..., ForkServer], tmp_path: Path
) -> None:
    """A forked process knows what one that is started anew would: nothing of the server's own leaks into it."""
    script = (
        "import os, sys\nword = sys.stdin.readline().strip()\n"
        "print(word, os.getcwd(), sorted(os.environ), os.environ['OWN'])\n"
        "os.write(channel, b'told')\n"
    )
    process = fork(make(), tmp_path, script)
    assert process is not None
    assert process.running()
    process.tell(b"the word\n")
    until(lambda: not process.running())
    assert process.end() == 3
    said = (tmp_path / "log").read_text()
    assert said == f"the word {tmp_path} {sorted(['PATH', 'OWN', COOKIE])} its own\n"
    assert (tmp_path / "channel").read_text() == "told"


def test_fork_when_several_are_asked_for_then_each_is_its_own(make: Callable[..., ForkServer], tmp_path: Path) -> None:
    """One server serves one step after another, and some at once; none sees another's end."""
    server = make()
    processes = [fork(server, tmp_path, "import sys\nsys.stdin.readline()\n") for _ in range(5)]
    assert len({p.pid for p in processes if p}) == 5
    for process in processes:
        assert process is not None
        assert process.running()
        process.tell(b"go\n")
        until(lambda process=process: not process.running())
        assert process.end() == 3


ESCAPES = (
    "import subprocess, time\n"
    "subprocess.Popen('(env -i setsid sh -c \"sleep {0} & exec sleep {0}\" &); exec sleep {0}', shell=True)\n"
    "time.sleep({0})\n"
)


@pytest.mark.parametrize("way", ["end", "end_all", "server killed"])
def test_fork_when_its_lease_is_let_go_then_everything_it_started_ends(
    make: Callable[..., ForkServer], tmp_path: Path, way: str
) -> None:
    """Daemons that left session and environment end with it, whether or not the server lives to see it."""
    seconds = {"end": "7021.5", "end_all": "7022.5", "server killed": "7023.5"}[way]
    server = make()
    process = fork(server, tmp_path, ESCAPES.format(seconds))
    assert process is not None
    until(lambda: len(sleepers(seconds)) == 3)
    if way == "server killed":
        server.stop()
        assert process.running()
    if way == "end_all":
        end_all()
        assert not process.running()
    assert process.end() == 70
    assert sleepers(seconds) == []


def test_fork_when_its_guard_is_killed_then_it_dies_and_what_it_started_is_found(
    make: Callable[..., ForkServer], tmp_path: Path
) -> None:
    """A step that kills its own guard has not freed itself."""
    script = (
        "import os, signal, subprocess, time\nsubprocess.Popen(['setsid', 'sleep', '7024.5'])\n"
        "time.sleep(0.5)\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(7025)\n"
    )
    process = fork(make(), tmp_path, script)
    assert process is not None
    until(lambda: not process.running())
    assert process.end() == -9
    assert sleepers("7024.5") == []


def test_fork_when_the_job_breaks_then_its_log_says_how_and_the_server_goes_on(
    make: Callable[..., ForkServer], tmp_path: Path
) -> None:
    """An error in a step ends that step alone."""
    server = make()
    process = fork(server, tmp_path, "raise ValueError('of its own')\n")
    assert process is not None
    until(lambda: not process.running())
    assert process.end() == 1
    assert "ValueError: of its own" in (tmp_path / "log").read_text()
    assert fork(server, tmp_path, "") is not None


@pytest.mark.parametrize("kind", ["threads", "broken"])
def test_server_when_it_can_not_fork_safely_then_says_so(make: Callable[..., ForkServer], kind: str) -> None:
    """A process with threads is never forked, and a server that dies at once keeps nobody waiting."""
    server = make(kind)
    assert not server.wait(lambda: False)


def test_server_when_it_died_then_a_fork_is_refused_and_not_waited_for(
    make: Callable[..., ForkServer], tmp_path: Path
) -> None:
    """The step is then started anew."""
    server = make()
    assert server.wait(lambda: False)
    server._process.kill()
    server._process.wait()
    assert fork(server, tmp_path, "") is None
    assert not server.wait(lambda: False)


def test_server_when_what_it_loads_has_changed_then_another_takes_its_place_and_forks_go_on(tmp_path: Path) -> None:
    """A plugin that is switched on while a worker lives is there in the next step; a step at work is left alone."""
    config = tmp_path / "config.yaml"
    config.write_text("one")
    command = [sys.executable, "-c", SERVER, "plain"]
    forkserver.start(command, {**os.environ}, tmp_path / "server.log", [config, tmp_path / "plugins"])
    try:
        first = forkserver.current()
        assert first is not None
        process = fork(first, tmp_path, "import sys\nsys.stdin.readline()\n")
        forkserver.refresh()
        assert forkserver.current() is first
        config.write_text("another")
        forkserver.refresh()
        second = forkserver.current()
        assert second not in (None, first)
        until(lambda: first._process.poll() is not None)
        assert process is not None
        assert process.running()
        process.tell(b"go\n")
        until(lambda: not process.running())
        assert process.end() == 3
        (tmp_path / "plugins").mkdir()
        forkserver.refresh()
        third = forkserver.current()
        assert third not in (None, second)
        assert fork(third, tmp_path, "") is not None  # type: ignore[arg-type]
    finally:
        end_all()
        forkserver.stop()
    assert forkserver.current() is None


def test_server_when_asked_to_stop_waiting_then_does(make: Callable[..., ForkServer]) -> None:
    """A run that is cancelled does not wait for the host to load."""
    assert not make().wait(lambda: True)


def test_server_when_its_engine_is_gone_then_goes_by_itself(make: Callable[..., ForkServer]) -> None:
    """Nobody is left to ask it for anything."""
    server = make()
    assert server.wait(lambda: False)
    server._socket.close()
    server._process.wait(timeout=20)
    assert server._process.returncode == 0
