"""Ending an attempt for certain: all that belongs to it, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from matrix_coder.engine.procs import (
    COOKIE,
    base_environment,
    end_everything,
    host_environment,
    same_process,
    started_at,
)

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts shell commands in sessions of their own, with a cookie; whatever is left of them goes with the test."""
    running: list[subprocess.Popen[bytes]] = []

    def run(command: str, cookie: str = "") -> subprocess.Popen[bytes]:
        env = {"PATH": os.environ["PATH"], **({COOKIE: cookie} if cookie else {})}
        running.append(subprocess.Popen(["/bin/sh", "-c", command], cwd=tmp_path, env=env, start_new_session=True))
        return running[-1]

    yield run
    for process in running:
        if process.poll() is None:
            process.kill()
        process.wait()
    for file in tmp_path.glob("*.pid"):
        process_of(file).kill() if is_alive(file) else None


def process_of(file: Path) -> psutil.Process:
    return psutil.Process(int(file.read_text()))


def is_alive(file: Path) -> bool:
    try:
        return process_of(file).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def until(true: Callable[[], object]) -> None:
    """Wait for something that is bound to come; the suite's own limit ends a wait in vain."""
    while not true():
        time.sleep(0.01)


def written(file: Path) -> bool:
    return file.exists() and file.read_text().endswith("\n")


ORPHAN = "(setsid sh -c 'echo $$ > {0}.pid; exec sleep 300' &) ; "


def test_end_when_an_orphan_has_a_session_of_its_own_then_the_cookie_finds_it(start: Start, tmp_path: Path) -> None:
    """What left group, session and parent behind still carries the cookie."""
    root = start(ORPHAN.format("orphan"), cookie="attempt-1")
    root.wait()
    until(lambda: written(tmp_path / "orphan.pid"))
    assert is_alive(tmp_path / "orphan.pid")
    assert end_everything("attempt-1") == 1
    assert not is_alive(tmp_path / "orphan.pid")


def test_end_when_it_has_ended_everything_then_there_is_nothing_left_to_find(start: Start, tmp_path: Path) -> None:
    """Ending twice does no more than ending once."""
    start(ORPHAN.format("a") + ORPHAN.format("b") + "exec sleep 300", cookie="attempt-1")
    until(lambda: written(tmp_path / "a.pid") and written(tmp_path / "b.pid"))
    assert end_everything("attempt-1") >= 3
    assert end_everything("attempt-1") == 0


def test_end_when_processes_keep_starting_new_ones_then_all_of_them_are_ended(start: Start, tmp_path: Path) -> None:
    """Something that starts itself again while it is being ended doesn't get away."""
    start("while :; do setsid sleep 300 & sleep 0.005; done", cookie="attempt-1")
    until(lambda: len(carriers("attempt-1")) > 5)
    end_everything("attempt-1")
    assert carriers("attempt-1") == []


def carriers(cookie: str) -> list[int]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(COOKIE) == cookie and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


@pytest.mark.parametrize("other", ["attempt-2", "attempt-11", "attempt-", "ATTEMPT-1", ""])
def test_end_when_a_process_has_another_cookie_then_it_is_left_alone(start: Start, other: str) -> None:
    """Another run, step or home is never touched, however similar its name."""
    theirs = start("exec sleep 300", cookie=other)
    assert end_everything("attempt-1") == 0
    assert theirs.poll() is None


def test_end_when_there_is_no_cookie_then_nobody_without_one_is_touched(start: Start) -> None:
    """No cookie is nobody's cookie."""
    theirs = start("exec sleep 300")
    assert end_everything("") == 0
    assert theirs.poll() is None


def test_end_when_the_recorded_process_has_no_cookie_then_its_pid_and_start_find_it(
    start: Start, tmp_path: Path
) -> None:
    """A recorded process is ended with its descendants also where the environment was cleaned."""
    command = "env -i /bin/sh -c 'echo $$ > inner.pid; exec sleep 300' & echo $! > outer; exec sleep 300"
    root = start(command)
    until(lambda: written(tmp_path / "inner.pid"))
    assert end_everything("attempt-1", pid=root.pid, started=started_at(root.pid)) == 2
    assert root.wait() == -9
    assert not is_alive(tmp_path / "inner.pid")


def test_end_when_the_root_is_gone_but_not_waited_for_then_its_session_is_still_ended(
    start: Start, tmp_path: Path
) -> None:
    """An orphan without cookie, in the session of a root that has ended, is found while that pid can't be reused."""
    root = start("env -i /bin/sh -c 'echo $$ > left.pid; exec sleep 300' & exit 3")
    started = started_at(root.pid)
    until(lambda: written(tmp_path / "left.pid"))
    until(lambda: psutil.Process(root.pid).status() == psutil.STATUS_ZOMBIE)
    assert end_everything("attempt-1", pid=root.pid, started=started) == 1
    assert not is_alive(tmp_path / "left.pid")
    assert root.wait() == 3


def test_end_when_the_pid_belongs_to_somebody_else_now_then_it_is_left_alone(start: Start) -> None:
    """A pid that was used again, told by its start time, is not ours, nor is its group or session."""
    theirs = start("sleep 300 & exec sleep 300")
    assert end_everything("attempt-1", pid=theirs.pid, started=started_at(theirs.pid) - 10.0) == 0
    assert end_everything("attempt-1", pid=theirs.pid, started=0.0) == 0
    assert theirs.poll() is None
    end_everything("", pid=theirs.pid, started=started_at(theirs.pid))


def test_end_when_the_pid_is_gone_then_nothing_happens(start: Start) -> None:
    """A recorded process that ended long ago is no obstacle."""
    gone = start("exit 0")
    gone.wait()
    assert end_everything("attempt-1", pid=gone.pid, started=1.0) == 0


def test_end_when_called_by_a_member_then_it_ends_the_others_and_not_itself(start: Start, tmp_path: Path) -> None:
    """A step that ends its own attempt gets to say so."""
    script = (
        "import subprocess, sys; from matrix_coder.engine.procs import end_everything;"
        "p = subprocess.Popen(['sleep', '300']); print(end_everything('attempt-1'), p.wait())"
    )
    env = os.environ | {COOKIE: "attempt-1"}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "1 -9\n"


def test_same_process_when_pid_and_start_fit_then_true() -> None:
    """A process is known by both; neither alone is enough."""
    pid = os.getpid()
    assert same_process(pid, started_at(pid))
    assert not same_process(pid, started_at(pid) + 1.0)
    assert not same_process(pid, 0.0)
    assert not same_process(0, started_at(pid))
    assert started_at(2**22 + 1) == 0.0


SOURCE = {
    "PATH": "/bin",
    "LC_ALL": "C",
    "HERMES_HOME": "/h",
    "OPENAI_API_KEY": "k",
    "OPENAI_BASE_URL": "u",
    "HERMES_YOLO_MODE": "1",
    "HERMES_EXEC_ASK": "1",
    "HERMES_CRON_SESSION": "1",
    "HERMES_KANBAN_TASK": "t",
    "HERMES_KANBAN_RUN_ID": "1",
    "HERMES_SESSION_ID": "s",
    "HERMES_INTERACTIVE": "1",
    "PYTHONPATH": "/x",
    "GITHUB_TOKEN": "t",
    COOKIE: "another",
}


def test_environments_when_made_then_by_allow_list() -> None:
    """Commands see paths and locale; the host's process also its home and credentials; no switch of the host passes."""
    assert base_environment(SOURCE) == {"PATH": "/bin", "LC_ALL": "C"}
    extra = {n: SOURCE[n] for n in ("HERMES_HOME", "OPENAI_API_KEY", "OPENAI_BASE_URL")}
    assert host_environment(SOURCE) == {"PATH": "/bin", "LC_ALL": "C"} | extra
