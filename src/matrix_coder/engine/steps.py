"""The side effects of a run: opening it, one step, holding it, closing it. Each can be repeated after a crash.

A step that has its result in the store returns that result; one that was cut off is ended for certain, with all
it started, before it is tried again.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..core.models import Evidence, RunOutcome, RunStatus, SpecialistResult, StepReport, StepStatus, StepVerdict
from ..core.names import Role
from ..core.render import report_json, report_markdown
from ..core.serde import Json, dump, load_evidence, load_report
from ..core.workflow import End, Guard, RunStep, StepResult, is_green
from . import aftermath, layer, units, views
from .context import JUST_NOW_S, RunContext, brief
from .paths import state_dir
from .procs import end_attempt, end_everything
from .specialist import Specialist
from .store import Store
from .tamper import examine, watch
from .unit_plan import plan_units
from .workspace import Trees


class Run:
    """One run's side effects, as the driver's durable steps call them."""

    def __init__(
        self, store: Store, number: int, draining: Callable[[], bool] = lambda: False, *, trees: Trees | None = None
    ) -> None:
        self.context = RunContext(store, number, draining, trees=trees)
        self.store = store
        self.number = number
        self.plan = self.context.plan
        self.trees = self.context.trees

    # -- opening and holding

    def open(self) -> dict[str, Json]:
        """The starting tree's evidence, made at the first opening, and the steps that are done, as JSON."""
        row = self.store.run_row(self.number)
        start = row["start_tree"] or self.trees.record()
        self.store.update_run(
            self.number,
            start_tree=start,
            status=RunStatus.RUNNING,
            started_at=row["started_at"] or self.store.clock(),
        )
        if not row["generation"]:
            self._open_first()
        done: list[Json] = [
            {"result": aftermath.without_merged(self.context, json.loads(s["result"])), "redo": bool(s["redo"])}
            for s in self.store.step_rows(self.number)
            if s["result"] and "/" not in s["step"]
        ]
        baseline: Json = json.loads(self.store.run_row(self.number)["baseline"])
        return {
            "baseline": baseline,
            "done": done if row["generation"] else [],
            "cap": self.plan.limits.cap,
            "merge": self.store.merge_request(self.number),
        }

    def _open_first(self) -> None:
        (self.context.directory / "goal.md").write_text(self.plan.goal, encoding="utf-8")
        end_everything(self.context.cookie(0))
        watch(self.trees)
        evidence = () if self.context.stop_words() else self.context.check("baseline", 0)
        if self.context.stop_words():
            # A check that was stopped half-way says nothing; the run ends before its first step.
            evidence = ()
        self.store.update_run(self.number, baseline=json.dumps([dump(e) for e in evidence], ensure_ascii=False))
        self.context.event("baseline", checks=[brief(e) for e in evidence])

    def held(self, move: RunStep) -> str:
        """Why the run has to wait for a person before this step; empty to go on, or to be ended by it."""
        if self.context.stop_words():
            return ""
        if any(not row["applied"] for row in self.store.controls(self.number, "pause")):
            return "paused by a person"
        if not self.plan.options.approve:
            return ""
        before = [s for s in self.store.step_rows(self.number) if s["number"] < move.number and "/" not in s["step"]]
        last = before[-1]["step"] if before else ""
        wanted = last in self.plan.options.approve
        approvals = len(self.store.controls(self.number, "approve"))
        asked = len([s for s in before if s["step"] in self.plan.options.approve])
        if units.APPROVE_MERGE in self.plan.options.approve:
            asked += len([s for s in before if self.plan.definition.steps[s["step"]].fan_out])
        return f"waiting for approval of the {last}" if wanted and approvals < asked else ""

    def hold(self, reason: str) -> str:
        """Leave the run waiting for a person; it goes on with `resume`, or `approve`."""
        self.store.apply_controls(self.number, "pause")
        self.store.update_run(self.number, status=RunStatus.PAUSED, reason=reason)
        self.context.event("paused", reason=reason)
        return RunStatus.PAUSED.value

    # -- one step

    def step(self, move: RunStep) -> dict[str, Json]:
        """Run one step and return its result as JSON; a step that ended before returns what it returned then."""
        definition = self.plan.definition.steps[move.step]
        row = self.store.open_step(
            self.number, move.number, step=move.step, role=definition.role, iteration=move.iteration
        )
        if row["result"]:
            kept: dict[str, Json] = json.loads(row["result"])
            return kept
        if row["attempt"] > 1:
            # Whatever an attempt that was cut off has started; before the first, there is nothing to look for.
            end_attempt(self.context.cookie(move.number), pid=row["pid"], started=row["pid_started"])
        result = self._work(move, row)
        saved = result_json(result)
        self._close_step(move, result, saved)
        return saved

    def _work(self, move: RunStep, row: sqlite3.Row) -> StepResult:
        definition = self.plan.definition.steps[move.step]
        stop = self.context.must_stop()
        if stop is not None and not definition.fan_out:
            return StepResult(report=StepReport(verdict=StepVerdict.UNVERIFIABLE, summary=stop.reason), stop=stop)
        if not row["tree_before"]:
            self.store.update_step(self.number, move.number, tree_before=self.trees.last(within_s=JUST_NOW_S))
        if definition.fan_out:
            return units.Fleet(self.context, move).work()
        specialist = Specialist(self.context, move, row["attempt"], notes=units.accounts(self.context))
        if definition.role is Role.PLAN and any(s.fan_out for s in self.plan.definition.steps.values()):
            return plan_units(self.context, specialist)
        if definition.role is not Role.VERIFY:
            return specialist.work()
        with ThreadPoolExecutor(max_workers=1) as beside:
            # Verify is told what has changed: git can say so while the checks are at work.
            beside.submit(self.trees.stat, self.store.run_row(self.number)["start_tree"], self.trees.last())
            specialist.evidence = self._evidence(move, f"step-{move.number}")
        result = specialist.work()
        if result.evidence and result.stop is None and self.trees.last() != result.evidence[-1].tree:
            # Evidence is bound to a tree. If that moved while verify looked on, the checks speak again.
            result = replace(result, evidence=self._evidence(move, f"step-{move.number}-again"))
        return self._guarded(result)

    def _guarded(self, result: StepResult) -> StepResult:
        """The result of a verify step with the guard's look at the tests, where success would hang on it."""
        if result.stop is not None or not result.evidence or not all(map(is_green, result.evidence)):
            return result
        start = self.store.run_row(self.number)["start_tree"]
        checks = tuple(c.command for c in self.plan.checks)
        report = examine(self.trees, start, result.evidence[-1].tree, goal=self.plan.goal, checks=checks)
        accused = tuple(str(f) for f in report.findings if f.certain)
        for finding in report.findings:
            self.context.event("tampering", certain=finding.certain, text=str(finding))
        return replace(result, guard=Guard.ASKED_FOR if report.exempted else Guard.CLEAN, tampering=accused)

    def _evidence(self, move: RunStep, label: str) -> tuple[Evidence, ...]:
        evidence = self.context.check(label, move.number, runs=self.plan.options.check_runs)
        saved = json.dumps([dump(e) for e in evidence], ensure_ascii=False)
        self.store.update_step(self.number, move.number, evidence=saved)
        self.context.event("check", step=move.number, checks=[brief(e) for e in evidence])
        return evidence

    def _close_step(self, move: RunStep, result: StepResult, saved: dict[str, Json]) -> None:
        status = StepStatus.DONE
        if result.stop is not None:
            cancelled = result.stop.outcome is RunOutcome.CANCELLED
            status = StepStatus.CANCELLED if cancelled else StepStatus.FAILED
        elif result.report.verdict is StepVerdict.BLOCKED:
            status = StepStatus.BLOCKED
        told = {
            "step": move.number,
            "name": move.step,
            "claimed": result.report.verdict,
            "summary": result.report.summary,
            "verified": [brief(e) for e in result.evidence],
        }
        self.store.end_step(
            self.number,
            move.number,
            told,
            status=status,
            report=json.dumps(dump(result.report), ensure_ascii=False),
            evidence=json.dumps([dump(e) for e in result.evidence], ensure_ascii=False),
            result=json.dumps(saved, ensure_ascii=False),
            tree_after=self.trees.last(within_s=JUST_NOW_S),
            ended_at=self.store.clock(),
        )

    # -- closing

    def close(self, end: End, *, final: str = "", evidence: tuple[Evidence, ...] | None = None) -> str:
        """End the run: final tree, evidence, report on disk. The outcome that it has now.

        The tree is what the workspace holds, the evidence that of the last step, unless they are given.
        """
        run = views.view(self.store, self.number)
        final = final or self.trees.record()
        start = self.store.run_row(self.number)["start_tree"] or final
        if evidence is None:
            evidence = next((s.evidence for s in reversed(run.steps) if s.evidence and not s.unit), ())
            evidence = evidence if run.steps else views.baseline(self.store, self.number)
        if end.outcome is RunOutcome.VERIFIED and any(e.tree != final or not is_green(e) for e in evidence):
            end = End(outcome=RunOutcome.UNVERIFIED, reason="the workspace changed after the last check")
        self.trees.write_diff(start, final, self.context.directory / "diff.patch")
        changed = self.trees.changed(start, final)
        # The report first: whoever sees that the run has ended finds it.
        self._write_report(end, evidence, changed, self.trees.stat(start, final))
        self.store.end_run(
            self.number,
            end.outcome,
            reason=end.reason,
            question=end.question,
            final_tree=final,
            changed=json.dumps(changed),
            evidence=json.dumps([dump(e) for e in evidence], ensure_ascii=False),
        )
        for left in (copies := state_dir(self.store.home) / "copies" / self.plan.run_id).glob("*"):
            layer.remove(left)
        shutil.rmtree(copies, ignore_errors=True)
        return str(self.store.run_row(self.number)["outcome"])

    def _write_report(self, end: End, evidence: tuple[Evidence, ...], changed: tuple[str, ...], stat: str) -> None:
        result = replace(
            views.result(self.store, self.number, outcome=end.outcome),
            reason=end.reason,
            question=end.question,
            evidence=evidence,
            changed_files=changed,
            report_path=str(self.context.directory / "report.md"),
        )
        write_report(self.context.directory, result, stat)


def write_report(folder: Path, result: SpecialistResult, stat: str) -> None:
    """Write the report of a run into its directory: for people, and as JSON."""
    (folder / "report.md").write_text(report_markdown(result, diff_stat=stat), encoding="utf-8")
    text = json.dumps(report_json(result), ensure_ascii=False, indent=1)
    (folder / "report.json").write_text(text, encoding="utf-8")


def result_json(result: StepResult) -> dict[str, Json]:
    """A step's result as the durable engine keeps it."""
    stop = result.stop
    return {
        "report": dump(result.report),
        "evidence": [dump(e) for e in result.evidence],
        "stop": None
        if stop is None
        else {"outcome": str(stop.outcome), "reason": stop.reason, "question": stop.question},
        "guard": result.guard.value,
        "tampering": list(result.tampering),
        "failed_units": list(result.failed_units),
        "empty_units": list(result.empty_units),
        "last_number": result.last_number,
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
        guard=Guard(data["guard"]),
        tampering=tuple(data["tampering"]),
        failed_units=tuple(data.get("failed_units") or ()),
        empty_units=tuple(data.get("empty_units") or ()),
        last_number=int(data.get("last_number") or 0),
    )
