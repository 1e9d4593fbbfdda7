"""A fault of ours costs a turn its persona, and nothing else."""

from __future__ import annotations

import logging
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from matrix_coder.hermes import marks
from matrix_coder.hermes.boundary import boundary, failures


def test_callback_when_it_raises_then_the_turn_is_forgotten_and_one_line_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The host gets None, the log one line with an id, the counter one more."""
    forgotten: list[object] = []

    def forget(**kwargs: object) -> None:
        forgotten.append(kwargs["turn_id"])

    @boundary(forget)
    def broken_callback(**kwargs: object) -> str | None:
        raise RuntimeError("first line\nsecond line")

    before = failures["broken_callback"]
    with caplog.at_level(logging.INFO, logger="matrix_coder"):
        assert broken_callback(turn_id="t1") is None
    assert forgotten == ["t1"]
    assert failures["broken_callback"] == before + 1
    (record,) = caplog.records
    assert "broken_callback failed [" in record.getMessage()
    assert "first line second line" in record.getMessage()


def test_key_when_many_processes_make_it_at_once_then_all_have_the_same(tmp_path: Path) -> None:
    """The first turn of several processes at once leaves one key."""
    code = "from matrix_coder.hermes import marks; print(marks.key().hex())"
    env = {"HERMES_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", code]
    running = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    keys = {process.communicate(timeout=60)[0] for process in running}
    assert len(keys) == 1
    path = tmp_path / marks.FOLDER / marks.NAME
    assert keys == {path.read_text()}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in path.parent.iterdir()] == [marks.NAME]


def test_key_when_its_file_is_damaged_then_a_new_one_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that holds no key is no reason to go without one."""
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    path = tmp_path / marks.FOLDER / marks.NAME
    path.parent.mkdir()
    path.write_text("not a key")
    key = marks.key()
    assert path.read_text() == key.hex() + "\n"


def test_key_when_the_home_can_not_be_written_then_one_of_this_process_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The fault is told in one line, and blocks are still sealed and taken out."""
    home = tmp_path / "a-file"
    home.write_text("no folder")
    monkeypatch.setenv("HERMES_HOME", str(home))
    with caplog.at_level(logging.WARNING, logger="matrix_coder"):
        key = marks.key()
    assert len(key) == marks.KEY_BYTES
    assert marks.key() == key
    assert len(caplog.records) == 1
    assert "expected a writable" in caplog.records[0].getMessage()
