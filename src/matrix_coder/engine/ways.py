"""What can be done with a run in the state that it is in, in the words of an error."""

from __future__ import annotations

from ..core.models import RunOutcome, RunStatus, RunView


def state_words(run: RunView) -> str:
    """The run and its state, as an error tells what it found."""
    return f"{run.run_id}, which is {run.outcome or run.status}"


def way_on(run: RunView) -> str:
    """What can be done with a run in its state."""
    ways = {
        RunOutcome.BLOCKED: f'answer it: matrix-coder answer {run.run_id} "text"',
        RunOutcome.CAP_REACHED: f"allow it more: matrix-coder raise {run.run_id} cap={run.cap + 3}",
        RunOutcome.BUDGET: f"allow it more: matrix-coder raise {run.run_id} {_spent_budget(run)}",
        RunOutcome.FAILED: f"try again: matrix-coder resume {run.run_id}",
    }
    if run.outcome is not None:
        return ways.get(run.outcome, "start a new run")
    if run.status is RunStatus.PAUSED:
        return f"let it go on: matrix-coder {'approve' if 'approval' in run.reason else 'resume'} {run.run_id}"
    return f"watch it: matrix-coder watch {run.run_id}"


def _spent_budget(run: RunView) -> str:
    """More of what a run has used up, as an example of how to write it."""
    if run.money_usd and run.usage.cost_usd >= run.money_usd:
        return f"money={max(2 * run.money_usd, 0.01):.2f}"
    return "budget=4h" if run.reason.endswith(" s used") else "tokens=4M"
