"""A workflow's next move, from its definition and what has happened so far. Pure: the engine acts on it.

The rule that everything rests on: a specialist's words can lower a run's outcome and never raise it.
`verified` comes out of `judge` alone, from evidence that the engine gathered itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .models import Evidence, RunOutcome, StepReport, StepVerdict
from .registry import WorkflowDefinition

# Exit codes that say "there was nothing to run", which is no failing check: pytest's "no tests
# collected" and "usage error", the shell's "can't execute" and "not found".
_RAN_NOTHING = frozenset({4, 5, 126, 127})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStep:
    """Dispatch this step. `number` counts the run's steps from 1, `iteration` its passes from 1."""

    step: str
    number: int
    iteration: int


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The run is over."""

    outcome: RunOutcome
    reason: str
    question: str = ""


Move: TypeAlias = RunStep | End


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What came of a step. `stop` is set when the run must end here, whatever the report says."""

    report: StepReport
    evidence: tuple[Evidence, ...] = ()
    stop: End | None = None


def begin(definition: WorkflowDefinition) -> RunStep:
    """The first move of a run."""
    return RunStep(step=definition.start, number=1, iteration=1)


def advance(
    definition: WorkflowDefinition,
    at: RunStep,
    result: StepResult,
    *,
    cap: int,
    baseline: tuple[Evidence, ...],
) -> Move:
    """The move after the step `at` came to `result`.

    `cap` is the number of iterations that may be started; `baseline` is what the checks said
    about the starting tree.
    """
    if result.stop is not None:
        return result.stop
    verdict = result.report.verdict
    target = definition.transitions[at.step][verdict.value]
    kind, _, name = target.partition(":")
    if not name:
        return RunStep(step=target, number=at.number + 1, iteration=at.iteration)
    if kind == "end":
        return _end(RunOutcome(name), result.report)
    if kind == "loop":
        return _loop(name, at, cap, f"{at.step} said {verdict}")
    return _gate(definition, at, result, cap=cap, baseline=baseline)


def _end(outcome: RunOutcome, report: StepReport) -> End:
    question = ""
    if outcome is RunOutcome.BLOCKED:
        question = next(iter(report.open_questions), "") or report.summary or "the specialist named no question"
    return End(outcome=outcome, reason=report.summary, question=question)


def _loop(step: str, at: RunStep, cap: int, why: str) -> Move:
    if at.iteration >= cap:
        return End(outcome=RunOutcome.CAP_REACHED, reason=f"{cap} of {cap} iterations used; at the last, {why}")
    return RunStep(step=step, number=at.number + 1, iteration=at.iteration + 1)


def _gate(
    definition: WorkflowDefinition,
    at: RunStep,
    result: StepResult,
    *,
    cap: int,
    baseline: tuple[Evidence, ...],
) -> Move:
    if not result.evidence:
        return End(outcome=RunOutcome.UNVERIFIED, reason="no check existed that the engine could run")
    red = [e for e in result.evidence if not e.passed]
    if red:
        why = "; ".join(f"check `{e.command}` failed ({e.counts()})" for e in red)
        return _loop(definition.loop_start or definition.start, at, cap, why)
    if result.report.verdict is not StepVerdict.PASS:
        return End(outcome=RunOutcome.UNVERIFIED, reason="the checks are green, but verify gave no verdict")
    return judge(baseline, result.evidence)


def judge(baseline: tuple[Evidence, ...], final: tuple[Evidence, ...]) -> End:
    """What green checks on the final tree are worth, given what they said about the starting tree."""
    before = {e.name: e for e in baseline}
    lost = [c for e in final if e.name in before for c in _lost(before[e.name], e)]
    if lost:
        names = ", ".join(lost[:5]) + (f" and {len(lost) - 5} more" if len(lost) > 5 else "")
        return End(outcome=RunOutcome.TAMPERED, reason=f"tests that ran at the start no longer run: {names}")
    proof = [p for e in final if e.name in before and (p := _proof(before[e.name], e))]
    if proof:
        return End(outcome=RunOutcome.VERIFIED, reason="; ".join(proof))
    return End(
        outcome=RunOutcome.UNVERIFIED,
        reason="nothing broke; no check covers the goal (all were green before)",
    )


def _lost(before: Evidence, after: Evidence) -> list[str]:
    """Cases that ran at the start and are gone or skipped now."""
    ran = [c for c, s in before.cases.items() if s != "skipped"]
    return sorted(c for c in ran if after.cases.get(c, "skipped") == "skipped") if after.cases or ran else []


def _proof(before: Evidence, after: Evidence) -> str:
    """One sentence on what failed at the start and passes now; empty when that proves nothing."""
    if before.passed or before.exit_code in _RAN_NOTHING:
        return ""
    fixed = [c for c in before.failing if after.cases.get(c) == "passed"]
    what = f"; {len(fixed)} case{'s' * (len(fixed) != 1)} failed then and pass now" if fixed else ""
    return (
        f"`{after.command}` was {before.counts()} on the starting tree and is {after.counts()} on the final tree{what}"
    )
