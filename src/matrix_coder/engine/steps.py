"""The side effects of a run: opening it, one step, closing it. Each can be repeated after a crash without harm.

A step that has its result in the store returns that result; one that was cut off is ended for certain, with all
it started, before it is tried again.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..core.delegation import CallKind
from ..core.handover import handover
from ..core.models import Evidence, RunOutcome, RunStatus, StepReport, StepStatus, StepVerdict, Usage
from ..core.names import Role
from ..core.prompts import compose_step
from ..core.registry import WorkflowDefinition, parse_workflow
from ..core.render import report_json, report_markdown
from ..core.report import settle
from ..core.serde import Json, dump, load_evidence, load_report, load_usage
from ..core.workflow import End, RunStep, StepResult
from . import views
from .checks import Check, run_check
from .client import Limits
from .dispatch import Attempt, Job, run_attempt
from .paths import run_dir, state_dir
from .procs import end_everything
from .store import Store
from .workspace import Trees, line_count, throw_away_copy

RETRY_PAUSES_S = (1.0, 5.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run was started with."""

    number: int
    run_id: str
    definition: WorkflowDefinition
    goal: str
    domain: str
    workspace: Path
    checks: tuple[Check, ...]
    limits: Limits


class Run:
    """One run's side effects. `draining` tells that the worker is going away and the attempt has to be left."""

    def __init__(self, store: Store, number: int, draining: Callable[[], bool] = lambda: False) -> None:
        row = store.run_row(number)
        self.store = store
        self.draining = draining
        self.plan = Plan(
            number=number,
            run_id=views.run_id_of(number),
            definition=parse_workflow(row["definition"]),
            goal=row["goal"],
            domain=row["domain"],
            workspace=Path(row["workspace"]),
            checks=tuple(Check(**c) for c in json.loads(row["checks"])),
            limits=Limits(**json.loads(row["limits"])),
        )
        self.directory = run_dir(store.home, self.plan.run_id)
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.trees = Trees(self.plan.workspace, self.directory)

    # -- opening

    def open(self) -> list[dict[str, Json]]:
        """Record the starting tree and what the checks say about it; the evidence as JSON."""
        number = self.plan.number
        if not self.store.run_row(number)["start_tree"]:
            self.store.update_run(
                number,
                start_tree=self.trees.record(),
                status=RunStatus.RUNNING,
                started_at=self.store.clock(),
            )
        evidence = [dump(e) for e in self._check("baseline", 0)]
        self.store.update_run(number, baseline=json.dumps(evidence))
        self._event("baseline", checks=[_brief(e) for e in load_evidence(evidence)])
        return evidence

    # -- one step

    def step(self, move: RunStep) -> dict[str, Json]:
        """Run one step and return its result as JSON; a step that ended before returns what it returned then."""
        definition = self.plan.definition.steps[move.step]
        row = self.store.open_step(
            self.plan.number, move.number, step=move.step, role=definition.role, iteration=move.iteration
        )
        if row["result"]:
            kept: dict[str, Json] = json.loads(row["result"])
            return kept
        self.store.update_run(self.plan.number, iteration=move.iteration)
        end_everything(self._cookie(move.number), pid=row["pid"], started=row["pid_started"])
        result = self._work(move, row)
        saved = result_json(result)
        self._close_step(move, result, saved)
        return saved

    def _work(self, move: RunStep, row: sqlite3.Row) -> StepResult:
        stop = self._must_stop()
        if stop is not None:
            return StepResult(report=_unverifiable(stop.reason), stop=stop)
        role = self.plan.definition.steps[move.step].role
        if not row["tree_before"]:
            self.store.update_step(self.plan.number, move.number, tree_before=self.trees.record())
        evidence = self._check(f"step-{move.number}", move.number) if role == Role.VERIFY else ()
        if evidence:
            self.store.update_step(self.plan.number, move.number, evidence=json.dumps([dump(e) for e in evidence]))
            self._event("check", step=move.number, checks=[_brief(e) for e in evidence])
        result = self._dispatch(move, row, evidence)
        if evidence and result.stop is None and self.trees.record() != evidence[-1].tree:
            # Evidence is bound to a tree. If that moved while verify looked on, the checks speak again.
            result = replace(result, evidence=self._check(f"step-{move.number}-again", move.number))
        return result

    def _dispatch(self, move: RunStep, row: sqlite3.Row, evidence: tuple[Evidence, ...]) -> StepResult:
        for tried in range(len(RETRY_PAUSES_S) + 1):
            attempt = self._attempt(move, row["attempt"], tried, evidence)
            stop = self._must_stop(attempt)
            if stop is not None:
                return StepResult(report=_unverifiable(stop.reason), evidence=evidence, stop=stop)
            if attempt.report is not None:
                accepted = settle(attempt.report, lambda f: line_count(self.plan.workspace, f))
                return StepResult(report=accepted, evidence=evidence)
            if attempt.problem is None and (attempt.finished or attempt.stopped):
                return StepResult(report=_unverifiable(_why_no_report(attempt)), evidence=evidence)
            words = attempt.problem.words if attempt.problem else _why_no_report(attempt)
            if (attempt.problem and attempt.problem.terminal) or tried == len(RETRY_PAUSES_S):
                end = End(outcome=RunOutcome.FAILED, reason=f"the {move.step} step could not be done: {words}")
                return StepResult(report=_unverifiable(words), evidence=evidence, stop=end)
            self._event("retry", step=move.number, words=words, seconds=RETRY_PAUSES_S[tried])
            time.sleep(RETRY_PAUSES_S[tried])
        raise AssertionError("the loop always returns")

    def _attempt(self, move: RunStep, attempt: int, tried: int, evidence: tuple[Evidence, ...]) -> Attempt:
        plan, number = self.plan, move.number
        definition = plan.definition.steps[move.step]
        record = self.directory / "steps" / f"{number}-{move.step}" / f"attempt-{attempt}-{tried + 1}"
        directory = plan.workspace
        if not definition.writes:
            directory = throw_away_copy(
                plan.workspace, state_dir(self.store.home) / "copies" / plan.run_id / f"{number}"
            )
        job = Job(
            cookie=self._cookie(number),
            role=definition.role,
            writes=definition.writes,
            task=f"Matrix Coder run {plan.run_id}, step {number}: {move.step}. Your instructions are in the context.",
            context=self._prompt(move, attempt, directory, evidence),
            workspace=plan.workspace,
            directory=directory,
            record=record,
            limit_s=min(plan.limits.step_s, max(1.0, plan.limits.budget_s - self._used().seconds)),
        )
        outcome = run_attempt(
            job,
            on_start=lambda pid, at: self.store.update_step(plan.number, number, pid=pid, pid_started=at),
            on_event=lambda kind, data: self._event(kind, step=number, **data),
            stop=self._stop_words,
        )
        self._stop_words()
        self._count(number, outcome)
        if not definition.writes:
            shutil.rmtree(directory, ignore_errors=True)
        return outcome

    def _prompt(self, move: RunStep, attempt: int, directory: Path, evidence: tuple[Evidence, ...]) -> str:
        plan = self.plan
        run = views.view(self.store, plan.number)
        done = tuple(s for s in run.steps if s.number < move.number)
        start = self.store.run_row(plan.number)["start_tree"]
        notes: tuple[str, ...] = ()
        if attempt > 1:
            notes = (f"This is attempt {attempt}: an earlier one was cut off. What it changed is still in the tree.",)
        last = (
            evidence
            or next((s.evidence for s in reversed(done) if s.evidence), ())
            or views.baseline(self.store, plan.number)
        )
        return compose_step(
            plan.definition,
            move.step,
            goal=plan.goal,
            domain=plan.domain or None,
            iteration=move.iteration,
            cap=plan.limits.cap,
            handover=handover(
                previous=done,
                evidence=last,
                diff_stat=self.trees.stat(start, self.trees.record()),
                notes=notes,
            ),
            workspace=str(directory),
            checks=tuple(c.command for c in plan.checks),
        )

    def _count(self, step: int, attempt: Attempt) -> None:
        row = self.store.read("select usage from steps where run_id = ? and number = ?", self.plan.number, step)[0]
        used = load_usage(json.loads(row["usage"])) + attempt.usage
        self.store.update_step(
            self.plan.number,
            step,
            usage=json.dumps(dump(used)),
            child_session=attempt.session,
            note="; ".join(f"refused: {r}" for r in attempt.refused[:5]),
        )

    def _close_step(self, move: RunStep, result: StepResult, saved: dict[str, Json]) -> None:
        status = StepStatus.DONE
        if result.stop is not None:
            cancelled = result.stop.outcome is RunOutcome.CANCELLED
            status = StepStatus.CANCELLED if cancelled else StepStatus.FAILED
        elif result.report.verdict is StepVerdict.BLOCKED:
            status = StepStatus.BLOCKED
        self.store.update_step(
            self.plan.number,
            move.number,
            status=status,
            report=json.dumps(dump(result.report), ensure_ascii=False),
            evidence=json.dumps([dump(e) for e in result.evidence], ensure_ascii=False),
            result=json.dumps(saved, ensure_ascii=False),
            tree_after=self.trees.record(),
            ended_at=self.store.clock(),
        )
        self._event(
            "verdict",
            step=move.number,
            name=move.step,
            claimed=result.report.verdict,
            summary=result.report.summary,
            verified=[_brief(e) for e in result.evidence],
        )

    # -- closing

    def close(self, end: End) -> str:
        """End the run: final tree, evidence, report on disk. The outcome that it has now."""
        number = self.plan.number
        run = views.view(self.store, number)
        final = self.trees.record()
        start = self.store.run_row(number)["start_tree"] or final
        evidence = next((s.evidence for s in reversed(run.steps) if s.evidence), ())
        if end.outcome is RunOutcome.VERIFIED and any(e.tree != final for e in evidence):
            end = End(outcome=RunOutcome.UNVERIFIED, reason="the workspace changed after the last check")
        changed = self.trees.changed(start, final)
        (self.directory / "diff.patch").write_text(
            self.trees.diff(start, final), encoding="utf-8", errors="surrogateescape"
        )
        ended = self.store.end_run(
            number,
            end.outcome,
            reason=end.reason,
            question=end.question,
            final_tree=final,
            changed=json.dumps(changed),
            evidence=json.dumps([dump(e) for e in evidence]),
        )
        if ended:
            self._write_report(self.trees.stat(start, final))
        shutil.rmtree(state_dir(self.store.home) / "copies" / self.plan.run_id, ignore_errors=True)
        return str(self.store.run_row(number)["outcome"])

    def _write_report(self, diff_stat: str) -> None:
        result = views.result(self.store, self.plan.number)
        (self.directory / "report.md").write_text(report_markdown(result, diff_stat=diff_stat), encoding="utf-8")
        text = json.dumps(report_json(result), ensure_ascii=False, indent=1)
        (self.directory / "report.json").write_text(text, encoding="utf-8")

    # -- shared

    def _cookie(self, step: int) -> str:
        return f"{state_dir(self.store.home)}:{self.plan.run_id}/{step}"

    def _event(self, kind: str, **data: object) -> None:
        self.store.event(self.plan.number, kind, **data)

    def _check(self, label: str, step: int) -> tuple[Evidence, ...]:
        """What every check says about the workspace as it is. What a check itself leaves behind belongs to its tree."""
        found = []
        for check in self.plan.checks:
            evidence = run_check(
                check,
                workspace=self.plan.workspace,
                tree="",
                directory=self.directory / "checks" / label,
                cookie=self._cookie(step),
                limit_s=self.plan.limits.check_s,
                stopped=lambda: bool(self._stop_words()),
            )
            self._stop_words()
            found.append(evidence)
        tree = self.trees.record() if found else ""
        return tuple(replace(e, tree=tree) for e in found)

    def _used(self) -> Usage:
        run = views.view(self.store, self.plan.number)
        checks = sum(e.duration_s for s in run.steps for e in s.evidence)
        return run.usage + Usage(seconds=checks)

    def _stop_words(self) -> str:
        if self.draining():
            # The worker ends its processes next and then itself; what they leave half-done must not become a result.
            threading.Event().wait()
        return "cancelled by a person" if self.store.cancelled(self.plan.number) else ""

    def _must_stop(self, attempt: Attempt | None = None) -> End | None:
        """The end that is due now, whatever a specialist says: cancelled, or over budget."""
        if self._stop_words():
            return End(outcome=RunOutcome.CANCELLED, reason="cancelled by a person")
        used, limits = self._used(), self.plan.limits
        if attempt is not None and attempt.report is not None:
            return None
        if used.tokens >= limits.tokens:
            return End(outcome=RunOutcome.BUDGET, reason=f"{used.tokens:,} of {limits.tokens:,} tokens used")
        if used.seconds >= limits.budget_s:
            return End(outcome=RunOutcome.BUDGET, reason=f"{used.seconds:.0f} of {limits.budget_s:g} s used")
        return None


def result_json(result: StepResult) -> dict[str, Json]:
    """A step's result as the durable engine keeps it."""
    stop = result.stop
    return {
        "report": dump(result.report),
        "evidence": [dump(e) for e in result.evidence],
        "stop": None
        if stop is None
        else {"outcome": str(stop.outcome), "reason": stop.reason, "question": stop.question},
    }


def load_result(data: dict[str, Any]) -> StepResult:
    """The step's result that `result_json` wrote."""
    stop = data["stop"]
    return StepResult(
        report=load_report(data["report"]),
        evidence=load_evidence(data["evidence"]),
        stop=None
        if stop is None
        else End(outcome=RunOutcome(stop["outcome"]), reason=stop["reason"], question=stop["question"]),
    )


def _unverifiable(why: str) -> StepReport:
    return StepReport(verdict=StepVerdict.UNVERIFIABLE, summary=why)


def _why_no_report(attempt: Attempt) -> str:
    if attempt.stopped:
        return attempt.stopped
    if not attempt.finished:
        return f"the step's process ended with exit code {attempt.exit_code}"
    last = attempt.calls[-1] if attempt.calls else None
    if last is not None and last.kind is not CallKind.ANSWERED:
        return f"the child was {last.kind}: {last.text[:200]}"
    return "no report was handed in, also when asked again"


def _brief(evidence: Evidence) -> dict[str, Json]:
    return {"command": evidence.command, "passed": evidence.passed, "counts": evidence.counts()}
