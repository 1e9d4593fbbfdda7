"""The guard, as a real process over real ones: nothing outlives its command, and a reading step can't write."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from kernel import needs_layers
from matrix_coder.engine.guard import NO_LAYER
from matrix_coder.engine.guarded import Guarded, end_all

# Leaves its session, its parent and its environment, as a daemon does that wants not to be found.
ESCAPED = "(env -i setsid sh -c 'sleep {0} & exec sleep {0}' &) ; (env -i sleep {0} &)"


def sleepers(seconds: str) -> list[psutil.Process]:
    """Every process that sleeps just this long, whatever its parent and environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cmdline()[-1:] == [seconds] and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


def until(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not what():
        assert time.monotonic() < deadline, "not seen within 10 s"
        time.sleep(0.02)


def shell(script: str, **options: object) -> Guarded:
    return Guarded(["/bin/sh", "-c", script], cookie="test-guard", stdin=subprocess.DEVNULL, **options)  # type: ignore[arg-type]


def test_guard_when_its_command_ends_then_escaped_daemons_end_with_it() -> None:
    """A daemon that left session, parent and environment is ended all the same, and the exit code is the command's."""
    command = shell(ESCAPED.format("7001.5") + "; sleep 0.2; exit 3")
    until(lambda: not command.running())
    assert command.end() == 3
    assert sleepers("7001.5") == []


def test_guard_when_the_lease_is_let_go_then_everything_ends() -> None:
    """When the engine lets go, the command and its escaped daemons end."""
    command = shell(ESCAPED.format("7002.5") + "; exec sleep 7002.5")
    until(lambda: len(sleepers("7002.5")) == 4)
    assert command.end() == 70
    assert sleepers("7002.5") == []


def test_guard_when_the_engine_is_killed_then_everything_ends(tmp_path: Path) -> None:
    """`kill -9` of the engine: the kernel closes the lease, and the guard ends all that is left."""
    script = (
        "import subprocess, sys, time; from matrix_coder.engine.guarded import Guarded\n"
        "g = Guarded(['/bin/sh', '-c', sys.argv[1]], cookie='test-guard', stdin=subprocess.DEVNULL)\n"
        "print('started', flush=True); time.sleep(600)"
    )
    words = [sys.executable, "-c", script, ESCAPED.format("7003.5") + "; exec sleep 7003.5"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == "started\n"
        until(lambda: len(sleepers("7003.5")) == 4)
        engine.kill()
        until(lambda: not sleepers("7003.5"))


def test_guard_when_a_command_keeps_starting_new_ones_then_still_ends_it() -> None:
    """A command that starts processes without pause is outrun."""
    command = shell("while :; do setsid sleep 7004.5 & done")
    until(lambda: len(sleepers("7004.5")) > 20)
    assert command.end() == 70
    assert sleepers("7004.5") == []


def test_end_all_when_commands_are_at_work_then_ends_each() -> None:
    """The worker's way out: every command of this process is ended."""
    commands = [shell("exec sleep 7005.5") for _ in range(3)]
    until(lambda: len(sleepers("7005.5")) == 3)
    end_all()
    assert sleepers("7005.5") == []
    assert [c.end() for c in commands] == [70, 70, 70]


@pytest.mark.parametrize("code", [0, 1, 77, 130])
def test_guard_when_its_command_exits_then_so_does_it(code: int) -> None:
    """The exit code goes through unchanged."""
    command = shell(f"exit {code}")
    until(lambda: not command.running())
    assert command.end() == code


def test_guard_when_its_command_does_not_exist_then_says_so_as_a_shell_would() -> None:
    """127, as a shell tells a missing program."""
    command = Guarded(["/no/such/program"], cookie="test-guard", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    until(lambda: not command.running())
    assert command.end() == 127


WRITES = [
    "echo x > {ws}/new",
    "echo x >> {ws}/kept",
    "sed -i s/a/b/ {ws}/kept",
    "rm {ws}/kept",
    "mv {ws}/kept {copy}/",
    "mv {copy}/mine {ws}/",
    "cp {copy}/mine {ws}/kept",
    "ln {ws}/kept {ws}/link",
    "ln -s /etc/hosts {ws}/link",
    "mkdir {ws}/folder",
    "rmdir {ws}/empty",
    "truncate -s 0 {ws}/kept",
    "dd if=/dev/zero of={ws}/kept bs=1 count=1 conv=notrunc",
    "tee {ws}/kept < /dev/null",
    "python3 -c \"open('{ws}/kept', 'w')\"",
    "python3 -c \"import os; os.remove('{ws}/kept')\"",
    "python3 -c \"import os; os.open('{ws}/kept', os.O_RDWR)\"",
    "git -C {ws} init",
    "cd {ws} && touch new",
    "install -m 755 {copy}/mine {ws}/mine",
    "mkfifo {ws}/pipe",
    "cd {copy} && ln -s {ws}/kept alias && echo x > alias",
    "cd {copy} && ln -s {ws} alias && echo x > alias/new",
    "echo x > {copy}/../ws/new",
    "env -i setsid sh -c 'echo x > {ws}/new'",
    "nohup sh -c 'echo x > {ws}/new' > /dev/null",
    "perl -e 'open(F, \">{ws}/kept\") or die'",
    "tar -C {copy} -cf - mine | tar -C {ws} -xf -",
    "(sleep 0.1; echo x > {ws}/new) & wait",
    "exec 3>{ws}/new",
    "unshare -Ur sh -c 'echo x > {ws}/new'",
    "rename() {{ mv {ws}/empty {ws}/renamed; }}; rename",
]


def layered(script: str, workspace: Path, folder: Path, **options: object) -> tuple[int, str]:
    """Exit code and output of a script in the workspace, with a layer kept in `folder` over it."""
    folder.mkdir(exist_ok=True)
    output = folder.with_suffix(".log")
    with output.open("wb") as sink:
        command = shell(script, protect=workspace, layer=folder, cwd=workspace, stdout=sink, **options)
        until(lambda: not command.running())
    return command.end(), output.read_text()


@needs_layers
@pytest.mark.parametrize("way", [*WRITES, "umount {ws}; echo x > {ws}/new", "echo x > /proc/{engine}/root{ws}/new"])
def test_guard_when_a_directory_has_a_layer_then_no_way_of_writing_there_reaches_it(way: str, tmp_path: Path) -> None:
    """Through its layer a command may write in the directory itself, and nobody but itself ever sees it."""
    workspace, copy = tmp_path / "ws", tmp_path / "copy"
    (workspace / "empty").mkdir(parents=True)
    (workspace / "kept").write_text("a\n")
    copy.mkdir()
    (copy / "mine").write_text("mine\n")
    script = "echo works > probe; cat probe; " + way.format(ws=workspace, copy=copy, engine=os.getpid())
    _, output = layered(script, workspace, tmp_path / "layer", keep=[copy])
    assert output.startswith("works\n")
    assert sorted(p.name for p in workspace.iterdir()) == ["empty", "kept"]
    assert (workspace / "kept").read_text() == "a\n"
    assert (workspace / "kept").stat().st_nlink == 1
    assert (tmp_path / "layer" / "upper" / "probe").read_text() == "works\n"


@needs_layers
def test_guard_when_a_layered_directory_is_a_linked_worktree_then_the_command_knows_no_repository(
    tmp_path: Path,
) -> None:
    """Git commands in a layer can't write into a repository that lies elsewhere."""
    workspace = tmp_path / "ws"
    workspace.mkdir()
    (workspace / ".git").write_text("gitdir: /elsewhere\n")
    _, output = layered("ls -A", workspace, tmp_path / "layer")
    assert output == ""
    assert (workspace / ".git").read_text() == "gitdir: /elsewhere\n"


def test_guard_when_no_layer_can_be_had_then_the_command_never_starts(tmp_path: Path) -> None:
    """A command that was to have a layer does not run without one; 71 says why."""
    workspace = tmp_path / "a,b"
    workspace.mkdir()
    code, output = layered("touch ran", workspace, tmp_path / "layer")
    assert code == NO_LAYER
    assert output.startswith("no layer of its own: ")
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize("way", WRITES)
def test_guard_when_a_directory_is_protected_then_no_way_of_writing_there_works(way: str, tmp_path: Path) -> None:
    """A reading step's command leaves the workspace byte for byte as it was, and can still write its copy."""
    workspace, copy = tmp_path / "ws", tmp_path / "copy"
    (workspace / "empty").mkdir(parents=True)
    (workspace / "kept").write_text("a\n")
    copy.mkdir()
    (copy / "mine").write_text("mine\n")
    script = f"echo works > {copy}/probe; " + way.format(ws=workspace, copy=copy)
    command = shell(script, protect=workspace, keep=[copy], stdout=subprocess.DEVNULL)
    until(lambda: not command.running())
    command.end()
    assert (copy / "probe").read_text() == "works\n"
    assert sorted(p.name for p in workspace.iterdir()) == ["empty", "kept"]
    assert (workspace / "kept").read_text() == "a\n"
    assert (workspace / "kept").stat().st_nlink == 1
