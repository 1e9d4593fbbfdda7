"""What the parts of one run's side effects share: its plan, its store and trees, its stops and its checks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..core.models import Evidence, RunOutcome, Usage
from ..core.money import dollars, unpriced_words
from ..core.serde import Json
from ..core.workflow import End, is_green
from .checks import Check, run_check
from .confine import Confinement, confine
from .paths import run_dir, state_dir
from .plan import load_plan
from .store import Store
from .workspace import Trees

_POLL_S = 0.1
# A tree that was recorded so lately is what is there: no look would be later than the step's own start or end.
JUST_NOW_S = 0.2


class RunContext:
    """One run at work. `draining` tells that the worker is going away and whatever is half-done has to be left.

    `trees` is the record of the run's workspace as an earlier context of this process knew it.
    """

    def __init__(
        self, store: Store, number: int, draining: Callable[[], bool] = lambda: False, *, trees: Trees | None = None
    ) -> None:
        self.store = store
        self.number = number
        self.plan = load_plan(store, number)
        self.directory = run_dir(store.home, self.plan.run_id)
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.trees = trees or Trees(self.plan.workspace, self.directory)
        self._draining = draining
        self._telling = threading.Lock()

    def cookie(self, step: int) -> str:
        """What marks every process of a step; step 0 stands for the run's opening."""
        return f"{state_dir(self.store.home)}:{self.plan.run_id}/{step}"

    def event(self, kind: str, **data: object) -> None:
        """Append an event to the run."""
        self.store.event(self.number, kind, **data)

    def stop_words(self) -> str:
        """Why whatever is at work has to stop now; empty to go on. Does not return while the worker is going away."""
        if self._draining():
            # The worker ends its processes next and then itself; what they leave half-done must not become a result.
            threading.Event().wait()
        return "cancelled by a person" if self._cancelled() else ""

    def _cancelled(self) -> bool:
        return self.store.cancelled(self.number)

    def pause(self, seconds: float) -> None:
        """Wait so long, or until the run has to stop."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not self.stop_words():
            time.sleep(_POLL_S)

    def used(self) -> Usage:
        """What the run has used so far, over all its steps and every time it was resumed; checks count as seconds."""
        return self.store.used(self.number)

    def must_stop(self) -> End | None:
        """The end that is due now: cancelled, or over budget."""
        if self.stop_words():
            return End(outcome=RunOutcome.CANCELLED, reason="cancelled by a person")
        used, limits = self.used(), self.plan.limits
        if used.tokens >= limits.tokens:
            return End(outcome=RunOutcome.BUDGET, reason=f"{used.tokens:,} of {limits.tokens:,} tokens used")
        if used.seconds >= limits.budget_s:
            return End(outcome=RunOutcome.BUDGET, reason=f"{used.seconds:.0f} of {limits.budget_s:g} s used")
        return self._out_of_money(used, limits.money_usd) if limits.money_usd else None

    def _out_of_money(self, used: Usage, budget_usd: float) -> End | None:
        """The end where the budget is spent. What it can't count is told once, so that nobody takes it for a limit."""
        if used.unpriced_tokens:
            self._tell_unpriced(unpriced_words(used, budget_usd))
        if used.cost_usd < budget_usd:
            return None
        spent = f"{dollars(used.cost_usd)} of {dollars(budget_usd)} used (the host's estimate)"
        return End(outcome=RunOutcome.BUDGET, reason=spent)

    def _tell_unpriced(self, words: str) -> None:
        with self._telling:
            if not self.store.read("select 1 from events where run_id = ? and kind = 'unpriced' limit 1", self.number):
                self.event("unpriced", words=words)

    def check(self, label: str, step: int, *, runs: int = 1, trees: Trees | None = None) -> tuple[Evidence, ...]:
        """What every check says about the workspace as it is. What a check leaves behind belongs to its tree.

        A check that has to be green `runs` times in a row says what its first red run says. `trees` is the record of
        another directory to run them in; from there they can write neither to the workspace nor to what is ours.
        """
        begun = time.monotonic()
        place = trees or self.trees
        found = [self._check(check, label, step, runs, place.workspace) for check in self.plan.checks]
        self.store.add_check_seconds(self.number, time.monotonic() - begun)
        tree = place.record() if found else ""
        return tuple(replace(e, tree=tree) for e in found)

    def _check(self, check: Check, label: str, step: int, runs: int, directory: Path) -> Evidence:
        for turn in range(1, runs + 1):
            output = self.directory / "checks" / (label if runs == 1 else f"{label}-run-{turn}")
            evidence = run_check(
                check,
                workspace=directory,
                tree="",
                directory=output,
                confinement=self._confinement(directory, output),
                cookie=self.cookie(step),
                limit_s=min(self.plan.limits.check_s, max(1.0, self.plan.limits.budget_s - self.used().seconds)),
                environment=self.plan.environment,
                stopped=lambda: bool(self.stop_words()),
            )
            if self.stop_words() or not is_green(evidence):
                break
        if runs > 1:
            evidence = replace(evidence, environment=f"{evidence.environment}; run {turn} of {runs}")
        return evidence

    def _confinement(self, directory: Path, output: Path) -> Confinement | None:
        """What a check in a checkout of its own may not write to; None for one in the workspace itself."""
        if directory == self.plan.workspace:
            return None
        origin = [Path(self.plan.options.origin)] if self.plan.options.origin else []
        return confine([self.plan.workspace, state_dir(self.store.home), *origin], own=[directory, output])


def brief(evidence: Evidence) -> dict[str, Json]:
    """What an event tells of a check."""
    return {"command": evidence.command, "passed": evidence.passed, "counts": evidence.counts()}
