"""What the doctor says of a home that is in order, of faults planted one at a time, and what it leaves behind."""

from __future__ import annotations

import json
import sqlite3
import tomllib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from matrix_coder.engine.client import INSTALL_ENGINE
from matrix_coder.engine.spawn import WorkerLock, trouble_file
from matrix_coder.engine.store import Store
from matrix_coder.hermes.commands import Commands
from matrix_coder.hermes.diagnosis import Diagnosis, Place, State, named
from matrix_coder.hermes.doctor import CHECKS
from matrix_coder.hermes.doctor_home import room
from matrix_coder.hermes.doctor_install import HOST_VERSION, python_of
from matrix_coder.hermes.page_link import link_page
from matrix_coder.testing import HermesHome

ROOT = Path(__file__).resolve().parents[2]
NOWHERE = "http://127.0.0.1:9/v1"
# Loads the host in a process of its own; the whole command does it once, below.
SLOW = "fork server"
# Where the kernel or the file systems have neither, that is a note.
KERNEL = {"landlock", "layers"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home in which nothing is amiss, and this process in it."""
    made = HermesHome(tmp_path / "root", NOWHERE)
    made.path.chmod(0o700)
    link_page(made.path)
    monkeypatch.setenv("HERMES_HOME", str(made.path))
    return made.path


def look(home: Path, directory: Path) -> dict[str, Diagnosis]:
    """What each check but the slow one says."""
    place = Place(home=home, directory=directory)
    return {name: named(name, check(place)) for name, check in CHECKS if name != SLOW}


def in_state(found: dict[str, Diagnosis], state: State) -> set[str]:
    return {name for name, d in found.items() if d.state is state} - KERNEL


def config(home: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """The configuration, changed. (JSON is YAML.)"""
    file = home / "config.yaml"
    data = json.loads(file.read_text())
    change(data)
    file.write_text(json.dumps(data))


def own_settings(home: Path, settings: dict[str, Any]) -> None:
    config(home, lambda c: c["plugins"].update(entries={"matrix_coder": {"settings": settings}}))


def queue_run(home: Path) -> Store:
    """A store with one run that nobody works on."""
    store = Store(home)
    row = {"workflow": "ralph", "definition": "", "goal": "g", "workspace": "/w", "checks": "[]", "limits": "{}"}
    store.create_run(fields=row, session_id="")
    return store


def board_that_is_none(home: Path) -> None:
    (home / "kanban.db").write_bytes(b"no database at all, but long enough to have a header of its own")


def newer_store(home: Path) -> None:
    with Store(home).transaction() as db:
        db.execute("update meta set value = '99' where key = 'schema_version'")


def broken_store(home: Path) -> None:
    Store(home).path.write_bytes(b"this is not a database" * 300)


def foreign_store(home: Path) -> None:
    with Store(home).transaction() as db:
        db.execute("update meta set value = 'mine' where key = 'schema_version'")


def team_words(home: Path) -> None:
    Store(home)
    (home / "matrix_coder" / "words.toml").write_text("nouns = [")


def trouble(home: Path) -> None:
    Store(home)
    trouble_file(home).write_text("expected JSON rows only in dbos.db; found 3 row(s) of another form; move it away\n")


def dead_link(home: Path) -> None:
    link = home / "plugins" / "matrix_coder"
    link.unlink()
    link.symlink_to(home / "gone")


PROBLEMS: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "settings are no YAML": ("settings", lambda h: (h / "config.yaml").write_text("a: [\n"), "mend the file"),
    "a key of the settings": ("settings", lambda h: own_settings(h, {"limits": {"caps": 3}}), "settings.limits.caps"),
    "words": ("words", team_words, "words.toml"),
    "plugin is not enabled": ("plugin", lambda h: config(h, lambda c: c.pop("plugins")), "hermes plugins enable"),
    "plugin is disabled": ("plugin", lambda h: config(h, lambda c: c["plugins"].update(disabled=["matrix_coder"])), ""),
    "no model": ("model", lambda h: config(h, lambda c: c.pop("model")), "hermes model"),
    "no such board": ("board", lambda h: own_settings(h, {"kanban": {"board": "gone"}}), "boards create gone"),
    "board is no name": ("board", lambda h: own_settings(h, {"kanban": {"board": "../x"}}), "kanban.board"),
    "board is no database": ("board", board_that_is_none, "kanban.db"),
    "link leads nowhere": ("page", dead_link, "dashboard-link"),
    "store is newer": ("run store", newer_store, "version 99"),
    "store is broken": ("run store", broken_store, "move it away"),
    "store is foreign": ("run store", foreign_store, "'mine'"),
    "worker had trouble": ("worker", trouble, "JSON rows only"),
    "a run has no worker": ("runs without a worker", queue_run, "matrix-coder watch r1"),
}


def test_checks_when_nothing_is_amiss_then_all_are_ok(home: Path, git_repo: Path) -> None:
    """In a home that is set up, nothing is a problem or a note but what the kernel can't do; no line has two."""
    found = look(home, git_repo)
    assert in_state(found, State.OK) == set(found) - KERNEL
    assert all(found[name].state is not State.PROBLEM for name in KERNEL)
    assert all("\n" not in d.line() and d.found for d in found.values())


@pytest.mark.parametrize("fault", PROBLEMS)
def test_checks_when_one_thing_is_wrong_then_that_one_is_a_problem(home: Path, git_repo: Path, fault: str) -> None:
    """Each fault is told once, where it is, with what was expected and what to do."""
    name, plant, words = PROBLEMS[fault]
    plant(home)
    found = look(home, git_repo)
    assert in_state(found, State.PROBLEM) == {name}
    told = found[name]
    assert told.expected and told.found and told.remedy
    assert words in told.line() and "\n" not in told.line()


NOTES: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "page is not linked": ("page", lambda h: (h / "plugins" / "matrix_coder").unlink(), "dashboard-link"),
    "home is open to others": ("home", lambda h: h.chmod(0o755), "chmod 700"),
}


@pytest.mark.parametrize("case", NOTES)
def test_checks_when_something_may_be_wanted_otherwise_then_a_note(home: Path, git_repo: Path, case: str) -> None:
    """What is no hindrance is a note, with what to do about it."""
    name, plant, words = NOTES[case]
    plant(home)
    found = look(home, git_repo)
    assert (in_state(found, State.PROBLEM), in_state(found, State.NOTE)) == (set(), {name})
    assert words in found[name].line()


def test_checks_when_there_is_no_home_then_said_and_none_is_made(tmp_path: Path, git_repo: Path) -> None:
    """A home that does not exist is told with the way out, and is still none afterwards."""
    found = look(tmp_path / "none", git_repo)
    assert in_state(found, State.PROBLEM) == {"home", "plugin", "model"}
    assert "hermes setup" in found["home"].remedy
    assert not (tmp_path / "none").exists()


def test_checks_when_the_directory_is_no_repository_then_a_note_says_so(home: Path, tmp_path: Path) -> None:
    """Elsewhere than in a repository there is nothing to lay a layer over."""
    told = look(home, tmp_path)["layers"]
    assert told.state is State.NOTE
    assert f"{tmp_path} is not a directory inside a git repository" in told.line()


def test_checks_when_the_repository_holds_the_home_then_a_problem(
    git_repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is never started in a tree that holds its own record."""
    made = HermesHome(git_repo, NOWHERE)
    monkeypatch.setenv("HERMES_HOME", str(made.path))
    assert look(made.path, git_repo)["layers"].state is State.PROBLEM


def test_checks_when_a_worker_holds_the_store_then_its_pid(home: Path, git_repo: Path) -> None:
    """A worker at work is named, its runs are nobody's problem, and an old trouble is none any more."""
    queue_run(home)
    trouble(home)
    lock = WorkerLock(home)
    assert lock.acquire()
    try:
        found = look(home, git_repo)
    finally:
        lock.release()
    assert in_state(found, State.PROBLEM) == set()
    assert "at work, pid " in found["worker"].found
    assert found["live runs"].found == "r1 queued"


@pytest.mark.parametrize(("name", "version"), [("host", "0.20.0"), ("engine", "3.3.0"), ("engine", "4.0")])
def test_checks_when_another_version_is_installed_then_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, version: str
) -> None:
    """The host and the engine are looked at as installed; another version is named with the one to install."""
    distribution = {"host": "hermes_agent", "engine": "dbos"}[name]
    info = tmp_path / f"{distribution}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    told = dict(CHECKS)[name](Place(home=tmp_path, directory=tmp_path))
    assert (told.state, told.found) == (State.PROBLEM, version)
    assert told.remedy.startswith("pip install")


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (None, "found none; install git"),
        ("#!/bin/sh\necho git version 2.20.1\n", "2.20.1"),
        ("#!/bin/sh\necho hello\n", "'hello'"),
        ("#!/no/such/interpreter\n", "can't be run"),
    ],
    ids=["none", "old", "another program", "broken"],
)
def test_git_when_it_can_not_be_used_then_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, words: str
) -> None:
    """The git on PATH is asked for its version."""
    if script:
        (tmp_path / "git").write_text(script)
        (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    told = dict(CHECKS)["git"](Place(home=tmp_path, directory=tmp_path))
    assert told.state is State.PROBLEM
    assert words in told.line()


def test_python_and_disk_when_out_of_bounds_then_said() -> None:
    """A Python that nobody has tried is a problem, less than a gigabyte a note."""
    assert [python_of(v).state for v in ((3, 10, 9), (3, 11, 0), (3, 13, 9), (3, 14, 0))] == [
        State.PROBLEM,
        State.OK,
        State.OK,
        State.PROBLEM,
    ]
    assert [room(free, Path("/")).state for free in (1 << 30, (1 << 30) - 1)] == [State.OK, State.NOTE]


def test_versions_when_the_package_is_installed_then_those_that_it_requires() -> None:
    """What the doctor expects is what pip installs."""
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert f"hermes-agent=={HOST_VERSION}" in required
    assert f'pip install "{next(r for r in required if r.startswith("dbos"))}"' == INSTALL_ENGINE


def snapshot(*folders: Path) -> dict[str, tuple[int, bytes]]:
    """Every path below the folders, with its mode and, of a file, what it holds."""
    return {
        str(p): (p.lstat().st_mode, p.read_bytes() if p.is_file() and not p.name.endswith("-shm") else b"")
        for folder in folders
        for p in sorted(folder.rglob("*"))
        if not p.is_symlink()
    }


@pytest.mark.parametrize("store", ["none", "idle", "in use"])
def test_look_when_it_is_over_then_nothing_is_left(home: Path, git_repo: Path, store: str) -> None:
    """No store is made, and no file beside one; a board is only read; the workspace is as it was."""
    look(home, git_repo)  # the host makes its own folders
    from hermes_cli import kanban_db

    kanban_db.connect(board="default").close()
    if store != "none":
        with queue_run(home).kept_open() if store == "in use" else closing(sqlite3.connect(":memory:")):
            before = snapshot(home, git_repo)
            look(home, git_repo)
            assert snapshot(home, git_repo) == before
        return
    before = snapshot(home, git_repo)
    found = look(home, git_repo)
    assert snapshot(home, git_repo) == before
    assert found["run store"].found.startswith("none yet")
    assert found["board"].found.endswith("0 cards of ours")


def test_doctor_when_asked_on_each_surface_then_the_same_and_an_exit_code(
    tmp_path: Path, git_repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`hermes matrix doctor`, `matrix-coder doctor --json` and `/matrix doctor` tell the same; 1 with a problem."""
    hermes = HermesHome(tmp_path / "root", NOWHERE)
    hermes.path.chmod(0o700)
    link_page(hermes.path)
    told = hermes.hermes("matrix", "doctor", cwd=git_repo)
    assert told.rc == 0, told.out + told.err
    assert told.err == ""
    *lines, total = told.out.splitlines()
    assert [line[9:].partition(":")[0] for line in lines] == [name for name, _ in CHECKS]
    assert total.startswith("0 problems, ")
    hermes.configure({"plugins": {"entries": {"matrix_coder": {"settings": {"kanban": {"board": "gone"}}}}}})
    ill = hermes.command("matrix-coder", "doctor", "--json", cwd=git_repo)
    data = json.loads(ill.out)
    assert (ill.rc, data["well"]) == (1, False)
    wrong = [c for c in data["checks"] if c["state"] == "problem"]
    assert [c["name"] for c in wrong] == ["board"]
    assert set(wrong[0]) == {"name", "state", "expected", "found", "remedy"}
    monkeypatch.setenv("HERMES_HOME", str(hermes.path))
    monkeypatch.setenv("TERMINAL_CWD", str(git_repo))
    said = Commands(hermes.path).run("/matrix doctor", "s1").splitlines()
    assert next(line for line in said if "problem" in line).startswith("problem  board: expected a Kanban board")
