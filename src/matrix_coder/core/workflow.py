"""A workflow's next move, from its definition and what has happened so far. Pure: the engine acts on it.

The rule that everything rests on: a specialist's words can lower a run's outcome and never raise it.
`verified` comes out of `judge` alone, from evidence that the engine gathered itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeAlias

from .models import Evidence, RunOutcome, Severity, StepReport, StepVerdict
from .names import Role
from .registry import WorkflowDefinition

# Exit codes that say "there was nothing to run", which is no failing check: pytest's "no tests
# collected" and "usage error", the shell's "can't execute" and "not found".
_RAN_NOTHING = frozenset({4, 5, 126, 127})
# Ended from outside (SIGINT, SIGKILL, SIGTERM), as the shell and as the kernel say it; None is our own time limit.
_CUT_OFF = frozenset({None, 130, 137, 143, -2, -9, -15})
# The ends that a missing unit changes; whatever else ended the run is said as it is.
_ENDS_OF_UNITS = frozenset({RunOutcome.VERIFIED, RunOutcome.UNVERIFIED, RunOutcome.FAILED})


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


class Guard(StrEnum):
    """What the look at the tests themselves came to."""

    ABSENT = "absent"
    CLEAN = "clean"
    ASKED_FOR = "asked for"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What came of a step.

    `stop` is set when the run must end here, whatever the report says; `guard` is what the engine's look at the
    tests themselves came to, and `tampering` what it found, a line each. A step that was worked on in units says
    which of them failed (name and why) or changed nothing, and the last number that they took.
    """

    report: StepReport
    evidence: tuple[Evidence, ...] = ()
    stop: End | None = None
    guard: Guard = Guard.ABSENT
    tampering: tuple[str, ...] = ()
    failed_units: tuple[str, ...] = ()
    empty_units: tuple[str, ...] = ()
    last_number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """How an iteration left things: the tree, and what failed on it."""

    tree: str
    failing: tuple[str, ...]


class Course:
    """Where a run is: its next move, found by taking in one step's result after another. Deterministic."""

    def __init__(self, definition: WorkflowDefinition, baseline: tuple[Evidence, ...]) -> None:
        self._definition = definition
        self._baseline = baseline
        self._history: list[Pass] = []
        self._units = StepResult(report=StepReport(verdict=StepVerdict.PASS))
        self.move: Move = begin(definition, baseline)

    def take(self, result: StepResult, *, cap: int, redo: bool = False) -> Move:
        """The move after the current one came to `result`; with `redo` the same step again, as a new one."""
        at = self.move
        if isinstance(at, End):
            raise ValueError(f"the run has ended as {at.outcome}; it takes no step's result")
        if self._definition.steps[at.step].fan_out:
            self._units = result
        at = replace(at, number=max(at.number, result.last_number))
        if redo:
            self.move = RunStep(step=at.step, number=at.number + 1, iteration=at.iteration)
        else:
            self.move = advance(
                self._definition, at, result, cap=cap, baseline=self._baseline, history=tuple(self._history)
            )
            self._history += passes(result)
            self.move = _with_units(self.move, self._units)
        return self.move


def _with_units(move: Move, units: StepResult) -> Move:
    """The move, but for an end that speaks for the whole although some units are not in it."""
    if isinstance(move, RunStep) or move.outcome not in _ENDS_OF_UNITS:
        return move
    if units.failed_units:
        reason = f"units that failed: {'; '.join(units.failed_units)}. Of the rest: {move.reason}"
        return replace(move, outcome=RunOutcome.FAILED, reason=reason)
    if units.empty_units and move.outcome is RunOutcome.VERIFIED:
        reason = f"units that changed nothing: {', '.join(units.empty_units)}. Of the rest: {move.reason}"
        return replace(move, outcome=RunOutcome.UNVERIFIED, reason=reason)
    return move


def begin(definition: WorkflowDefinition, baseline: tuple[Evidence, ...] = ()) -> Move:
    """The first move of a run whose checks said `baseline` about the starting tree."""
    if definition.green_ends and baseline and all(map(is_green, baseline)):
        return End(outcome=RunOutcome.VERIFIED, reason="already green, nothing changed")
    return RunStep(step=definition.start, number=1, iteration=1)


def advance(
    definition: WorkflowDefinition,
    at: RunStep,
    result: StepResult,
    *,
    cap: int,
    baseline: tuple[Evidence, ...],
    history: Sequence[Pass] = (),
) -> Move:
    """The move after the step `at` came to `result`.

    `cap` is the number of iterations that may be started; `baseline` is what the checks said about the starting
    tree; `history` is how each iteration before this step's left things, oldest first.
    """
    if result.stop is not None:
        return result.stop
    verdict = _lowered(definition, at, result.report)
    why = f"{at.step} said {result.report.verdict}"
    if verdict is not result.report.verdict:
        why = f"{at.step} found a {_worst(result.report)} finding"
    if _leads_to_gate(definition, at, verdict):
        ending = _gate(result, baseline)
        if ending is not None:
            return ending
        # A red check is a FAIL, whatever the specialist said.
        verdict = StepVerdict.FAIL
        red = [e for e in result.evidence if not is_green(e)]
        why = "; ".join(f"check `{e.command}` failed ({e.counts()})" for e in red)
    return _follow(definition, at, result, verdict, cap=cap, why=why, history=history)


def _lowered(definition: WorkflowDefinition, at: RunStep, report: StepReport) -> StepVerdict:
    """A review's BLOCKER or HIGH finding sends the run back, whatever its verdict says."""
    step = definition.steps[at.step]
    grave = _worst(report) in (Severity.BLOCKER, Severity.HIGH)
    if step.role == Role.REVIEW and grave and report.verdict is not StepVerdict.BLOCKED:
        return StepVerdict.FAIL
    return report.verdict


def _worst(report: StepReport) -> Severity | None:
    return min((f.severity for f in report.findings), key=list(Severity).index, default=None)


def _leads_to_gate(definition: WorkflowDefinition, at: RunStep, verdict: StepVerdict) -> bool:
    return definition.transitions[at.step][verdict.value].startswith("gate:")


def _follow(
    definition: WorkflowDefinition,
    at: RunStep,
    result: StepResult,
    verdict: StepVerdict,
    *,
    cap: int,
    why: str,
    history: Sequence[Pass],
) -> Move:
    target = definition.transitions[at.step][verdict.value]
    kind, _, name = target.partition(":")
    if not name:
        return RunStep(step=target, number=at.number + 1, iteration=at.iteration)
    if kind == "end":
        return _end(RunOutcome(name), result.report, why)
    if at.iteration >= cap:
        return End(outcome=RunOutcome.CAP_REACHED, reason=f"{cap} of {cap} iterations used; at the last, {why}")
    return _again(definition, at, name, why, [*history, *passes(result)])


def _again(definition: WorkflowDefinition, at: RunStep, step: str, why: str, history: Sequence[Pass]) -> Move:
    """The next iteration; where the last two left the very same failures on the very same tree, a way out first."""
    if definition.stalled and at.step != definition.stalled and _stuck(history, 2):
        if _stuck(history, 3):
            return End(
                outcome=RunOutcome.STALLED,
                reason=f"the same failures on the same tree, also after a diagnosis in a fresh context; {why}",
            )
        return RunStep(step=definition.stalled, number=at.number + 1, iteration=at.iteration)
    return RunStep(step=step, number=at.number + 1, iteration=at.iteration + 1)


def _stuck(history: Sequence[Pass], times: int) -> bool:
    """Whether the last iterations, so many of them, ended alike."""
    last = history[-times:]
    return len(last) == times and bool(last[0].tree) and all(p == last[0] for p in last)


def passes(result: StepResult) -> tuple[Pass, ...]:
    """How the step's evidence says that its iteration left things; empty for a step without evidence."""
    if not result.evidence:
        return ()
    failing = sorted(f for e in result.evidence if not is_green(e) for f in (e.failing or (e.name,)))
    return (Pass(tree=result.evidence[-1].tree, failing=tuple(failing)),)


def _end(outcome: RunOutcome, report: StepReport, why: str) -> End:
    question = ""
    if outcome is RunOutcome.BLOCKED:
        question = next(iter(report.open_questions), "") or report.summary or "the specialist named no question"
    return End(outcome=outcome, reason=report.summary if outcome is RunOutcome.BLOCKED else why, question=question)


def _gate(result: StepResult, baseline: tuple[Evidence, ...]) -> End | None:
    """The end that the checks decide on; None when one of them is red."""
    if not result.evidence:
        return End(outcome=RunOutcome.UNVERIFIED, reason="no check existed that the engine could run")
    forced = [e for e in result.evidence if _is_forced(e, baseline)]
    if forced:
        why = "; ".join(f"`{e.command}` exits with 0 although {_some(e.failing)} failed" for e in forced)
        return End(outcome=RunOutcome.TAMPERED, reason=why)
    if not all(map(is_green, result.evidence)):
        return None
    if result.tampering:
        return End(outcome=RunOutcome.TAMPERED, reason="; ".join(result.tampering))
    if result.report.verdict is not StepVerdict.PASS:
        return End(outcome=RunOutcome.UNVERIFIED, reason="the checks are green, but verify gave no verdict")
    return judge(baseline, result.evidence, guard=result.guard)


def is_green(evidence: Evidence) -> bool:
    """Whether a check passed: its exit code says so, and no case that it reported says otherwise."""
    return evidence.passed


def _is_forced(after: Evidence, baseline: tuple[Evidence, ...]) -> bool:
    """Whether a check says 0 over failing cases, and did not do so from the start."""
    always = any(e.name == after.name and e.exit_code == 0 and e.failing for e in baseline)
    return after.exit_code == 0 and bool(after.failing) and not always


def judge(baseline: tuple[Evidence, ...], final: tuple[Evidence, ...], *, guard: Guard = Guard.ABSENT) -> End:
    """What the checks on the final tree are worth, given what they said about the starting tree.

    A test that ran at the start and does not any more may have been renamed: where the guard has read the tests
    and found nothing, as many have to run as did before, unless the goal asked for fewer.
    """
    before = {(e.name, e.command): e for e in baseline}
    pairs = [(before[key], e) for e in final if (key := (e.name, e.command)) in before]
    lost = [c for old, new in pairs for c in _lost(old, new)]
    if lost and guard is Guard.ABSENT:
        return End(outcome=RunOutcome.TAMPERED, reason=f"tests that ran at the start no longer run: {_some(lost)}")
    fewer = [new for old, new in pairs if _ran(new) < _ran(old)]
    if lost and fewer and guard is Guard.CLEAN:
        why = f"fewer tests run than at the start; gone or skipped: {_some(lost)}"
        return End(outcome=RunOutcome.UNVERIFIED, reason=why)
    absent = [e.command for e in baseline if not any(old is e for old, _ in pairs)]
    if absent or not all(map(is_green, final)):
        why = f"`{absent[0]}` did not run on the final tree" if absent else "the checks are not green on the final tree"
        return End(outcome=RunOutcome.UNVERIFIED, reason=why)
    proof = [_fixed(old, new) for old, new in pairs if not _doubt(old, new)]
    if proof:
        return End(outcome=RunOutcome.VERIFIED, reason="; ".join(proof))
    return End(outcome=RunOutcome.UNVERIFIED, reason=_unproven(pairs))


def _some(names: Sequence[str]) -> str:
    """The first five, and how many more."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _ran(evidence: Evidence) -> int:
    return sum(status != "skipped" for status in evidence.cases.values())


def _lost(before: Evidence, after: Evidence) -> list[str]:
    """Cases and files of tests that were there at the start and are gone or skipped now."""
    return sorted(c for c, s in before.cases.items() if s != "skipped" and not _statuses(c, after) - {"skipped"})


def _statuses(case: str, evidence: Evidence) -> set[str]:
    """What became of a case. A file that could not be collected stands for whatever cases it has once it can be."""
    if case in evidence.cases or "::" in case:
        return {evidence.cases[case]} if case in evidence.cases else set()
    return {s for c, s in evidence.cases.items() if c.startswith((f"{case}::", f"{case}."))}


def _doubt(before: Evidence, after: Evidence) -> str:
    """Why a check that is green now proves nothing about the goal; empty when it does prove something."""
    if is_green(before):
        return "nothing broke; no check covers the goal (all were green before)"
    if before.exit_code in _RAN_NOTHING and not before.failing:
        return f"`{after.command}` had nothing to run on the starting tree ({before.counts()})"
    if before.exit_code in _CUT_OFF and not before.failing:
        return f"`{after.command}` did not come to an end on the starting tree ({before.counts()})"
    if after.cases and "passed" not in after.cases.values():
        return f"`{after.command}` ran no test on the final tree; all are skipped"
    if before.tree and before.tree == after.tree:
        return f"`{after.command}` failed and now passes on the very same tree: its result does not hang on the change"
    return ""


def _unproven(pairs: Sequence[tuple[Evidence, Evidence]]) -> str:
    """The sentence for checks that prove nothing: what is special about one of them, else that all were green."""
    red_before = [_doubt(old, new) for old, new in pairs if not is_green(old)]
    if red_before:
        return "; ".join(red_before)
    return next((_doubt(old, new) for old, new in pairs), "no check ran on the starting tree to compare with")


def _fixed(before: Evidence, after: Evidence) -> str:
    """One sentence on what failed at the start and passes now."""
    fixed = [c for c in before.failing if "passed" in _statuses(c, after)]
    what = f"; {len(fixed)} case{'s' * (len(fixed) != 1)} failed then and pass now" if fixed else ""
    return (
        f"`{after.command}` was {before.counts()} on the starting tree and is {after.counts()} on the final tree{what}"
    )
