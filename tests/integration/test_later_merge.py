"""A unit that was left out, merged after the run's end: what stands then, and after a second try; no model."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from matrix_coder.core.models import RunOutcome, StepReport, StepVerdict, Unit
from matrix_coder.core.serde import dump
from matrix_coder.core.units import UnitState
from matrix_coder.engine.aftermath import Aftermath, unit_came, without_merged
from matrix_coder.engine.merge import Came, keep, save

from .test_units_merge import INDEX, make_run, picture, work

UNIT = Unit(name="u", role="executor", goal="g", files=("calc.py", "new"))


class Ended:
    """A run that has ended with one unit left out, and whoever asks for that to be merged."""

    def __init__(self, tmp_path: Path, repo: Path, *checks: str, outcome: RunOutcome = RunOutcome.FAILED) -> None:
        self.run = make_run(tmp_path, repo, *checks)
        self.repo = repo
        self.store = self.run.store
        self.store.open_step(1, 1, step="plan", role="plan", iteration=1)
        planned = StepReport(verdict=StepVerdict.PASS, units=(UNIT,))
        self.store.update_step(1, 1, report=json.dumps(dump(planned)))
        self.start = self.run.trees.record()
        self.trees, came = work(self.run, lambda root: ((root / "calc.py").write_text("u"), (root / "new").touch()))
        self.came = keep(self.run, replace(came, state=UnitState.FAILED, why="said FAIL"))
        save(self.run, INDEX, self.came)
        fields: dict[str, Any] = {"reason": "units that failed: u (said FAIL)", "final_tree": self.start}
        self.store.end_run(1, outcome, **fields)

    def ask(self) -> Aftermath:
        """What the worker does next."""
        assert self.store.reopen(1, merge="u")
        return Aftermath(self.store, 1, lambda: False, request=self.store.merge_request(1))

    def again(self) -> dict[str, Any]:
        """The same once more, as after a crash."""
        return Aftermath(self.store, 1, lambda: False, request=self.store.merge_request(1)).merge()

    def end(self, outcome: RunOutcome = RunOutcome.FAILED) -> None:
        self.store.end_run(1, outcome, reason="as told", final_tree=self.start)

    def state(self) -> Came:
        came = unit_came(self.store, 1, "u")
        assert came is not None
        return came


@pytest.fixture
def ended(tmp_path: Path, git_repo: Path) -> Ended:
    return Ended(tmp_path, git_repo)


def test_merge_when_made_and_asked_about_again_then_says_the_same_and_does_nothing_more(ended: Ended) -> None:
    """A step that is repeated after its work was done returns what it returned."""
    said = ended.ask().merge()
    assert (ended.state().state, ended.state().branch) == (UnitState.MERGED, "")
    (ended.repo / "calc.py").write_text("the person went on")
    assert ended.again() == said
    assert (ended.repo / "calc.py").read_text() == "the person went on"
    assert said["reason"].startswith("merged after the end: u; no unit is left out now, and `matrix-coder resume r1`")
    assert said["outcome"] == "failed"


def test_merge_when_cut_off_and_the_checkout_is_red_by_then_then_what_was_applied_is_put_back(
    tmp_path: Path, git_repo: Path
) -> None:
    """Nothing of a half-made merge stays in the workspace, whatever the checkout has come to."""
    place = Ended(tmp_path, git_repo, "test ! -e new || test -s new")
    before = picture(git_repo)
    asked = place.ask()
    asked.store.update_run(1, baseline=json.dumps([dump(e) for e in asked.check("b", 0)]))
    half = replace(place.came, state=UnitState.MERGING, before=place.run.trees.record(), why="")
    save(place.run, INDEX, half)
    place.run.trees.restore(half.tree, ["calc.py", "new"])
    said = place.again()
    assert picture(git_repo) == before
    assert said["reason"].startswith("u was not merged: red in its own checkout: `test ! -e new || test -s new`")
    assert (said["final"], place.state().state, place.state().branch) == (
        place.start,
        UnitState.FAILED,
        "matrix/r1-u",
    )


def test_merge_when_it_breaks_off_half_way_then_says_so_and_the_next_puts_it_back(ended: Ended) -> None:
    """Where git fails over the workspace, the unit is not called failed, which would forget what was applied."""
    save(ended.run, INDEX, replace(ended.came, state=UnitState.MERGING, before=ended.start))
    (ended.repo / "calc.py").write_text("u")
    asked = ended.ask()
    foreign = ended.repo / ".git" / "index.lock"
    record = asked.trees.git_dir / "index"
    record.rename(foreign)
    record.mkdir()
    assert "is put back when you merge it again" in asked.merge()["reason"]
    assert ended.state().state is UnitState.MERGING
    record.rmdir()
    foreign.rename(record)
    ended.end()
    ended.ask().merge()
    assert (ended.state().state, (ended.repo / "calc.py").read_text()) == (UnitState.MERGED, "u")


def test_merge_when_cut_off_before_every_file_had_come_then_is_put_back_and_made(ended: Ended) -> None:
    """Files of a half-made merge that never came are no hindrance, whatever they were to be."""
    save(ended.run, INDEX, replace(ended.came, state=UnitState.MERGING, before=ended.start))
    (ended.repo / "calc.py").write_text("u")
    ended.ask().merge()
    assert (ended.state().state, (ended.repo / "new").exists()) == (UnitState.MERGED, True)


def test_merge_when_the_checkout_was_mended_since_then_takes_what_is_there_now(ended: Ended) -> None:
    """A person may go on in the checkout; files that are not the unit's own are refused all the same."""
    (ended.trees.workspace / "calc.py").write_text("mended")
    (ended.trees.workspace / "test_calc.py").write_text("not its own")
    refused = ended.ask().merge()["reason"]
    assert refused.startswith("u was not merged: it changed files that are not its own: test_calc.py; it had ended")
    ended.end()
    ended.trees.restore(ended.start, ["test_calc.py"])
    said = ended.ask().merge()
    assert (ended.repo / "calc.py").read_text() == "mended"
    assert said["reason"].endswith("; it had ended with: units that failed: u (said FAIL)")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda e: e.trees.restore(e.start, ["calc.py", "new"]), "its checkout holds no change"),
        (lambda e: e.trees.workspace.rename(e.repo.parent / "away"), "its checkout "),
        (lambda e: (e.repo / "calc.py").write_text("the person's"), "conflict: calc.py changed in the workspace"),
    ],
)
def test_merge_when_something_stands_against_it_then_the_run_ends_as_before_and_says_what(
    ended: Ended, change: Callable[[Ended], object], why: str
) -> None:
    """The outcome is the earlier one, the tree the run's own; the unit's row and the reason tell why."""
    asked = ended.ask()
    change(ended)
    said = asked.merge()
    assert (said["outcome"], said["final"]) == ("failed", ended.start)
    assert said["reason"].startswith(f"u was not merged: {why}")
    assert ended.state().why.startswith(why)


def test_merge_when_the_run_had_ended_as_verified_then_it_is_not_any_more(tmp_path: Path, git_repo: Path) -> None:
    """Nobody has judged the whole with the unit in it."""
    place = Ended(tmp_path, git_repo, outcome=RunOutcome.VERIFIED)
    assert place.ask().merge()["outcome"] == "unverified"


def test_cancel_when_said_before_the_merge_was_asked_for_then_does_not_stop_it(ended: Ended) -> None:
    """Only what is said to the merge itself stops it; then the unit is left out with those words."""
    ended.store.control(1, "cancel")
    asked = ended.ask()
    ended.store.control(1, "cancel")
    assert asked.merge()["reason"].startswith("u was not merged: cancelled by a person; it had ended with: ")
    ended.store.apply_controls(1, "merge", "cancel")
    ended.end()
    assert not ended.store.cancelled(1)
    ended.ask().merge()
    assert ended.state().state is UnitState.MERGED


def test_resume_when_a_unit_was_merged_since_then_its_step_does_not_say_that_it_failed(ended: Ended) -> None:
    """What a run goes on from counts the units that were merged later; those that were not stay failed."""
    result: dict[str, Any] = {"failed_units": ["u (said FAIL)", "v (red)"], "last_number": 4}
    assert without_merged(ended.run, result) == result
    ended.ask().merge()
    assert without_merged(ended.run, result)["failed_units"] == ["v (red)"]
