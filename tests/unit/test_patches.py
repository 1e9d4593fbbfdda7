"""Diffs taken apart, as the real git writes them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from conftest import git, make_repo
from matrix_coder.core.patches import FilePatch, parse


def differences(repo: Path) -> dict[str, FilePatch]:
    git(repo, "add", "-A")
    text = git(repo, "-c", "core.quotePath=false", "diff", "--cached", "--no-renames", "--no-color")
    return {f.path: f for f in parse(text)}


def test_parse_when_files_come_go_and_change_then_each_with_its_counts(tmp_path: Path) -> None:
    """Each file is there once, with what happened to it, its line counts and its hunks."""
    before = {"a.py": "one\ntwo\n", "gone.txt": "x\n", "run.sh": "echo\n", "with space.py": "1\n"}
    repo = make_repo(tmp_path / "repo", before)
    (repo / "a.py").write_text("one\nthree\nfour\n")
    (repo / "gone.txt").unlink()
    (repo / "run.sh").chmod(0o755)
    (repo / "new ü.py").write_text("1\n2\n")
    (repo / "empty").touch()
    (repo / "with space.py").write_text("2\n")
    found = differences(repo)
    assert {f.path: (f.change, f.added, f.removed) for f in found.values()} == {
        "a.py": ("changed", 2, 1),
        "gone.txt": ("deleted", 0, 1),
        "run.sh": ("mode", 0, 0),
        "new ü.py": ("added", 2, 0),
        "empty": ("added", 0, 0),
        "with space.py": ("changed", 1, 1),
    }
    assert found["a.py"].patch.startswith("@@ -1,2 +1,3 @@")
    assert found["gone.txt"].old_path == "gone.txt"


def test_parse_when_lines_or_names_look_like_a_diff_then_they_are_no_files(tmp_path: Path) -> None:
    """What a file holds opens no other file, and a name that git has to quote is read as it is."""
    repo = make_repo(tmp_path / "repo", {"a.md": "-- b/x\n", 'quo"te\t.py': "1\n"})
    (repo / "a.md").write_text("++ b/x\ndiff --git a/x b/x\n@@ -1 +1 @@\n")
    (repo / 'quo"te\t.py').write_text("2\n")
    found = differences(repo)
    assert set(found) == {"a.md", 'quo"te\t.py'}
    assert (found["a.md"].added, found["a.md"].removed) == (3, 1)


def test_parse_when_there_is_no_diff_then_no_files() -> None:
    """Nothing in, nothing out."""
    assert list(parse("")) == []


def test_diff_as_json_when_asked_for_then_no_web_framework_is_loaded() -> None:
    """`diff --json` pays for the dashboard's framework no more than any other command does."""
    code = (
        "import sys; from matrix_coder.cli.look import _diff_json as d; d('r1', 1, ''); print('fastapi' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
