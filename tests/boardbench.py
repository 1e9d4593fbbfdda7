"""A home whose Kanban board shows a run in every state, written as it happened by the mirror, and its dashboard."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from matrix_coder.core.models import Evidence, RunOutcome, StepReport, StepStatus, StepVerdict
from matrix_coder.engine import views
from matrix_coder.hermes.card_book import StoreCardBook
from matrix_coder.hermes.kanban import KanbanMirror
from matrix_coder.testing import HermesHome
from webbench import OUTCOMES, TOKEN, Dashboard, Seeds

NOWHERE = "http://127.0.0.1:9/v1"
SESSION = "20261130_081500_3fa9c1"
QUESTION = "Which provider, and is its sandbox reachable from here?"


def pytest_evidence(passed: int, of: int = 15, **fields: Any) -> Evidence:
    """What one pytest run of so many cases came to."""
    cases = {f"test_shop.py::test_{n}": "passed" if n < passed else "failed" for n in range(of)}
    base: dict[str, Any] = {"name": "check-1", "command": "pytest -q", "duration_s": 3.2, "tree": "5f" * 20}
    tail = f"{of - passed} failed, {passed} passed in 3.1s" if passed < of else f"{of} passed in 3.1s"
    return Evidence(**(base | {"exit_code": int(passed < of), "cases": cases, "tail": tail} | fields))


def report(verdict: StepVerdict, summary: str, **fields: Any) -> StepReport:
    """A step's report."""
    return StepReport(verdict=verdict, summary=summary, **fields)


class BoardPlace:
    """One run for each state, in `runs` by the state's name; each change of a run was shown when it happened."""

    def __init__(self, root: Path) -> None:
        self.home = HermesHome(root, NOWHERE)
        self.seeds = Seeds(self.home.path)
        self.store = self.seeds.store
        self.runs: dict[str, int] = {}
        with pytest.MonkeyPatch.context() as patch:
            for name in [n for n in os.environ if n.startswith("HERMES_KANBAN")]:
                patch.delenv(name)
            patch.setenv("HERMES_HOME", str(self.home.path))
            self.mirror = KanbanMirror(StoreCardBook(self.store))
            self._live()
            for outcome, goal, reason in OUTCOMES:
                self._ended(outcome, goal, reason)
        self.dashboard = Dashboard(self.home)

    def close(self) -> None:
        """End the dashboard, at once: it waits for its streams, and those never notice that their readers have left."""
        self.dashboard.process.kill()
        self.dashboard.close()

    def client(self, *, token: str = TOKEN) -> httpx.Client:
        """An HTTP client of the dashboard, as Switch UI is one: with a bearer token, or none where it is empty."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.dashboard.url, headers=headers, timeout=30)

    # The states ---------------------------------------------------------------------------------------

    def _live(self) -> None:
        self._new("queued", "add a page for refunds")
        self._running("running", "make the login tests pass")
        self._running("paused", "port the parser", status="paused", reason="paused by a person")
        waits = {"status": "paused", "reason": "waiting for approval of the executor"}
        self._running("approval", "drop Python 3.10", **waits)

    def _new(self, name: str, goal: str) -> int:
        number = self.runs[name] = self.seeds.new(goal=goal, workspace=f"/srv/projects/{name}", session=SESSION)
        self._show(number)
        return number

    def _running(self, name: str, goal: str, **waits: str) -> None:
        """A red first round; then the second is at work, or the run waits for a person."""
        number = self._begun(name, goal)
        self._first_round(number)
        if waits:
            self._change(number, **waits)
            return
        # Cut off once: this is its second attempt.
        for _ in range(2):
            self.store.open_step(number, 3, step="executor", role="executor", iteration=2)
            self._show(number)

    def _begun(self, name: str, goal: str) -> int:
        number = self._new(name, goal)
        self._change(number, status="running", started_at=self.seeds.clock())
        return number

    def _first_round(self, number: int) -> None:
        self._step(number, 1, "executor", 1, report=report(StepVerdict.PASS, "Mended add()."))
        output = self.home.root / f"output-{number}.txt"
        output.write_text("a line of output\n" * 2_000)
        said = report(StepVerdict.PASS, "All green.")
        self._step(number, 2, "verify", 1, report=said, evidence=[pytest_evidence(13, output_path=str(output))])

    def _step(self, number: int, index: int, name: str, iteration: int, **left: Any) -> None:
        self.store.open_step(number, index, step=name, role=name, iteration=iteration)
        self._show(number)
        self.seeds.step(number, index, name, iteration, **left)
        # It was opened before it was closed: one attempt, not two.
        self.store.update_step(number, index, attempt=1)
        self._show(number)

    def _ended(self, outcome: RunOutcome, goal: str, reason: str) -> None:
        number = self._begun(outcome.value, goal)
        if outcome is RunOutcome.BLOCKED:
            asked = report(StepVerdict.BLOCKED, "I need to know more.", open_questions=(QUESTION,))
            self._step(number, 1, "executor", 1, report=asked, status=StepStatus.BLOCKED)
        else:
            self._first_round(number)
            self._last_round(number, outcome)
        self.store.end_run(number, outcome, reason=reason, question=QUESTION if outcome is RunOutcome.BLOCKED else "")
        self._show(number)

    def _last_round(self, number: int, outcome: RunOutcome) -> None:
        status = {RunOutcome.CANCELLED: StepStatus.CANCELLED, RunOutcome.FAILED: StepStatus.FAILED}.get(outcome)
        if status is not None:
            self._step(number, 3, "executor", 2, status=status)
            return
        self._step(number, 3, "executor", 2, report=report(StepVerdict.PASS, "Mended sub(), too."))
        green = outcome in (RunOutcome.VERIFIED, RunOutcome.UNVERIFIED)
        said = report(StepVerdict.PASS if green else StepVerdict.FAIL, "Looked again.")
        self._step(number, 4, "verify", 2, report=said, evidence=[pytest_evidence(15 if green else 14)])

    def _change(self, number: int, **fields: object) -> None:
        self.store.update_run(number, **fields)
        self._show(number)

    def _show(self, number: int) -> None:
        report = self.mirror.sync(views.view(self.store, number), whole=False)
        assert report.problems == ()


Fetch = Callable[[str], Any]


def fetching(client: httpx.Client) -> Fetch:
    """Reads a route of the board's API: the JSON of an answer that is 200."""

    def fetch(path: str) -> Any:
        answer = client.get(f"/api/plugins/kanban/{path}")
        assert answer.status_code == 200, (path, answer.status_code, answer.text)
        return json.loads(answer.text)

    return fetch
