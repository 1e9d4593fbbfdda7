"""A layer over a workspace, and the places where a copy has to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernel import needs_layers
from matrix_coder.engine import layer


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    root.mkdir()
    (root / "kept").write_text("a\n")
    return root


@needs_layers
def test_usable_when_asked_then_the_answer_is_kept_and_nothing_is_left(workspace: Path, tmp_path: Path) -> None:
    """It is tried once for real; neither the workspace nor the folder keeps anything of it."""
    folder = tmp_path / "aside"
    assert layer.usable(workspace, folder)
    assert [p.name for p in workspace.iterdir()] == ["kept"]
    assert not folder.exists()
    layer.give_up(workspace)
    assert not layer.usable(workspace, folder)


@pytest.mark.parametrize("name", ["with,comma", "with:colon", "with\\backslash", "with\nbreak"])
def test_usable_when_the_mount_could_not_name_the_workspace_then_a_copy_has_to_do(tmp_path: Path, name: str) -> None:
    """A name that the mount's options would read as something else is never handed to it."""
    workspace = tmp_path / name
    workspace.mkdir()
    assert not layer.usable(workspace, tmp_path / "aside")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_usable_when_a_file_is_somebody_else_s_then_an_ordinary_user_gets_a_copy(shared: Path) -> None:
    """In a namespace of one's own, files of others could not be written: the suite would fail for no reason of its."""
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom matrix_coder.engine import layer\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "place = Path(sys.argv[1])\n"
        "print(layer._own(place / 'mine'), layer._own(place / 'mixed'))\n"
    )
    for name in ("mine", "mixed"):
        (shared / name).mkdir()
        (shared / name / "file").touch()
        for path in (shared / name, shared / name / "file"):
            os.chown(path, 65534, 65534)
    os.chown(shared / "mixed" / "file", 65534, 0)
    done = subprocess.run(
        [sys.executable, "-c", script, str(shared)], capture_output=True, text=True, check=False, cwd="/"
    )
    assert done.stdout == "True False\n", done.stderr


@needs_layers
@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's own suite shows this with every reading step")
def test_layer_when_the_user_is_no_administrator_then_it_holds_just_the_same(shared: Path) -> None:
    """An ordinary user gets the layer in a namespace of its own: new, changed and removed files stay in there."""
    script = (
        "import ctypes, os, sys\nfrom matrix_coder.engine import guard\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)\n"  # a change of user has hidden this process from itself
        "os.chdir(sys.argv[1])\n"
        "guard.confine(sys.argv[1], keep=[], layer=sys.argv[2])\n"
        "open('new', 'w').write('x'); open('kept', 'a').write('b\\n'); os.remove('gone')\n"
        "print(sorted(os.listdir('.')), open('kept').read().split())\n"
    )
    workspace, aside = shared / "ws", shared / "aside"
    for folder in (workspace, aside):
        folder.mkdir()
    (workspace / "kept").write_text("a\n")
    (workspace / "gone").touch()
    for path in (workspace, *workspace.iterdir(), aside):
        os.chown(path, 65534, 65534)
    words = [sys.executable, "-c", script, str(workspace), str(aside)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd="/")
    assert done.stdout == "['kept', 'new'] ['a', 'b']\n", done.stderr
    assert sorted(p.name for p in workspace.iterdir()) == ["gone", "kept"]
    assert (workspace / "kept").read_text() == "a\n"
    layer.remove(aside)
    assert not aside.exists()


def test_remove_when_the_kernel_left_a_shut_directory_then_it_goes_too(tmp_path: Path) -> None:
    """What an overlay leaves behind may be a directory that nobody may look into."""
    shut = tmp_path / "aside" / "work" / "work"
    shut.mkdir(parents=True)
    shut.chmod(0)
    layer.remove(tmp_path / "aside")
    assert not (tmp_path / "aside").exists()


def test_written_when_files_are_there_then_each_is_told_but_git_s_own_look(tmp_path: Path) -> None:
    """Files by their path in the workspace; the index that `git status` refreshes is no writing."""
    for name in ("pkg/a.py", ".git/index", ".git/refs/heads/main"):
        path = tmp_path / "upper" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert sorted(layer.written(tmp_path)) == [".git/refs/heads/main", "pkg/a.py"]
    assert len([*layer.written(tmp_path, most=1)]) <= 1
    assert [*layer.written(tmp_path / "nowhere")] == []
