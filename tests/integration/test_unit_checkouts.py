"""What a unit's checkout is shut off from, what stands on its branch, and what is kept of it; no model."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from conftest import git, make_repo
from matrix_coder.core.errors import InputError, WorkspaceBusy
from matrix_coder.core.models import RunOutcome, Unit
from matrix_coder.core.units import UnitState
from matrix_coder.engine import kept
from matrix_coder.engine.aftermath import grafted
from matrix_coder.engine.branch import commit
from matrix_coder.engine.checkout import open_checkout
from matrix_coder.engine.client import Client
from matrix_coder.engine.confine import confine
from matrix_coder.engine.context import RunContext
from matrix_coder.engine.merge import Came, keep, load_came, merge, save, unit_rows
from matrix_coder.engine.units import examine_unit
from matrix_coder.hermes.commands import Commands

from .test_units_merge import INDEX, make_run, picture, work

UNIT = Unit(name="u", role="executor", goal="g", files=("calc.py",))


@pytest.fixture
def run(tmp_path: Path, git_repo: Path) -> RunContext:
    """A run without checks on a small repository, with the row of one unit."""
    return make_run(tmp_path, git_repo)


def fetched(run: RunContext, came: Came) -> str:
    """The unit's commit, in the person's own repository."""
    git(run.plan.workspace, "fetch", "-q", came.checkout, came.branch)
    return git(run.plan.workspace, "rev-parse", "FETCH_HEAD").strip()


def _edit(text: str) -> Callable[[Path], object]:
    return lambda root: (root / "calc.py").write_text(text)


# -- where a check in a checkout may not write


def test_check_when_it_runs_in_a_checkout_then_can_write_there_and_nowhere_that_is_the_persons_or_ours(
    tmp_path: Path, git_repo: Path
) -> None:
    """No way leads from a unit's check into the workspace, another unit's checkout, the records or the run store."""
    home = tmp_path / "home" / "matrix_coder"
    other = home / "units" / "r1" / "4-other"
    targets = [
        git_repo / "calc.py",
        git_repo / "fresh.py",
        other / "calc.py",
        home / "units" / "r1" / "_records" / "3-u" / "fresh",
        home / "runs.db",
        home / "runs" / "r1" / "fresh",
    ]
    tries = "; ".join(f'echo gamed >> {t}; python3 -c \'open("{t}", "a").write("gamed")\'' for t in targets)
    command = f"{tries}; rm -f {git_repo}/test_calc.py; mv {other}/calc.py {other}/gone; echo own > made; mktemp"
    run = make_run(tmp_path, git_repo, command)
    run.trees.record()
    checkout, _ = open_checkout(run, "3-u"), open_checkout(run, "4-other")
    checkout.record()
    before = picture(git_repo), picture(other)
    (evidence,) = run.check("unit", INDEX, trees=checkout)
    assert (evidence.exit_code, (checkout.workspace / "made").read_text()) == (0, "own\n")
    assert (picture(git_repo), picture(other)) == before
    assert not targets[3].exists() and not targets[5].exists()
    assert run.store.run_row(run.number)["id"] == run.number


def test_check_when_it_is_pytest_in_a_checkout_then_tells_its_cases(tmp_path: Path, git_repo: Path) -> None:
    """What a check needs to be heard, its report and its temporary files, is open to it."""
    run = make_run(tmp_path, git_repo, "pytest -q")
    run.trees.record()
    checkout = open_checkout(run, "3-u")
    (git_repo / "test_tmp.py").write_text("")
    (checkout.workspace / "test_tmp.py").write_text("def test_tmp(tmp_path):\n    (tmp_path / 'f').write_text('x')\n")
    (evidence,) = run.check("unit", INDEX, trees=checkout)
    assert evidence.cases == {
        "test_calc::test_add": "failed",
        "test_calc::test_double": "passed",
        "test_tmp::test_tmp": "passed",
    }


def test_confine_when_places_lie_apart_then_all_beside_them_stays_open(tmp_path: Path) -> None:
    """Only what leads to a place that is shut is left out, at every level."""
    for name in ("a/ws/src", "a/docs", "b/state/x", "b/cache", "c"):
        (tmp_path / name).mkdir(parents=True)
    found = confine([tmp_path / "a/ws", tmp_path / "b/state"], own=[tmp_path / "b/state/x"])
    assert found.protect == tmp_path
    assert sorted(str(p.relative_to(tmp_path)) for p in found.keep) == ["a/docs", "b/cache", "b/state/x", "c"]
    inside = confine([tmp_path / "b/state/x", tmp_path / "b/state"], own=[tmp_path / "c"])
    assert (inside.protect, inside.keep) == (tmp_path / "b/state", (tmp_path / "c",))


# -- green runs in a row


def _flaky(counter: Path, bad: int) -> str:
    """Fails in its run number `bad`; counts in a place that a check in a checkout may write to."""
    return f'echo x >> {counter}/runs; [ "$(wc -l < {counter}/runs)" != {bad} ]'


def _in_a_row(run: RunContext, runs: int) -> None:
    with run.store.transaction() as db:
        db.execute("update runs set options = ?", (json.dumps({"check_runs": runs}),))
    run.plan = replace(run.plan, options=replace(run.plan.options, check_runs=runs))


def test_unit_when_green_runs_in_a_row_are_asked_for_then_one_red_one_keeps_it_out(
    tmp_path: Path, git_repo: Path
) -> None:
    """A unit's checks have to be green as often as the run says."""
    (counter := tmp_path / "counter").mkdir()
    run = make_run(tmp_path, git_repo, _flaky(counter, 3))
    green = run.check("green", 0)
    run.store.update_run(run.number, baseline=json.dumps([asdict(e) for e in green]))
    _in_a_row(run, 2)
    trees, came = work(run, _edit("u"))
    why, evidence = examine_unit(run, INDEX, UNIT, trees, came.files)
    assert why.startswith("red in its own checkout"), why
    assert evidence[0].environment.endswith("run 2 of 2")


def test_merge_when_green_runs_in_a_row_are_asked_for_then_one_red_one_takes_it_back(
    tmp_path: Path, git_repo: Path
) -> None:
    """So have the checks of a merge."""
    (counter := tmp_path / "counter").mkdir()
    run = make_run(tmp_path, git_repo, _flaky(counter, 3))
    known = run.check("known", 0)
    _in_a_row(run, 2)
    before = picture(git_repo)
    _, came = work(run, _edit("u"))
    assert merge(run, INDEX, came, known)[0].state is UnitState.FAILED
    assert "run 2 of 2" in unit_rows(run)[0]["evidence"]
    assert picture(git_repo) == before


# -- its branch


def test_branch_when_a_unit_is_left_out_then_plain_git_takes_just_what_it_changed(run: RunContext) -> None:
    """The last commit is the unit's change, on the person's uncommitted work, on HEAD; hooks of the copy do not run."""
    repo = run.plan.workspace
    head = git(repo, "rev-parse", "HEAD").strip()
    (repo / "mine.txt").write_text("uncommitted")
    told = repo.parent / "told"
    for hook in ("reference-transaction", "post-commit", "pre-commit"):
        file = repo / ".git" / "hooks" / hook
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\necho {hook} >> {told}\n")
        file.chmod(0o755)
    _, came = work(run, lambda root: ((root / "calc.py").unlink(), (root / "new file").write_text("u")))
    (repo / "calc.py").write_text("the person went on")
    ended, _ = merge(run, INDEX, came, ())
    for hook in (repo / ".git" / "hooks").iterdir():
        hook.unlink()
    assert not told.exists()
    assert ended.branch == "matrix/r1-u"
    last = fetched(run, ended)
    assert git(repo, "diff", "--name-status", f"{last}~", last) == "D\tcalc.py\nA\tnew file\n"
    assert git(repo, "diff", "--name-status", head, f"{last}~") == "A\tmine.txt\n"
    assert git(repo, "rev-parse", f"{last}~2").strip() == head
    assert (git(repo, "branch", "--list"), git(repo, "rev-parse", "HEAD").strip()) == ("* main\n", head)
    assert f"kept in {ended.checkout}, there on branch matrix/r1-u, take it" in unit_rows(run)[0]["note"]
    git(Path(ended.checkout), "fsck", "--strict")


def test_branch_when_the_work_goes_on_then_it_is_moved(run: RunContext) -> None:
    """A branch shows what the checkout held when it was looked at last."""
    trees, came = work(run, _edit("first"))
    keep(run, came)
    (trees.workspace / "calc.py").write_text("second")
    again = keep(run, replace(came, tree=trees.record()))
    assert git(run.plan.workspace, "show", f"{fetched(run, again)}:calc.py") == "second"


@pytest.mark.parametrize("way", ["refs/heads/matrix", "refs/heads", "objects/pack", ""])
def test_branch_when_the_unit_put_a_link_in_its_way_then_nothing_is_written_elsewhere(
    run: RunContext, tmp_path: Path, way: str
) -> None:
    """A link from the checkout's repository into the person's own is not followed: no branch, and that is told."""
    theirs = run.plan.workspace / ".git"
    trees, came = work(run, _edit("u"))
    place = trees.workspace / ".git" / way
    if place.is_symlink() or place.exists():
        place.rename(tmp_path / "aside")
    place.symlink_to(theirs / way if way != "refs/heads/matrix" else theirs / "refs" / "heads")
    before = {p: p.stat().st_mtime_ns for p in theirs.rglob("*") if p.is_file()}
    assert keep(run, came).branch == ""
    assert {p: p.stat().st_mtime_ns for p in theirs.rglob("*") if p.is_file()} == before
    assert [e["kind"] for e in run.store.events(run.number)][-1] == "no branch"


def test_branch_when_the_workspace_is_a_linked_worktree_then_its_checkout_gets_a_repository(
    tmp_path: Path, git_repo: Path
) -> None:
    """The copy has no repository of its own then: one is made, and the fetch works all the same."""
    git(git_repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    run = make_run(tmp_path, tmp_path / "linked")
    _, came = work(run, _edit("u"))
    last = fetched(run, keep(run, came))
    assert git(git_repo, "diff", "--name-only", f"{last}~", last) == "calc.py\n"


def test_branch_when_there_is_no_commit_yet_then_it_begins_with_the_workspace(tmp_path: Path) -> None:
    """A repository without a commit, or with a HEAD that leads nowhere, is none to stand on."""
    repo = make_repo(tmp_path / "repo", {"calc.py": "a"})
    git(repo, "checkout", "-q", "--orphan", "fresh")
    run = make_run(tmp_path, repo)
    trees, came = work(run, _edit("u"))
    last = fetched(run, keep(run, came))
    assert git(repo, "rev-list", "--count", last) == "2\n"
    assert commit(trees, "matrix/r1-u", base=came.base, tree=came.tree, message="again")


def test_branch_when_the_repository_is_shallow_then_can_be_fetched(tmp_path: Path, git_repo: Path) -> None:
    """History that is not there is not needed."""
    git(git_repo, "commit", "-q", "--allow-empty", "-m", "second")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{git_repo}", "shallow")
    run = make_run(tmp_path, tmp_path / "shallow")
    _, came = work(run, _edit("u"))
    last = fetched(run, keep(run, came))
    assert git(tmp_path / "shallow", "diff", "--name-only", f"{last}~", last) == "calc.py\n"


# -- who may have it merged


@pytest.mark.parametrize("way", [".", "sub", ".."])
def test_merge_when_a_run_is_live_where_it_would_work_then_is_refused_at_once(
    run: RunContext, tmp_path: Path, way: str
) -> None:
    """Nothing is queued while another run holds the workspace, a directory in it, or one that holds it."""
    _, came = work(run, _edit("u"))
    save(run, INDEX, replace(came, state=UnitState.FAILED, why="said FAIL"))
    client = Client(tmp_path / "home")
    with pytest.raises(InputError, match="a run that has ended; found r1, which is queued"):
        client.merge("r1", "u")
    run.store.end_run(run.number, RunOutcome.FAILED, reason="r")
    other = make_run(tmp_path, (run.plan.workspace / way).resolve())
    with pytest.raises(WorkspaceBusy, match=f"r{other.number} at work there|another run at work there"):
        client.merge("r1", "u")
    with pytest.raises(WorkspaceBusy):
        run.store.reopen(run.number, merge="u")
    assert run.store.controls(run.number, "merge") == []
    assert run.store.run_row(run.number)["outcome"] == "failed"


# -- the run's own tree


def test_graft_when_a_person_went_on_after_the_end_then_holds_only_what_the_unit_brought(run: RunContext) -> None:
    """A later merge makes the unit's files the run's, and nothing else that the workspace holds by then."""
    repo = run.plan.workspace
    end = run.trees.record()

    def change(root: Path) -> None:
        (root / "calc.py").unlink()
        (root / "deep").mkdir()
        (root / "deep" / "link").symlink_to("x")
        Path(os.fsdecode(os.fsencode(root) + b"/no-utf8-\xff")).write_text("n")

    _, came = work(run, change)
    (repo / "mine.txt").write_text("made since")
    assert merge(run, INDEX, came, ())[0].state is UnitState.MERGED
    tree = grafted(run.trees, end, came)
    assert run.trees.changed(end, tree) == ("calc.py", "deep/link", "no-utf8-\\xff")
    assert run.trees.changed(tree, run.trees.record()) == ("mine.txt",)


# -- what is kept


def test_kept_when_a_run_has_ended_then_is_listed_and_dropped_only_by_name(run: RunContext) -> None:
    """A unit's checkout is there until somebody drops it, its record with it; then the row says so."""
    _, came = work(run, _edit("u"))
    save(run, INDEX, keep(run, replace(came, state=UnitState.FAILED, why="said FAIL")))
    with pytest.raises(InputError, match="a run that has ended"):
        kept.drop(run.store, run.number, "u")
    run.store.end_run(run.number, RunOutcome.FAILED, reason="r")
    (one,) = kept.kept(run.store, run.number)
    assert (one.name, one.state, one.path, one.branch) == ("u", "failed", came.checkout, "matrix/r1-u")
    assert one.command == "matrix-coder merge r1 u"
    assert one.size > len("u") and one.since > 0
    for wrong in ("v", "", "../u", "_records"):
        with pytest.raises(InputError, match=r"a checkout that r1 keeps \(u\)"):
            kept.drop(run.store, run.number, wrong)
    assert Path(came.checkout).is_dir()
    chat = Commands(run.store.home)
    assert chat.run("/matrix drop r1", "").startswith("expected a checkout that r1 keeps (u); found no unit named")
    assert f"{came.checkout}, branch matrix/r1-u; take it with" in chat.run("/matrix checkouts r1", "")
    assert kept.drop(run.store, run.number, "u") == one
    assert chat.run("/matrix checkouts r1", "") == "r1 keeps no checkout."
    assert not Path(came.checkout).parent.exists()
    row = unit_rows(run)[0]
    assert row["note"] == "failed: said FAIL; its checkout was dropped (calc.py)"
    left = load_came(row)
    assert left is not None and (left.checkout, left.branch) == ("", "")
    assert kept.kept(run.store, run.number) == []


def test_kept_when_a_unit_was_begun_again_then_the_older_checkout_has_its_own_name(run: RunContext) -> None:
    """What a unit that was cut off had made is still there, and can be told from the newer one."""
    work(run, _edit("older"))
    run.store.open_step(run.number, 5, step="units/u", role="executor", iteration=1)
    open_checkout(run, "5-u")
    run.store.end_run(run.number, RunOutcome.CANCELLED, reason="r")
    assert [(k.name, k.state, k.command) for k in kept.kept(run.store, run.number)] == [
        ("3-u", "not finished", ""),
        ("u", "not finished", ""),
    ]
    assert kept.drop(run.store, run.number, "3-u").path.endswith("3-u")
    assert [k.name for k in kept.kept(run.store, run.number)] == ["u"]


def test_kept_when_a_run_is_isolated_then_its_own_checkout_is_listed_and_dropped_without_a_name(
    tmp_path: Path, git_repo: Path
) -> None:
    """The checkout in which an isolated run worked stays after `take`, until it is dropped."""
    place = tmp_path / "home" / "matrix_coder" / "isolated" / "repo-1"
    place.parent.mkdir(parents=True)
    subprocess.run(["cp", "-a", str(git_repo), str(place)], check=True)
    run = make_run(tmp_path, place)
    with run.store.transaction() as db:
        db.execute("update runs set options = ?", (json.dumps({"isolate": True, "origin": str(git_repo)}),))
    run.store.end_run(run.number, RunOutcome.VERIFIED, reason="r")
    (one,) = kept.kept(run.store, run.number)
    assert (one.name, one.path, one.command) == ("", str(place), "matrix-coder take r1")
    kept.drop(run.store, run.number)
    assert (place.exists(), git_repo.is_dir()) == (False, True)
    with run.store.transaction() as db:
        db.execute("update runs set final_tree = 'none'")
    with pytest.raises(InputError, match=r"the checkout of r1; found none: .*repo-1 is gone"):
        Client(tmp_path / "home").take("r1")
