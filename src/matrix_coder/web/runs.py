"""Runs for the page: the list, and one run with its steps."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.models import Evidence, RunOutcome, RunView, StepReport, StepView
from ..core.workflow import is_green
from ..engine import views
from ..engine.paths import run_dir
from ..engine.store import Store
from .commands import OWN, offers
from .shapes import (
    Budget,
    CheckResult,
    FindingShape,
    ReportShape,
    RunDetail,
    RunPage,
    RunSummary,
    StepShape,
    UnitShape,
)
from .units import last_of_each, planned_unit, units_of

MAX_PAGE = 200
_SHOWN_NAMES = 200
_SHOWN_FAILING = 20
_LIVE = "live"

_TOTALS = """
select run_id, count(*) as steps,
  coalesce(sum(json_extract(usage, '$.input_tokens')), 0) as tokens_in,
  coalesce(sum(json_extract(usage, '$.output_tokens')), 0) as tokens_out,
  coalesce(sum(json_extract(usage, '$.cost_usd')), 0) as cost,
  coalesce(sum(json_extract(usage, '$.unpriced_tokens')), 0) as unpriced,
  coalesce(sum(json_extract(usage, '$.seconds')), 0) as worked
from steps where run_id in (select value from json_each(?)) group by run_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which runs a page of the list holds. `state` is an outcome or `live`; `text` stands in goal or workspace."""

    before: int | None = None
    limit: int = 50
    state: str = ""
    workflow: str = ""
    text: str = ""

    def where(self) -> tuple[str, list[object]]:
        """The condition and its values, without the paging."""
        parts: list[str] = []
        values: list[object] = []
        if self.state == _LIVE:
            parts.append("r.status != 'ended'")
        elif self.state:
            parts.append("r.outcome = ?")
            values.append(self.state)
        if self.workflow:
            parts.append("r.workflow = ?")
            values.append(self.workflow)
        if self.text:
            parts.append("(instr(lower(r.goal), ?) or instr(lower(r.workspace), ?) or 'r' || r.id = ?)")
            values += [self.text.lower()] * 3
        return " and ".join(parts) or "1", values


def last_event(store: Store) -> int:
    """The id of the newest event of any run."""
    return int(store.read("select coalesce(max(id), 0) as id from events")[0]["id"])


def empty_page(now: float) -> RunPage:
    """The list where no run was ever started."""
    return RunPage(runs=[], next_before=None, total=0, counts={}, last_event=0, now=now)


def page(store: Store, asked: Asked) -> RunPage:
    """One page of the list."""
    seen = last_event(store)
    where, values = asked.where()
    total = int(store.read(f"select count(*) as n from runs r where {where}", *values)[0]["n"])
    paged = f"{where} and r.id < ?" if asked.before else where
    if asked.before:
        values.append(asked.before)
    rows = store.read(f"select r.* from runs r where {paged} order by r.id desc limit ?", *values, asked.limit + 1)
    kept = rows[: asked.limit]
    totals = {t["run_id"]: t for t in store.read(_TOTALS, json.dumps([r["id"] for r in kept]))}
    more = len(rows) > asked.limit
    return RunPage(
        runs=[_summary_of_row(r, totals.get(r["id"])) for r in kept],
        next_before=int(kept[-1]["id"]) if more else None,
        total=total,
        counts=_counts(store),
        last_event=seen,
        now=store.clock(),
    )


def _counts(store: Store) -> dict[str, int]:
    sql = "select coalesce(outcome, 'live') as state, count(*) as n from runs group by 1"
    return {str(r["state"]): int(r["n"]) for r in store.read(sql)}


def _summary_of_row(row: sqlite3.Row, totals: sqlite3.Row | None) -> RunSummary:
    limits: dict[str, Any] = json.loads(row["limits"])
    return RunSummary(
        run_id=views.run_id_of(row["id"]),
        workflow=row["workflow"],
        goal=row["goal"],
        workspace=row["workspace"],
        origin=str(json.loads(row["options"]).get("origin") or ""),
        session_id=row["session_id"],
        domain=row["domain"],
        status=row["status"],
        outcome=row["outcome"],
        reason=row["reason"],
        iteration=row["iteration"],
        cap=int(limits["cap"]),
        steps=totals["steps"] if totals else 0,
        input_tokens=int(totals["tokens_in"]) if totals else 0,
        output_tokens=int(totals["tokens_out"]) if totals else 0,
        cost_usd=float(totals["cost"]) if totals else 0.0,
        unpriced_tokens=int(totals["unpriced"]) if totals else 0,
        money_usd=float(limits.get("money_usd") or 0.0),
        seconds=float(totals["worked"]) if totals else 0.0,
        created_at=row["created_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
    )


def summary(run: RunView) -> RunSummary:
    """A run as the list shows it."""
    return RunSummary(
        run_id=run.run_id,
        workflow=run.workflow,
        goal=run.goal,
        workspace=run.workspace,
        origin=run.origin,
        session_id=run.session_id,
        domain=run.domain,
        status=run.status.value,
        outcome=run.outcome.value if run.outcome else None,
        reason=run.reason,
        iteration=run.iteration,
        cap=run.cap,
        steps=len(run.steps),
        input_tokens=run.usage.input_tokens,
        output_tokens=run.usage.output_tokens,
        cost_usd=run.usage.cost_usd,
        unpriced_tokens=run.usage.unpriced_tokens,
        money_usd=run.money_usd,
        seconds=run.usage.seconds,
        created_at=run.created_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
    )


def detail(store: Store, run_id: str) -> RunDetail:
    """One run with its steps. Raises RunUnknown."""
    number = views.run_number(run_id)
    seen = last_event(store)
    row = store.run_row(number)
    steps = store.step_rows(number)
    run = views.view(store, number)
    limits: dict[str, Any] = json.loads(row["limits"])
    directory = run_dir(store.home, run.run_id)
    changed = [str(name) for name in json.loads(row["changed"])]
    units = units_of(run, steps)
    return RunDetail(
        run=summary(run),
        question=run.question if run.outcome is RunOutcome.BLOCKED else "",
        checks=list(run.checks),
        baseline=_checks(views.baseline(store, number)),
        steps=[_step(s, r, units.get(s.number)) for s, r in zip(run.steps, steps, strict=False)],
        evidence=_checks(next((s.evidence for s in reversed(run.steps) if s.evidence), ())),
        changed=changed[:_SHOWN_NAMES],
        changed_count=len(changed),
        budgets=_budgets(run, limits, float(row["check_seconds"])),
        step_limit_s=float(limits.get("step_s", 0)),
        commands=offers(run, _choices(run, units)),
        has_report=(directory / "report.md").is_file(),
        has_diff=(directory / "diff.patch").is_file() or bool(row["start_tree"]),
        last_event=seen,
        now=store.clock(),
    )


def _choices(run: RunView, units: Mapping[int, UnitShape]) -> dict[str, list[str]]:
    last = last_of_each(units)
    own = [OWN] if run.origin and Path(run.workspace).is_dir() else []
    return {
        "merge": [u.name for u in last if u.command],
        "drop": own + [u.name for u in last if u.checkout],
    }


def _budgets(run: RunView, limits: dict[str, Any], checks: float) -> list[Budget]:
    budgets = [
        Budget(name="iterations", used=run.iteration, limit=run.cap),
        Budget(name="tokens", used=run.usage.tokens, limit=float(limits.get("tokens", 0))),
        Budget(name="seconds", used=round(run.usage.seconds + checks, 1), limit=float(limits.get("budget_s", 0))),
    ]
    if run.money_usd:
        budgets.append(Budget(name="money", used=run.usage.cost_usd, limit=run.money_usd))
    return budgets


def _step(step: StepView, row: sqlite3.Row, unit: UnitShape | None) -> StepShape:
    return StepShape(
        number=step.number,
        name=row["step"],
        iteration=step.iteration,
        role=step.role,
        lens=step.lens,
        domain=step.domain,
        status=step.status.value,
        attempt=step.attempt,
        report=_report(step.report) if step.report else None,
        evidence=_checks(step.evidence),
        note=step.note,
        input_tokens=step.usage.input_tokens,
        output_tokens=step.usage.output_tokens,
        cost_usd=step.usage.cost_usd,
        unpriced_tokens=step.usage.unpriced_tokens,
        seconds=step.usage.seconds,
        started_at=step.started_at,
        ended_at=step.ended_at,
        child_session=step.child_session,
        has_diff=_differs(row, unit),
        unit=unit,
    )


def _differs(row: sqlite3.Row, unit: UnitShape | None) -> bool:
    before, after = row["tree_before"], row["tree_after"]
    return bool(unit and unit.files) or bool(before and after and before != after)


def _report(report: StepReport) -> ReportShape:
    return ReportShape(
        verdict=report.verdict.value,
        summary=report.summary,
        findings=[
            FindingShape(severity=f.severity.value, summary=f.summary, file=f.file, line=f.line)
            for f in report.findings
        ],
        open_questions=list(report.open_questions),
        positive_observations=list(report.positive_observations),
        recommendation=report.recommendation,
        dropped_findings=report.dropped_findings,
        units=[planned_unit(u) for u in report.units],
    )


def _checks(evidence: tuple[Evidence, ...]) -> list[CheckResult]:
    return [check_result(index, e) for index, e in enumerate(evidence)]


def check_result(index: int, evidence: Evidence) -> CheckResult:
    """What a check said, without its output."""
    cases: dict[str, int] = {}
    for result in evidence.cases.values():
        cases[result] = cases.get(result, 0) + 1
    return CheckResult(
        index=index,
        name=evidence.name,
        command=evidence.command,
        passed=is_green(evidence),
        counts=evidence.counts(),
        exit_code=evidence.exit_code,
        duration_s=evidence.duration_s,
        tree=evidence.tree,
        cases=cases,
        failing=list(evidence.failing[:_SHOWN_FAILING]),
        has_output=bool(evidence.output_path or evidence.tail),
    )
