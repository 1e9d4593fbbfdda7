"""Workspaces whose repository lies elsewhere: a reading step leaves that as it is, too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kernel import needs_layers
from matrix_coder.engine.guarded import Guarded

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux refuses writes")


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=Test", "-c", "user.email=test@example.invalid", "-c", "protocol.file.allow=always")
    return subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    """A linked worktree that has a submodule."""
    for name in ("library", "main"):
        (tmp_path / name).mkdir()
        git(tmp_path / name, "init", "-q")
        git(tmp_path / name, "commit", "-q", "--allow-empty", "-m", "start")
    main, found = tmp_path / "main", tmp_path / "worktree"
    git(main, "submodule", "--quiet", "add", str(tmp_path / "library"), "sub")
    git(main, "commit", "-qm", "with a submodule")
    git(main, "worktree", "add", "-q", str(found))
    git(found, "submodule", "--quiet", "update", "--init")
    return found


COMMIT = "-c user.name=Test -c user.email=test@example.invalid commit -q --allow-empty -m planted"
WAYS = [
    "git -C {ws}/sub " + COMMIT,
    "git -C {ws}/sub tag planted",
    "git -C {main} " + COMMIT,
    "git -C {main} config planted.name x",
    "echo x > {main}/.git/hooks/planted",
    "echo x > {main}/.git/worktrees/worktree/planted",
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("layered", [pytest.param(True, marks=needs_layers), False])
def test_guard_when_the_repository_lies_elsewhere_then_nothing_is_written_there(
    worktree: Path, tmp_path: Path, way: str, layered: bool
) -> None:
    """Neither through a submodule's own link nor by its path; beside it, everything stays open."""
    main, aside = tmp_path / "main", tmp_path / "aside"
    aside.mkdir()
    before = sorted((str(p), p.stat().st_mtime_ns) for p in (main / ".git").rglob("*"))
    command = Guarded(
        ["/bin/sh", "-c", f"echo x > {main}/.gitmodules; " + way.format(ws=worktree, main=main)],
        cookie="test-elsewhere",
        protect=worktree,
        layer=aside if layered else None,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    command.await_end(20)
    assert command.end() != 0
    assert sorted((str(p), p.stat().st_mtime_ns) for p in (main / ".git").rglob("*")) == before
    assert (main / ".gitmodules").read_text() == "x\n"
