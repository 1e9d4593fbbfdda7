"""One step's specialist: its prompt, its attempts, and what they come to."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from ..core.delegation import CallKind, ProviderProblem
from ..core.handover import STEPS_TOLD, handover
from ..core.models import Evidence, RunOutcome, StepReport, StepVerdict
from ..core.prompts import compose_step
from ..core.registry import WorkflowDefinition
from ..core.report import settle
from ..core.serde import dump, load_usage
from ..core.workflow import End, RunStep, StepResult
from . import layer, views
from .context import JUST_NOW_S, RunContext
from .dispatch import Attempt, Job, run_attempt
from .guard import NO_LAYER
from .paths import state_dir
from .workspace import Trees, line_count, throw_away_copy

RETRY_PAUSES_S = (1.0, 5.0)
MAX_RATE_WAITS = 30
MAX_RATE_WAIT_S = 600.0
MAX_NOTES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a unit is worked on: the record of its own checkout, the tree there at its start, its name and persona."""

    trees: Trees
    base: str
    name: str
    definition: WorkflowDefinition


@dataclass(slots=True)
class Specialist:
    """The specialist of the step `at`. `attempt` counts how often the step was begun, after crashes, too.

    `notes` are what it is told first; `place` is set for a unit, `units` for whoever plans them.
    """

    run: RunContext
    at: RunStep
    attempt: int
    evidence: tuple[Evidence, ...] = ()
    notes: tuple[str, ...] = ()
    place: Place | None = None
    units: bool = False
    asked: int = 0

    def work(self) -> StepResult:
        """The step's result: a report, an UNVERIFIABLE where there is none, or the run's end."""
        tried = waited = 0
        while True:
            self.asked += 1
            attempt = self._try(self.asked)
            if attempt.report is None and (stop := self.run.must_stop()):
                return self._no_report(stop.reason, stop)
            if attempt.report is not None:
                accepted = settle(attempt.report, lambda f: line_count(self._trees.workspace, f))
                return StepResult(report=accepted, evidence=self.evidence)
            if attempt.problem is None and (attempt.finished or attempt.stopped):
                return self._no_report(why_no_report(attempt))
            if attempt.problem and attempt.problem.rate_limited and waited < MAX_RATE_WAITS:
                self._wait_for_rate(waited, attempt.problem)
                waited += 1
                continue
            words = attempt.problem.words if attempt.problem else why_no_report(attempt)
            if (attempt.problem and attempt.problem.terminal) or tried == len(RETRY_PAUSES_S):
                reason = f"the {self.at.step} step could not be done: {words}"
                return self._no_report(words, End(outcome=RunOutcome.FAILED, reason=reason))
            self.run.event("retry", step=self.at.number, words=words, seconds=RETRY_PAUSES_S[tried])
            self.run.pause(RETRY_PAUSES_S[tried])
            tried += 1

    def _no_report(self, why: str, stop: End | None = None) -> StepResult:
        # Nobody claimed anything: what stands where a claim would is the engine's word, and says so.
        told = why if why.startswith("no report") else f"no report: {why}"
        report = StepReport(verdict=StepVerdict.UNVERIFIABLE, summary=told)
        return StepResult(report=report, evidence=self.evidence, stop=stop)

    def _wait_for_rate(self, waited: int, problem: ProviderProblem) -> None:
        """The provider asks to come back later: that costs time and no iteration."""
        seconds = min(self.run.plan.limits.rate_wait_s * 2**waited, MAX_RATE_WAIT_S)
        until = self.run.store.clock() + seconds
        self.run.event("waiting", step=self.at.number, words=problem.words, seconds=seconds, resumes_at=until)
        self.run.pause(seconds)

    def _try(self, turn: int) -> Attempt:
        plan, number = self.run.plan, self.at.number
        definition = self._definition.steps[self.at.step]
        name = self.place.name if self.place else self.at.step
        folder = f"{number}-{name.replace('/', '-')}"
        directory = self._trees.workspace
        reads = not definition.writes and self.place is None
        aside = state_dir(self.run.store.home) / "copies" / plan.run_id / f"{number}"
        layered = reads and layer.usable(plan.workspace, aside)
        if reads and not layered:
            directory = throw_away_copy(plan.workspace, aside)
        # What a person did since, such as while the provider was waited for, is none of this try's doing.
        before = self._trees.last(within_s=JUST_NOW_S) if reads else ""
        remaining = plan.limits.budget_s - self.run.used().seconds
        job = Job(
            cookie=self.run.cookie(number),
            role=definition.role,
            writes=definition.writes,
            task=f"Matrix Coder run {plan.run_id}, step {number}: {name}. See the context for what to do.",
            context=self._prompt(directory),
            workspace=plan.workspace,
            directory=directory,
            record=self.run.directory / "steps" / folder / f"attempt-{self.attempt}-{turn}",
            limit_s=min(plan.limits.step_s, max(1.0, remaining)),
            environment=plan.environment,
            units=self.units,
            layer=aside if layered else None,
        )
        outcome = run_attempt(
            job,
            on_start=lambda pid, at: self.run.store.update_step(plan.number, number, pid=pid, pid_started=at),
            on_event=lambda kind, data: self.run.event(kind, step=number, **data),
            stop=self.run.stop_words,
        )
        self._trees.worked_on()
        self.run.stop_words()
        self._count(outcome)
        if reads:
            layer.remove(aside)
            self._judge_reader(outcome, before)
        if layered and outcome.exit_code == NO_LAYER and not outcome.finished:
            layer.give_up(plan.workspace)
        return outcome

    def _judge_reader(self, attempt: Attempt, before: str) -> None:
        """A step that only reads leaves the tree as it was; whatever else it says, one that did not has failed."""
        changed = self.run.trees.changed(before, self.run.trees.record())
        if not changed:
            return
        names = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
        self.run.event("written", step=self.at.number, files=list(changed[:50]))
        said = attempt.report or StepReport(verdict=StepVerdict.FAIL)
        summary = f"The workspace changed during a step that only reads: {names}. {said.summary}".strip()
        attempt.report = replace(said, verdict=StepVerdict.FAIL, summary=summary)

    def _prompt(self, directory: Path) -> str:
        plan = self.run.plan
        done = views.steps_before(self.run.store, plan.number, self.at.number, last=STEPS_TOLD)
        start = self.place.base if self.place else self.run.store.run_row(plan.number)["start_tree"]
        return compose_step(
            self._definition,
            self.at.step,
            goal=plan.goal,
            domain=plan.domain or None,
            iteration=self.at.iteration,
            cap=plan.limits.cap,
            handover=handover(
                previous=done,
                evidence=self.evidence or views.evidence_before(self.run.store, plan.number, self.at.number),
                diff_stat=self._trees.stat(start, self._trees.last()),
                notes=self._notes(),
            ),
            workspace=str(directory),
            checks=tuple(c.command for c in plan.checks),
            goal_path=str(self.run.directory / "goal.md"),
        )

    @property
    def _trees(self) -> Trees:
        return self.place.trees if self.place else self.run.trees

    @property
    def _definition(self) -> WorkflowDefinition:
        return self.place.definition if self.place else self.run.plan.definition

    def _notes(self) -> tuple[str, ...]:
        notes = [*self.notes]
        if self.attempt > 1 and self.place is None:
            notes.append(f"This is attempt {self.attempt}: one was cut off. Its changes are still in the tree.")
        said = self.run.store.controls(self.run.number, "steer", "answer")
        for row in said[-MAX_NOTES:]:
            what = "answers the question that stopped the run" if row["kind"] == "answer" else "adds"
            notes.append(f"The person {what}: {row['text']}")
        if any(not row["applied"] for row in said):
            self.run.store.apply_controls(self.run.number, "steer", "answer")
        return tuple(notes)

    def _count(self, attempt: Attempt) -> None:
        sql = "select usage from steps where run_id = ? and number = ?"
        row = self.run.store.read(sql, self.run.number, self.at.number)[0]
        used = load_usage(json.loads(row["usage"])) + attempt.usage
        notes = [f"refused: {r}" for r in attempt.refused[:5]]
        if attempt.discarded:
            more = f" and {len(attempt.discarded) - 5} more" if len(attempt.discarded) > 5 else ""
            notes.append(f"thrown away, as the step only reads: {', '.join(attempt.discarded[:5])}{more}")
        if attempt.forged:
            notes.append(f"{attempt.forged} message(s) that were not the step's own were not read")
        self.run.store.update_step(
            self.run.number,
            self.at.number,
            usage=json.dumps(dump(used)),
            child_session=attempt.session,
            note="; ".join(notes),
        )


def why_no_report(attempt: Attempt) -> str:
    """Why an attempt came to no report, in one clause."""
    if attempt.stopped:
        return attempt.stopped
    if not attempt.finished:
        return f"the step's process ended with exit code {attempt.exit_code}"
    last = attempt.calls[-1] if attempt.calls else None
    if last is not None and last.kind is not CallKind.ANSWERED:
        return f"the child was {last.kind}: {last.text[:200]}"
    return "no report was handed in, also when asked again"
