"""What is still done with a run's units once it has ended: one that was left out is merged, by the worker.

The run is queued again for that alone, so that it holds its workspace meanwhile, and then ends as it had ended. A merge
never makes it `verified`: nobody has looked at the whole. `resume` does that, once nothing is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core.errors import InputError, MatrixError
from ..core.models import Evidence, RunOutcome
from ..core.render import one_line
from ..core.serde import Json
from ..core.units import UnitState
from . import views
from .checkout import reopen_checkout
from .context import RunContext
from .merge import Came, keep, last_row, load_came, merge, reference, remember, save, take_back, unit_rows
from .procs import end_everything
from .store import Store
from .unit_plan import planned
from .units import examine_unit
from .workspace import Trees

_NOTHING = "0" * 40
_TAKEN = (UnitState.MERGED, UnitState.DONE, UnitState.EMPTY)


def require_mergeable(store: Store, number: int, name: str) -> None:
    """Raises InputError with what can be seen at once to stand against merging this unit of an ended run."""
    run_id = views.run_id_of(number)
    came = unit_came(store, number, name)
    if came is None:
        known = {r["step"].partition("/")[2] for r in store.step_rows(number) if "/" in r["step"]}
        if not known:
            raise InputError("a run with units", f"{run_id}, which has none", "only ultrawork runs have some")
        told = ", ".join(sorted(known))
        raise InputError(f"a unit of {run_id} that was worked on ({told})", name, "name one of them")
    if came.state in _TAKEN:
        raise InputError("a unit that is not merged", f"{name}, which is {came.state}", "there is nothing left to take")
    if not came.base or not came.checkout or not Path(came.checkout).is_dir():
        found = f"none: {came.checkout} is gone" if came.checkout else f"none is kept: {came.why or came.state}"
        raise InputError(f"the checkout of {name}", found, "there is nothing to merge; start a new run for it")


def unit_came(store: Store, number: int, name: str) -> Came | None:
    """What a unit of the run came to, as far as it is known."""
    row = last_row(store, number, name)
    return load_came(row) if row is not None else None


def without_merged(run: RunContext, result: dict[str, Any]) -> dict[str, Json]:
    """A step's result as JSON; the units that failed in it and were merged since are left out of it."""
    failed = [str(u) for u in result.get("failed_units") or ()]
    if not failed:
        return result
    merged = {r["step"].partition("/")[2] for r in unit_rows(run) if _state(r) is UnitState.MERGED}
    return {**result, "failed_units": [u for u in failed if u.partition(" (")[0] not in merged]}


def _state(row: Any) -> UnitState | None:
    came = load_came(row)
    return came.state if came else None


class Aftermath(RunContext):
    """A run that has ended and merges one of its units: stopped only by what was said since that was asked for."""

    def __init__(self, store: Store, number: int, draining: Callable[[], bool], *, request: dict[str, Any]) -> None:
        super().__init__(store, number, draining)
        self.request = request
        self.unit = str(request["merge"])

    def _cancelled(self) -> bool:
        return self.store.cancelled(self.number, since=int(self.request["request"]))

    def check(self, label: str, step: int, *, runs: int = 1, trees: Trees | None = None) -> tuple[Evidence, ...]:
        """The same with the whole time limit of a check, however much of the budget was used."""
        limits = replace(self.plan.limits, budget_s=self.used().seconds + self.plan.limits.check_s)
        self.plan = replace(self.plan, limits=limits)
        return super().check(label, step, runs=runs, trees=trees)

    def merge(self) -> dict[str, Json]:
        """How the run ends now, as JSON: outcome, reason, final tree, evidence. Can be repeated after a crash."""
        row = last_row(self.store, self.number, self.unit)
        came = load_came(row) if row is not None else None
        if row is None or came is None:
            raise InputError(f"a unit of {self.plan.run_id} that was worked on", self.unit, "name another")
        if came.state is not UnitState.MERGED:
            end_everything(self.cookie(row["number"]))
            came = self._try(row["number"], came)
        return self._end(came)

    def _try(self, index: int, came: Came) -> Came:
        try:
            if came.state is UnitState.MERGING:
                came = take_back(self, index, came)
            elif not Path(came.checkout).is_dir():
                return self._left_out(index, f"its checkout {came.checkout} is gone")
            else:
                came = replace(came, state=UnitState.READY)
            return came if came.ended else self._merge_from(reopen_checkout(self, Path(came.checkout)), index, came)
        except MatrixError as error:
            return self._left_out(index, str(error))

    def _merge_from(self, trees: Trees, index: int, came: Came) -> Came:
        """The unit merged from what its checkout holds now, or left out."""
        tree = trees.record()
        came = replace(came, why="", tree=tree, files=trees.changed(came.base, tree))
        remember(self, index, came)
        why = self._examine(trees, index, came) or self.stop_words()
        if not why:
            known = reference(self, index)
            why = self.stop_words()
        if why:
            return self._left_out(index, why)
        after, _ = merge(self, index, came, known)
        return after if after.ended else self._left_out(index, self.stop_words())

    def _examine(self, trees: Trees, index: int, came: Came) -> str:
        unit = next((u for u in planned(self, index) if u.name == self.unit), None)
        if unit is None:
            return "no plan names it"
        if not came.files:
            return "its checkout holds no change"
        return examine_unit(self, index, unit, trees, came.files)[0]

    def _left_out(self, index: int, why: str) -> Came:
        """The unit as it is kept now, failed. What a merge that broke off has applied is put back by the next one."""
        row = last_row(self.store, self.number, self.unit)
        came = load_came(row) if row is not None else None
        if came is None:
            raise InputError(f"a unit of {self.plan.run_id} that was worked on", self.unit, "name another")
        if came.state is UnitState.MERGING:
            why = f"{why}; what it had begun to apply is put back when you merge it again"
            came = replace(came, why=why)
            save(self, index, came, note=f"half-merged: {why}")
            return came
        came = keep(self, replace(came, state=UnitState.FAILED, why=why))
        save(self, index, came)
        return came

    def _end(self, came: Came) -> dict[str, Json]:
        row = self.store.run_row(self.number)
        merged = came.state is UnitState.MERGED
        final, evidence = str(row["final_tree"]), json.loads(row["evidence"])
        outcome = RunOutcome(self.request["outcome"])
        if merged:
            unit_row = last_row(self.store, self.number, self.unit)
            evidence = json.loads(unit_row["evidence"]) if unit_row is not None else evidence
            final = grafted(self.trees, final, came) if final else ""
            outcome = RunOutcome.UNVERIFIED if outcome is RunOutcome.VERIFIED else outcome
        return {"outcome": outcome.value, "reason": self._reason(came, outcome), "final": final, "evidence": evidence}

    def _reason(self, came: Came, outcome: RunOutcome) -> str:
        """What was merged since the end, what was not, and why the run had ended so."""
        last = {r["step"].partition("/")[2]: _state(r) for r in unit_rows(self)}
        asked = dict.fromkeys(r["text"] for r in self.store.controls(self.number, "merge"))
        later = [unit for unit in asked if last.get(unit) is UnitState.MERGED]
        parts = [] if came.state is UnitState.MERGED else [f"{self.unit} was not merged: {one_line(came.why)}"]
        if later:
            parts.append(f"merged after the end: {', '.join(later)}")
        if outcome is RunOutcome.FAILED and later and UnitState.FAILED not in last.values():
            parts.append(
                f"no unit is left out now, and `matrix-coder resume {self.plan.run_id}` judges the whole again"
            )
        return "; ".join([*parts, f"it had ended with: {self.request['reason']}"])


def grafted(trees: Trees, onto: str, came: Came) -> str:
    """The id of the tree `onto` with what the unit brought in it, and nothing else of the workspace as it is now."""
    index = trees.git_dir / "grafted-index"
    index.unlink(missing_ok=True)
    env = {"GIT_INDEX_FILE": str(index)}
    listing = trees.ask("ls-tree", "-r", "-z", "--full-tree", came.tree).decode("utf-8", "surrogateescape")
    found = {path: entry.split() for entry, _, path in (line.partition("\t") for line in listing.split("\0")) if path}
    paths = trees.changed_raw(came.base, came.tree)
    lines = [f"0 {_NOTHING}\t{path}\0" for path in paths]
    lines += [f"{found[path][0]} {found[path][2]}\t{path}\0" for path in paths if path in found]
    trees.ask("read-tree", onto, env=env)
    trees.ask("update-index", "-z", "--index-info", stdin="".join(lines).encode("utf-8", "surrogateescape"), env=env)
    return trees.ask("write-tree", env=env).decode("ascii").strip()
