"""A unit's checkout and its merge, with real git on real files; no model."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from matrix_coder.core.registry import load_workflow
from matrix_coder.core.units import UnitState
from matrix_coder.engine.checkout import open_checkout
from matrix_coder.engine.checks import Check
from matrix_coder.engine.context import RunContext
from matrix_coder.engine.merge import Came, load_came, merge, unit_rows
from matrix_coder.engine.plan import Limits
from matrix_coder.engine.store import Store
from matrix_coder.engine.units import wave
from matrix_coder.engine.workspace import Trees

INDEX = 3


@pytest.fixture
def run(tmp_path: Path, git_repo: Path) -> RunContext:
    """A run without checks on a small repository, with the row of one unit."""
    return make_run(tmp_path, git_repo)


def make_run(tmp_path: Path, repo: Path, *checks: str) -> RunContext:
    store = Store(tmp_path / "home")
    definition = load_workflow("ultrawork")
    fields = {
        "workflow": "ultrawork",
        "definition": definition.source,
        "goal": "g",
        "domain": "",
        "workspace": str(repo),
        "checks": json.dumps([asdict(Check(name="check", command=c)) for c in checks]),
        "limits": json.dumps(asdict(Limits())),
        "options": "{}",
        "environment": json.dumps({"PATH": os.environ["PATH"]}),
    }
    number = store.create_run(fields=fields, session_id="")
    store.open_step(number, INDEX, step="units/u", role="executor", iteration=1)
    return RunContext(store, number)


def work(run: RunContext, change: Callable[[Path], object]) -> tuple[Trees, Came]:
    """A unit that made this change in its checkout."""
    run.trees.record()
    trees = open_checkout(run, f"{INDEX}-u")
    base = trees.record()
    change(trees.workspace)
    tree = trees.record()
    came = Came(
        unit="u",
        state=UnitState.READY,
        base=base,
        tree=tree,
        checkout=str(trees.workspace),
        files=trees.changed(base, tree),
    )
    return trees, came


def picture(root: Path) -> dict[str, tuple[int, str | bytes]]:
    """Every file and link below, but git's own: its mode's executable bit and its bytes, or where it leads."""
    found: dict[str, tuple[int, str | bytes]] = {}
    for path in root.rglob("*"):
        name = str(path.relative_to(root))
        if name.split("/", maxsplit=1)[0] == ".git":
            continue
        if path.is_symlink():
            found[name] = (2, str(path.readlink()))
        elif path.is_file():
            found[name] = (path.stat().st_mode & 0o100, path.read_bytes())
    return found


def everything(root: Path) -> None:
    (root / "calc.py").rename(root / "moved.py")
    (root / "test_calc.py").chmod(0o755)
    (root / "binary").write_bytes(bytes(range(256)))
    (root / "crlf.txt").write_bytes(b"a\r\nb\n")
    (root / "link").symlink_to("moved.py")
    (root / "away").symlink_to("/etc/hostname")
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "er" / "x y.txt").write_text("x")
    Path(os.fsdecode(os.fsencode(root) + b"/no-utf8-\xff")).write_bytes(b"n")
    (root / ".gitattributes").write_text("* text eol=crlf filter=evil\n")


def test_merge_when_a_unit_changed_all_kinds_of_things_then_the_workspace_holds_just_them(run: RunContext) -> None:
    """Renames, modes, links, binaries, odd names and attributes arrive byte for byte; the person's own files stay."""
    repo = run.plan.workspace
    (repo / "mine.txt").write_bytes(b"uncommitted\r\n")
    trees, came = work(run, everything)
    (repo / "later.txt").write_text("made while the unit was at work")
    expected = picture(trees.workspace) | {"later.txt": (0, b"made while the unit was at work")}
    ended, _ = merge(run, INDEX, came, ())
    assert ended.state is UnitState.MERGED
    assert picture(repo) == expected
    assert not trees.workspace.exists()


def test_checkout_when_files_are_ignored_then_they_are_there_but_in_no_tree(run: RunContext) -> None:
    """Dependencies that git ignores can be used in the checkout; what is tracked although ignored is still seen."""
    repo = run.plan.workspace
    (repo / ".gitignore").write_text("__pycache__/\nvendor/\n*.cfg\n")
    (repo / "kept.cfg").write_text("1")
    subprocess.run(["git", "add", "--force", "kept.cfg"], cwd=repo, check=True)
    (repo / "vendor").mkdir()
    (repo / "vendor" / "lib.py").write_text("x")
    fresh = RunContext(run.store, run.number)
    fresh.trees = Trees(repo, run.directory / "again")

    def change(root: Path) -> None:
        assert (root / "vendor" / "lib.py").read_text() == "x"
        (root / "vendor" / "lib.py").write_text("changed")
        (root / "kept.cfg").write_text("2")

    _, came = work(fresh, change)
    assert came.files == ("kept.cfg",)
    assert merge(fresh, INDEX, came, ())[0].state is UnitState.MERGED
    assert ((repo / "kept.cfg").read_text(), (repo / "vendor" / "lib.py").read_text()) == ("2", "x")


def _edit(name: str, text: str = "theirs") -> Callable[[Path], object]:
    return lambda root: (root / name).write_text(text)


def _make(path: str) -> Callable[[Path], object]:
    def make(root: Path) -> None:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("made")

    return make


@pytest.mark.parametrize(
    ("unit", "person", "named"),
    [
        (_edit("calc.py", "u"), _edit("calc.py", "p"), "calc.py"),
        (_edit("calc.py", "u"), lambda r: (r / "calc.py").unlink(), "calc.py"),
        (lambda r: (r / "calc.py").unlink(), _edit("calc.py", "p"), "calc.py"),
        (_edit("calc.py", "u"), lambda r: (r / "calc.py").chmod(0o755), "calc.py"),
        (lambda r: (r / "calc.py").rename(r / "b.py"), _edit("calc.py", "p"), "calc.py"),
        (_make("new"), _edit("new", "p"), "new"),
        (_make("new/x"), _edit("new", "p"), "new/x"),
        (_make("new"), _make("new/x"), "new"),
        (_make("new/x"), lambda r: (r / "new").symlink_to("/tmp"), "new/x"),
        (_make("out.pyc.txt"), _make("out.pyc.txt"), "out.pyc.txt"),
    ],
)
def test_merge_when_the_workspace_moved_on_then_is_a_conflict_and_nothing_is_touched(
    run: RunContext, unit: Callable[[Path], object], person: Callable[[Path], object], named: str
) -> None:
    """Whatever a person did at the same place wins; the unit's checkout is kept with all it holds."""
    trees, came = work(run, unit)
    person(run.plan.workspace)
    before, kept = picture(run.plan.workspace), picture(trees.workspace)
    ended, _ = merge(run, INDEX, came, ())
    assert (ended.state, ended.why) == (
        UnitState.FAILED,
        f"conflict: {named} changed in the workspace since the unit began",
    )
    assert (picture(run.plan.workspace), picture(trees.workspace)) == (before, kept)
    row = unit_rows(run)[0]
    assert load_came(row) == ended
    assert "take it later with `matrix-coder merge r1 u`" in row["note"]


def test_merge_when_an_ignored_file_is_in_the_way_then_it_is_not_overwritten(run: RunContext) -> None:
    """A file that git ignores stands in no tree, and is the person's all the same."""
    repo = run.plan.workspace

    def change(root: Path) -> None:
        (root / ".gitignore").write_text("__pycache__/\n")
        (root / "local.env").write_text("the unit's")

    (repo / ".gitignore").write_text("__pycache__/\n*.env\n")
    _, came = work(run, change)
    (repo / "local.env").write_text("SECRET=mine")
    ended, _ = merge(run, INDEX, came, ())
    assert (ended.state, ended.why) == (
        UnitState.FAILED,
        "conflict: local.env changed in the workspace since the unit began",
    )
    assert (repo / "local.env").read_text() == "SECRET=mine"


def test_merge_when_it_was_cut_off_then_is_made_again_or_left_where_a_person_went_on(run: RunContext) -> None:
    """A half-made merge is put back first; a file that a person has changed since then is theirs."""
    repo = run.plan.workspace
    _, came = work(run, lambda r: (_edit("calc.py", "u")(r), _edit("test_calc.py", "u")(r)))
    half = replace(came, state=UnitState.MERGING, before=run.trees.record())
    (repo / "calc.py").write_text("u")
    assert merge(run, INDEX, half, ())[0].state is UnitState.MERGED
    assert [(repo / n).read_text() for n in ("calc.py", "test_calc.py")] == ["u", "u"]


def test_merge_when_it_was_cut_off_and_a_person_changed_a_file_then_fails_and_keeps_theirs(run: RunContext) -> None:
    """What the cut-off merge had brought goes back, the person's file stays."""
    repo = run.plan.workspace
    old = (repo / "calc.py").read_text()
    trees, came = work(run, lambda r: (_edit("calc.py", "u")(r), _edit("test_calc.py", "u")(r)))
    half = replace(came, state=UnitState.MERGING, before=run.trees.record())
    (repo / "calc.py").write_text("u")
    (repo / "test_calc.py").write_text("the person's")
    ended, _ = merge(run, INDEX, half, ())
    assert (ended.state, "test_calc.py" in ended.why) == (UnitState.FAILED, True)
    assert [(repo / n).read_text() for n in ("calc.py", "test_calc.py")] == [old, "the person's"]
    assert trees.workspace.is_dir()


def test_merge_when_its_check_turns_red_then_the_workspace_is_as_it_was(tmp_path: Path, git_repo: Path) -> None:
    """A check that was green and is red with the unit in it undoes the merge: new files, deletions, modes and all."""
    run = make_run(tmp_path, git_repo, "test ! -e binary")
    before = picture(git_repo)
    known = run.check("known", 0)
    _, came = work(run, everything)
    ended, after = merge(run, INDEX, came, known)
    assert (ended.state, after) == (UnitState.FAILED, known)
    assert ended.why == "red merge: with it in the workspace `test ! -e binary` (exit 1; it was exit 0)"
    assert picture(git_repo) == before


@pytest.mark.parametrize(
    ("config", "width"),
    [
        ("delegation: {max_concurrent_children: 5}\n", 5),
        ("delegation: {max_concurrent_children: '2'}\n", 2),
        ("delegation: {max_concurrent_children: 0}\n", 1),
        ("delegation: {max_concurrent_children: many}\n", 3),
        ("delegation: 7\n", 3),
        ("{", 3),
        ("", 3),
    ],
)
def test_wave_when_the_host_is_configured_then_is_what_it_says(tmp_path: Path, config: str, width: int) -> None:
    """As many units at once as the host lets children work."""
    (tmp_path / "config.yaml").write_text(config)
    assert wave(tmp_path) == width
