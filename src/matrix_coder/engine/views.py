"""What the store holds, as values to show."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from ..core.models import (
    Evidence,
    RunOutcome,
    RunStatus,
    RunView,
    SpecialistResult,
    StepStatus,
    StepView,
    Usage,
)
from ..core.serde import load_evidence, load_report, load_usage
from .paths import run_dir
from .store import Store


def run_number(run_id: str) -> int:
    """The number behind a run's id (`r8`, `R8` or `8`); 0, which no run has, for anything else."""
    digits = run_id.strip().lower().removeprefix("r")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 15 else 0


def run_id_of(number: int) -> str:
    """The id that people see and type."""
    return f"r{number}"


def view(store: Store, number: int) -> RunView:
    """One run with its steps. Raises RunUnknown."""
    return _run_view(store.run_row(number), store.step_rows(number))


def recent(store: Store, *, session_id: str = "", limit: int = 20) -> list[RunView]:
    """The newest runs without their steps, newest first; only a session's own where one is named."""
    where = "where id in (select run_id from sessions where session_id = ?)" if session_id else ""
    values: tuple[object, ...] = (session_id, limit) if session_id else (limit,)
    rows = store.read(f"select * from runs {where} order by id desc limit ?", *values)
    return [_run_view(r, store.step_rows(r["id"])) for r in rows]


def _run_view(row: sqlite3.Row, steps: list[sqlite3.Row]) -> RunView:
    views = tuple(_step_view(s) for s in steps)
    limits: dict[str, Any] = json.loads(row["limits"])
    return RunView(
        run_id=run_id_of(row["id"]),
        workflow=row["workflow"],
        goal=row["goal"],
        workspace=row["workspace"],
        session_id=row["session_id"],
        origin=str(json.loads(row["options"]).get("origin") or ""),
        domain=row["domain"],
        checks=tuple(c["command"] for c in json.loads(row["checks"])),
        cap=int(limits["cap"]),
        money_usd=float(limits.get("money_usd") or 0.0),
        status=RunStatus(row["status"]),
        outcome=RunOutcome(row["outcome"]) if row["outcome"] else None,
        reason=row["reason"],
        question=row["question"],
        iteration=row["iteration"],
        usage=sum((s.usage for s in views), Usage()),
        steps=views,
        created_at=row["created_at"],
        started_at=row["started_at"],
        ended_at=row["ended_at"],
    )


def _step_view(row: sqlite3.Row) -> StepView:
    return StepView(
        name=row["step"],
        number=row["number"],
        iteration=row["iteration"],
        role=row["role"],
        status=StepStatus(row["status"]),
        attempt=row["attempt"],
        report=load_report(json.loads(row["report"])) if row["report"] else None,
        evidence=load_evidence(json.loads(row["evidence"])),
        note=row["note"],
        usage=load_usage(json.loads(row["usage"])),
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        child_session=row["child_session"],
    )


def steps_before(store: Store, number: int, step: int, *, last: int) -> tuple[StepView, ...]:
    """The last so many of a run's steps before `step`, oldest first; units are left out."""
    return tuple(_step_view(row) for row in store.steps_before(number, step, last=last))


def evidence_before(store: Store, number: int, step: int) -> tuple[Evidence, ...]:
    """What the checks said last, before `step`; about the starting tree where none ran since."""
    return load_evidence(json.loads(store.evidence_before(number, step))) or baseline(store, number)


def baseline(store: Store, number: int) -> tuple[Evidence, ...]:
    """What the checks said about the starting tree."""
    return load_evidence(json.loads(store.run_row(number)["baseline"]))


def result(store: Store, number: int, *, outcome: RunOutcome | None = None) -> SpecialistResult:
    """The result of a run that ended, or is about to as `outcome`. Raises RunUnknown; ValueError while it is live."""
    row = store.run_row(number)
    run = _run_view(row, store.step_rows(number))
    ended = run.outcome or outcome
    if ended is None:
        raise ValueError(f"run {run.run_id} has not ended")
    report = run_dir(store.home, run.run_id) / "report.md"
    return SpecialistResult(
        run_id=run.run_id,
        workflow=run.workflow,
        goal=run.goal,
        outcome=ended,
        reason=run.reason,
        iterations=run.iteration,
        cap=run.cap,
        steps=run.steps,
        baseline=load_evidence(json.loads(row["baseline"])),
        evidence=load_evidence(json.loads(row["evidence"])),
        question=run.question,
        changed_files=tuple(json.loads(row["changed"])),
        usage=run.usage,
        money_usd=run.money_usd,
        origin=run.origin,
        report_path=str(report) if report.exists() else "",
    )
