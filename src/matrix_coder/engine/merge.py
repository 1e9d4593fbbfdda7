"""What a unit brought, taken into the workspace: one at a time, only over what it started from, only while green.

A merge that can't be made leaves the workspace as it was and the unit's checkout where it is, with what the unit
brought on a branch of the checkout's own repository.
"""

from __future__ import annotations

import json
import os
import sqlite3
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..core.errors import MatrixError
from ..core.models import Evidence, StepStatus
from ..core.serde import dump, load_evidence
from ..core.units import UnitState, broken
from . import views
from .branch import commit
from .checkout import remove_checkout, reopen_checkout
from .context import RunContext, brief
from .procs import end_everything
from .store import Store
from .workspace import Trees

_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """What a unit came to. `base` and `tree` are its checkout's trees, `before` the workspace's when it was merged.

    `branch` holds what it brought, in the repository of its checkout.
    """

    unit: str
    state: UnitState
    why: str = ""
    base: str = ""
    tree: str = ""
    before: str = ""
    checkout: str = ""
    branch: str = ""
    files: tuple[str, ...] = ()

    @property
    def ended(self) -> bool:
        return self.state not in (UnitState.READY, UnitState.MERGING)

    def account(self, run_id: str) -> str:
        """The unit in one line: its state, why, and how it can be taken later."""
        line = f"{self.state}" + (f": {self.why}" if self.why else "")
        if self.files:
            line += f" ({some(self.files)})"
        if self.state is UnitState.FAILED and self.checkout:
            line += f"; {self.kept()}"
            if self.files:
                line += f", take it later with `matrix-coder merge {run_id} {self.unit}`"
        return line

    def kept(self) -> str:
        """Where what it brought is kept."""
        return f"kept in {self.checkout}" + (f", there on branch {self.branch}" if self.branch else "")


def load_came(row: sqlite3.Row) -> Came | None:
    """What the unit of this row came to, as far as it is known."""
    if not row["result"]:
        return None
    data: dict[str, Any] = json.loads(row["result"])
    files = tuple(str(f) for f in data.pop("files"))
    return Came(state=UnitState(data.pop("state")), files=files, **data)


def save(run: RunContext, index: int, came: Came, **columns: object) -> None:
    """Keep what a unit came to in its row; told once it has ended."""
    fields = dict(columns)
    if came.ended:
        failed = came.state is UnitState.FAILED
        fields |= {"status": StepStatus.FAILED if failed else StepStatus.DONE, "ended_at": run.store.clock()}
        fields["note"] = came.account(run.plan.run_id)
    run.store.update_step(run.number, index, result=json.dumps(asdict(came)), **fields)
    run.event("unit", step=index, unit=came.unit, state=came.state.value, why=came.why, files=list(came.files[:50]))


def remember(run: RunContext, index: int, came: Came) -> None:
    """Keep it without a word to anybody."""
    run.store.update_step(run.number, index, result=json.dumps(asdict(came)))


def last_row(store: Store, number: int, unit: str) -> sqlite3.Row | None:
    """The last row of a unit."""
    rows = [r for r in store.step_rows(number) if "/" in r["step"]]
    return next((r for r in reversed(rows) if r["step"].partition("/")[2] == unit), None)


def unit_rows(run: RunContext) -> list[sqlite3.Row]:
    """The rows of a run's units, in order."""
    sql = "select * from steps where run_id = ? and step like '%/%' order by number"
    return run.store.read(sql, run.number)


def keep(run: RunContext, came: Came) -> Came:
    """The same, with what the unit brought on a branch in its checkout's repository, where one can be made there."""
    if not came.checkout or not came.files:
        return came
    directory = Path(came.checkout)
    message = f"{came.unit}, a unit of Matrix Coder run {run.plan.run_id}"
    branch = f"matrix/{run.plan.run_id}-{came.unit}"
    try:
        commit(reopen_checkout(run, directory), branch, base=came.base, tree=came.tree, message=message)
    except (MatrixError, OSError) as error:
        run.event("no branch", unit=came.unit, why=str(error))
        return replace(came, branch="")
    return replace(came, branch=branch)


def take_back(run: RunContext, index: int, came: Came) -> Came:
    """A unit whose merge was cut off, with what that had applied put back; failed where a person has gone on there."""
    end_everything(run.cookie(index))
    left = _put_back(run.trees, came, run.trees.changed_raw(came.base, came.tree))
    if left:
        why = f"conflict: {some(left)} changed in the workspace while it was being merged"
        return _end(run, index, replace(came, state=UnitState.FAILED, why=why))
    ready = replace(came, state=UnitState.READY, before="")
    remember(run, index, ready)
    return ready


def merge(run: RunContext, index: int, came: Came, known: tuple[Evidence, ...]) -> tuple[Came, tuple[Evidence, ...]]:
    """The unit merged or failed, and what the checks say about the workspace then; `known` is what they said before.

    Repeated after a crash it first puts back what an earlier try applied.
    """
    trees = run.trees
    paths = trees.changed_raw(came.base, came.tree)
    if came.state is UnitState.MERGING:
        came = take_back(run, index, came)
        if came.ended:
            return came, known
    now = trees.record()
    hit = conflicts(trees, came, now)
    if hit:
        why = f"conflict: {some(hit)} changed in the workspace since the unit began"
        return _end(run, index, replace(came, state=UnitState.FAILED, why=why)), known
    came = replace(came, state=UnitState.MERGING, before=now)
    save(run, index, came)
    trees.restore(came.tree, paths)
    after = trees.record()
    evidence = run.check(f"merge-{index}-{came.unit}", index, runs=run.plan.options.check_runs)
    if run.stop_words():
        # A check that was stopped half-way says nothing: neither merged nor failed.
        _put_back(trees, came, paths)
        came = replace(came, state=UnitState.READY, before="")
        save(run, index, came)
        return came, known
    run.event("check", step=index, checks=[brief(e) for e in evidence])
    bad = broken(known, evidence)
    if bad:
        left = _put_back(trees, came, paths)
        why = f"red merge: with it in the workspace {'; '.join(bad)}"
        why += f"; {some(left)} changed meanwhile and could not be put back" if left else ""
        return _end(run, index, replace(came, state=UnitState.FAILED, why=why), evidence), known
    came = _end(run, index, replace(came, state=UnitState.MERGED, why="", branch=""), evidence, before=now, after=after)
    return came, evidence


def _end(
    run: RunContext, index: int, came: Came, evidence: tuple[Evidence, ...] = (), *, before: str = "", after: str = ""
) -> Came:
    columns: dict[str, object] = {"tree_before": before, "tree_after": after} if after else {}
    if evidence:
        columns["evidence"] = json.dumps([dump(e) for e in evidence], ensure_ascii=False)
    if came.state is UnitState.FAILED:
        came = keep(run, came)
    save(run, index, came, **columns)
    if came.state is UnitState.MERGED:
        remove_checkout(run, Path(came.checkout))
    return came


def _put_back(trees: Trees, came: Came, paths: list[str]) -> list[str]:
    """Make the unit's files what they were before its merge; those that a person has changed since stay, named."""
    now = trees.record()
    # Of a merge that was cut off some files may never have come: there is nothing about them to put back.
    differ = set(trees.changed_raw(came.before, now)) & set(paths)
    foreign = differ & set(trees.changed_raw(came.tree, now))
    trees.restore(came.before, sorted(differ - foreign))
    return sorted(foreign)


def conflicts(trees: Trees, came: Came, now: str) -> list[str]:
    """The paths of a unit where the workspace, whose tree is `now`, does not hold what the unit started from."""
    mine = trees.changed_raw(came.base, came.tree)
    theirs = trees.changed_raw(came.base, now)
    changed, above = set(theirs), {str(p) for t in theirs for p in Path(t).parents}
    hit = {p for p in mine if p in changed or p in above or not changed.isdisjoint(map(str, Path(p).parents))}
    kept = trees.changed_raw(came.tree, now)
    # What git ignores stands in no tree; a file that the unit made may not take its place.
    hit |= {p for p in mine if p in kept and p not in changed and _appears(trees, came, p)}
    return sorted(hit)


def _appears(trees: Trees, came: Came, path: str) -> bool:
    """Whether the workspace has something where the unit's base has nothing."""
    if not os.path.lexists(trees.workspace / path):
        return False
    listed = trees.ask("--literal-pathspecs", "ls-tree", "-z", "--name-only", came.base, "--", path)
    return not listed


def reference(run: RunContext, index: int) -> tuple[Evidence, ...]:
    """What the checks say about the workspace as it is: said before about this very tree, else asked now."""
    if not run.plan.checks:
        return ()
    now = run.trees.record()
    said = [views.baseline(run.store, run.number)]
    said += [load_evidence(json.loads(r["evidence"])) for r in unit_rows(run)]
    for evidence in reversed(said):
        if evidence and all(e.tree == now for e in evidence):
            return evidence
    return run.check(f"before-merge-{index}", index, runs=run.plan.options.check_runs)


def some(paths: tuple[str, ...] | list[str]) -> str:
    """The first few paths, and how many more."""
    shown = [p.encode("utf-8", "backslashreplace").decode() for p in paths[:_SHOWN]]
    return ", ".join(shown) + (f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else "")
