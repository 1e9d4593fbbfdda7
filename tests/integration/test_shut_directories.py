"""Directories that an ordinary user has shut: what is thrown away goes all the same, and a second try starts clean."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from matrix_coder.engine.paths import remove_all

SCRIPT = """
import os, sys
from pathlib import Path
from matrix_coder.engine import layer
from matrix_coder.engine.workspace import throw_away_copy

if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
place = Path(sys.argv[1])
written = place / "aside" / "1" / "upper" / "shut"
written.mkdir(parents=True)
(written / "file").touch()
written.chmod(0)
layer.remove(place / "aside" / "1")
(place / "ws" / "fixed").mkdir(parents=True)
(place / "ws" / "fixed" / "file").touch()
(place / "ws" / "fixed").chmod(0o555)
for _ in range(2):
    throw_away_copy(place / "ws", place / "aside" / "2")
layer.remove(place / "aside" / "2")
print(sorted(os.listdir(place / "aside")), oct((place / "ws" / "fixed").stat().st_mode), os.listdir(place / "ws"))
"""


def test_copies_and_layers_when_directories_in_them_are_shut_then_go_all_the_same(shared: Path) -> None:
    """Whether a step has shut a directory or the workspace holds one: no folder stays, a second try begins clean."""
    place = shared / "place"
    place.mkdir()
    if os.geteuid() == 0:
        os.chown(place, 65534, 65534)
    words = [sys.executable, "-c", SCRIPT, str(place)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd="/")
    assert done.stdout == "[] 0o40555 ['fixed']\n", done.stderr
    remove_all(place)
    assert not place.exists()


def test_remove_all_when_links_lead_out_then_what_they_lead_to_stays(tmp_path: Path) -> None:
    """A link is removed, and neither followed nor its target's mode changed."""
    outside, folder = tmp_path / "outside", tmp_path / "folder"
    outside.mkdir(mode=0o755)
    (outside / "kept").touch()
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    remove_all(folder)
    remove_all(folder)
    assert not folder.exists()
    assert oct(outside.stat().st_mode)[-3:] == "755"
    assert (outside / "kept").exists()
