"""A real Kanban board, and views of runs to show on it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from matrix_coder.core.models import (
    Evidence,
    RunOutcome,
    RunStatus,
    RunView,
    StepReport,
    StepStatus,
    StepVerdict,
    StepView,
)
from matrix_coder.hermes.kanban import CardRecord, SyncReport

CLEAN = SyncReport()
HERMES = Path(sys.executable).with_name("hermes")


class MemoryBook:
    """The mapping of cards, kept in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[int, CardRecord]] = {}

    def cards_of(self, run_id: str) -> dict[int, CardRecord]:
        return dict(self.kept.get(run_id, {}))

    def record(self, run_id: str, cards: Mapping[int, CardRecord]) -> None:
        self.kept.setdefault(run_id, {}).update(cards)


class Board:
    """The real board of a temporary Hermes home, seen and edited as other programs do it."""

    def __init__(self, home: Path) -> None:
        from hermes_cli import kanban_db

        self.home, self.kb = home, kanban_db
        with kanban_db.connect_closing():
            pass

    def rows(self, sql: str, *values: object) -> list[dict[str, Any]]:
        with contextlib.closing(sqlite3.connect(self.home / "kanban.db")) as db:
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute(sql, values)]

    def write(self, sql: str, *values: object) -> None:
        with contextlib.closing(sqlite3.connect(self.home / "kanban.db")) as db:
            db.execute(sql, values)
            db.commit()

    def card(self, key: str) -> dict[str, Any]:
        (row,) = self.rows("select * from tasks where idempotency_key = ?", key)
        return row

    def statuses(self) -> dict[str, str]:
        rows = self.rows("select idempotency_key, status from tasks order by idempotency_key")
        return {row["idempotency_key"]: row["status"] for row in rows}

    def comments(self, key: str) -> list[str]:
        card = self.card(key)["id"]
        return [r["body"] for r in self.rows("select body from task_comments where task_id = ? order by id", card)]

    def drag(self, key: str, status: str) -> None:
        """What the host's page does when a person drags the card to a column."""
        from plugins.kanban.dashboard import plugin_api

        plugin_api.update_task(self.card(key)["id"], plugin_api.UpdateTaskBody(status=status), board=None)

    def hermes(self, *words: str) -> str:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "HERMES_HOME": str(self.home)}
        done = subprocess.run([HERMES, *words], env=env, capture_output=True, text=True, check=True)
        return done.stdout


def evidence(passed: int, of: int = 15, **fields: Any) -> Evidence:
    cases = {f"test_calc.py::test_{n}": "passed" if n < passed else "failed" for n in range(of)}
    base: dict[str, Any] = {"name": "pytest", "command": "pytest -q", "duration_s": 3.2, "tree": "a" * 40}
    tail = f"FAILED test_calc.py::test_14 - assert -1 == 5\n{passed} passed, {of - passed} failed in 3.1s"
    return Evidence(**(base | {"exit_code": int(passed < of), "cases": cases, "tail": tail} | fields))


def report(verdict: StepVerdict = StepVerdict.PASS, summary: str = "mended add()", **fields: Any) -> StepReport:
    return StepReport(verdict=verdict, summary=summary, **fields)


def step(number: int, role: str, status: StepStatus = StepStatus.DONE, **fields: Any) -> StepView:
    told = {} if status is StepStatus.RUNNING else {"report": report(), "ended_at": time.time() + 4}
    iteration = (number + 1) // 2
    base: dict[str, Any] = {"iteration": iteration, "started_at": time.time(), "child_session": f"s{number}"}
    return StepView(number=number, role=role, status=status, **(base | told | fields))


def run(*steps: StepView, **fields: Any) -> RunView:
    base: dict[str, Any] = {
        "run_id": "r8",
        "workflow": "ralph",
        "goal": "make the tests pass",
        "workspace": "/tmp",
        "session_id": "20261130_101010_abcdef",
        "checks": ("pytest -q",),
        "status": RunStatus.RUNNING,
        "iteration": max((s.iteration for s in steps), default=0),
        "created_at": time.time(),
    }
    return RunView(steps=steps, **(base | fields))


def ended(outcome: RunOutcome, *steps: StepView, **fields: Any) -> RunView:
    return run(*steps, status=RunStatus.ENDED, outcome=outcome, ended_at=time.time(), **fields)


def ralph() -> Iterator[RunView]:
    """The whole life of a run of two rounds, state by state."""
    executor = step(1, "executor")
    red = step(2, "verify", evidence=(evidence(13),))
    again = step(3, "executor")
    green = step(4, "verify", report=report(summary="all 15 pass"), evidence=(evidence(15),))
    done = (executor, red, again, green)
    yield run(status=RunStatus.QUEUED)
    for n, one in enumerate(done):
        yield run(*done[:n], step(one.number, one.role, StepStatus.RUNNING))
        yield run(*done[: n + 1])
    yield ended(RunOutcome.VERIFIED, *done, reason="pytest -q: 13/15 before, 15/15 now")


class Reports:
    """What a mirror thread said, and a way to wait for it."""

    def __init__(self) -> None:
        self.said: list[SyncReport] = []
        self._more = threading.Condition()

    def __call__(self, run_id: str, report: SyncReport) -> None:
        with self._more:
            self.said.append(report)
            self._more.notify_all()

    def wait_for(self, what: Any) -> None:
        with self._more:
            assert self._more.wait_for(lambda: any(what(r) for r in self.said), timeout=60)
