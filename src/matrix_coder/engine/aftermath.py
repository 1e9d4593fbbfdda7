"""What can still be done with a run's units once it has ended."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..core.errors import InputError
from ..core.models import Evidence
from ..core.units import UnitState
from .checkout import reopen_checkout
from .context import RunContext
from .merge import Came, load_came, merge, reference, unit_rows
from .unit_plan import planned
from .units import examine_unit
from .workspace import Trees


class Aftermath(RunContext):
    """A run that has ended: what is done with it now is stopped by nothing that stopped it then."""

    def stop_words(self) -> str:
        return ""

    def check(self, label: str, step: int, *, runs: int = 1, trees: Trees | None = None) -> tuple[Evidence, ...]:
        """The same with the whole time limit of a check, however much of the budget was used."""
        limits = replace(self.plan.limits, budget_s=self.used().seconds + self.plan.limits.check_s)
        self.plan = replace(self.plan, limits=limits)
        return super().check(label, step, runs=runs, trees=trees)


def merge_again(run: RunContext, name: str) -> Came:
    """Try a unit's merge again, from its checkout as it is now. Raises InputError with what stands against it."""
    rows = [r for r in unit_rows(run) if r["step"].partition("/")[2] == name]
    came = load_came(rows[-1]) if rows else None
    if came is None:
        known = ", ".join(sorted({r["step"].partition("/")[2] for r in unit_rows(run)})) or "none"
        raise InputError(f"a unit of {run.plan.run_id} that was worked on ({known})", name, "name one of them")
    if came.state in (UnitState.MERGED, UnitState.DONE, UnitState.EMPTY):
        raise InputError("a unit that is not merged", f"{name}, which is {came.state}", "there is nothing left to take")
    if not came.base or not Path(came.checkout).is_dir():
        raise InputError(f"the checkout of {name}", came.checkout or came.why, "start a new run")
    number = rows[-1]["number"]
    unit = next(u for u in planned(run, number) if u.name == name)
    trees = reopen_checkout(run, Path(came.checkout))
    tree = trees.record()
    files = trees.changed(came.base, tree)
    why, _ = examine_unit(run, number, unit, trees, files) if files else ("its checkout holds no change", ())
    if why:
        raise InputError(f"a unit {name} that can be merged", why, f"mend it in {came.checkout} and merge it again")
    fresh = came
    if came.state is not UnitState.MERGING:
        fresh = replace(came, state=UnitState.READY, why="", tree=tree, files=files)
    after, _ = merge(run, number, fresh, reference(run, number))
    if after.state is not UnitState.MERGED:
        raise InputError(
            f"a unit {name} that can be merged", after.why, f"mend it in {came.checkout} and merge it again"
        )
    return after
