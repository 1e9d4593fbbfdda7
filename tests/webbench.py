"""A real dashboard over a home whose store holds runs of every kind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx

from matrix_coder.core.models import (
    Evidence,
    Finding,
    RunOutcome,
    Severity,
    StepReport,
    StepStatus,
    StepVerdict,
    Unit,
    Usage,
)
from matrix_coder.core.names import Workflow
from matrix_coder.core.registry import load_workflow
from matrix_coder.core.render import report_markdown
from matrix_coder.core.serde import dump
from matrix_coder.core.units import UnitState
from matrix_coder.engine import views
from matrix_coder.engine.checks import Check, run_check
from matrix_coder.engine.client import Limits
from matrix_coder.engine.merge import Came
from matrix_coder.engine.paths import run_dir, state_dir
from matrix_coder.engine.spawn import worker_pid
from matrix_coder.engine.store import Store
from matrix_coder.engine.workspace import Trees
from matrix_coder.hermes.page_link import link_page
from matrix_coder.testing import HermesHome

TOKEN = "a-token-of-this-test"
API = "/api/plugins/matrix_coder/v1"
READY = re.compile(r"HERMES_DASHBOARD_READY port=(\d+)")


class Dashboard:
    """A running `hermes dashboard` of one home."""

    def __init__(
        self, home: HermesHome, *, program: Sequence[str] = (), env: Mapping[str, str] | None = None, port: int = 0
    ) -> None:
        self.home = home
        link_page(home.path)
        words = ["dashboard", "--no-open", "--skip-build", "--host", "127.0.0.1", "--port", str(port)]
        self.log: list[str] = []
        self.process = subprocess.Popen(
            [*(program or [str(Path(sys.executable).parent / "hermes")]), *words],
            env=home.environment({"HERMES_DASHBOARD_SESSION_TOKEN": TOKEN, **(env or {})}),
            cwd=home.cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._ready = threading.Event()
        self.port = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        if not self._ready.wait(60) or not self.port:
            self.close()
            raise AssertionError("the dashboard did not start:\n" + "".join(self.log[-40:]))

    def _read(self) -> None:
        for line in self.process.stdout or ():
            self.log.append(line)
            found = READY.search(line)
            if found:
                self.port = int(found[1])
                self._ready.set()
        self._ready.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, *, token: str = TOKEN) -> httpx.Client:
        """An HTTP client of the API; without a token when it is empty."""
        headers = {"X-Hermes-Session-Token": token} if token else {}
        return httpx.Client(base_url=self.url + API, headers=headers, timeout=120)

    def close(self) -> int:
        """End it as a person does; its exit code, -9 when it would not go."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join(5)
        if self.process.stdout:
            self.process.stdout.close()
        return self.process.returncode


def end_worker(home: Path, *, on_its_way: bool = False) -> None:
    """End the worker of a home, if it has one, and wait until it has gone; one `on_its_way` is waited for first."""
    lock = home / "matrix_coder" / "worker.lock"
    deadline = time.monotonic() + 30
    while on_its_way and not (lock.exists() and worker_pid(home)) and time.monotonic() < deadline:
        time.sleep(0.05)
    if not lock.exists():
        return
    pid = worker_pid(home)
    if pid:
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + 20
    while worker_pid(home) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not worker_pid(home)


@dataclass
class Clock:
    """Counts up from a start; real time moves it on."""

    now: float

    def __call__(self) -> float:
        return self.now


@dataclass
class Seeds:
    """Writes runs into a store, through the store's own calls, with real trees and checks where asked for."""

    home: Path
    clock: Clock = field(default_factory=lambda: Clock(time.time() - 40_000))

    def __post_init__(self) -> None:
        self.store = Store(self.home, clock=self.clock)
        self.source = load_workflow("ralph").source

    def new(
        self,
        *,
        goal: str,
        workspace: Path | str,
        check: str = "pytest -q",
        workflow: str = "ralph",
        session: str = "",
        limits: Limits | None = None,
    ) -> int:
        """A queued run; its number."""
        fields = {
            "workflow": workflow,
            "definition": load_workflow(workflow).source,
            "goal": goal,
            "workspace": str(workspace),
            "checks": json.dumps([asdict(Check(name="check-1", command=check))]),
            "limits": json.dumps(asdict(limits or Limits())),
        }
        return self.store.create_run(fields=fields, session_id=session)

    def step(
        self,
        number: int,
        index: int,
        name: str,
        iteration: int,
        *,
        report: StepReport | None = None,
        evidence: Sequence[Evidence] = (),
        usage: Usage | None = None,
        trees: tuple[str, str] = ("", ""),
        status: StepStatus = StepStatus.DONE,
        seconds: float = 60.0,
        role: str = "",
        came: Came | None = None,
    ) -> None:
        """One ended step with what it left; `came` is what a unit came to."""
        self.store.open_step(number, index, step=name, role=role or name, iteration=iteration)
        self.clock.now += seconds
        used = usage or Usage(input_tokens=9_200, output_tokens=1_340, seconds=seconds - 4, cost_usd=0.0477)
        self.store.update_step(
            number,
            index,
            status=status,
            report=json.dumps(dump(report), ensure_ascii=False) if report else None,
            evidence=json.dumps([dump(e) for e in evidence], ensure_ascii=False),
            usage=json.dumps(dump(used)),
            tree_before=trees[0],
            tree_after=trees[1],
            result=json.dumps(asdict(came)) if came else "{}",
            ended_at=self.clock(),
        )
        self.store.update_run(number, iteration=iteration)
        if report:
            self.store.event(
                number,
                "verdict",
                step=index,
                name=name,
                claimed=report.verdict,
                summary=report.summary,
                verified=[_brief(e) for e in evidence],
            )

    def repeat(self, number: int, count: int) -> None:
        """Copies of a run's first step, in one transaction, until it has `count` steps."""
        with self.store.transaction() as db:
            first = dict(db.execute("select * from steps where run_id = ? and number = 1", (number,)).fetchone())
            for i in range(2, count + 1):
                row = first | {"number": i, "iteration": 1 + i // 2, "started_at": first["started_at"] + 60 * i}
                row["ended_at"] = row["started_at"] + 50
                db.execute(
                    f"insert into steps ({', '.join(row)}) values ({', '.join('?' * len(row))})", tuple(row.values())
                )
        self.store.update_run(number, iteration=1 + count // 2)

    def ended(self, outcome: RunOutcome, goal: str, *, reason: str = "", **more: Any) -> int:
        """A run of two steps that ended like this, without files."""
        workspace = more.pop("workspace", "/srv/projects/shop")
        question = more.pop("question", "")
        number = self.new(goal=goal, workspace=workspace, **more)
        self.clock.now += 5
        self.store.update_run(number, status="running", started_at=self.clock())
        passed = outcome is RunOutcome.VERIFIED
        self.step(number, 1, "executor", 1, report=StepReport(verdict=StepVerdict.PASS, summary=f"Worked on: {goal}"))
        if outcome is not RunOutcome.BLOCKED:
            one = Evidence(
                name="check-1",
                command="pytest -q",
                exit_code=0 if passed else 1,
                duration_s=3.1,
                tree="5f" * 20,
                tail="1 failed" if not passed else "12 passed",
            )
            verdict = StepVerdict.PASS if passed else StepVerdict.FAIL
            self.step(number, 2, "verify", 1, report=StepReport(verdict=verdict, summary="Looked."), evidence=[one])
        self.store.end_run(number, outcome, reason=reason, question=question)
        self.clock.now += 120
        return number

    def mended(self, repo: Path, edits: Sequence[Mapping[str, str]], *, goal: str) -> int:
        """A verified run of real trees and real checks: one iteration for each set of edits."""
        number = self.new(goal=goal, workspace=repo, session="20261130_081500_3fa9c1")
        directory = run_dir(self.home, f"r{number}")
        trees = Trees(repo, directory)
        start = trees.record()
        baseline = self._check(repo, number, "baseline", start)
        self.store.update_run(
            number,
            status="running",
            started_at=self.clock(),
            start_tree=start,
            baseline=json.dumps([dump(baseline)]),
        )
        self.store.event(number, "baseline", checks=[_brief(baseline)])
        last, tree = baseline, start
        for turn, files in enumerate(edits, 1):
            before = trees.record()
            for name, text in files.items():
                (repo / name).parent.mkdir(parents=True, exist_ok=True)
                (repo / name).write_text(text, encoding="utf-8")
            tree = trees.record()
            did = StepReport(
                verdict=StepVerdict.PASS,
                summary=f"Changed {', '.join(sorted(files))}.",
                positive_observations=("The tests are small and clear.",),
                recommendation="Run the whole suite once more before you merge.",
            )
            self.step(number, 2 * turn - 1, "executor", turn, report=did, trees=(before, tree), seconds=95)
            last = self._check(repo, number, f"step-{2 * turn}", tree)
            self.step(
                number,
                2 * turn,
                "verify",
                turn,
                report=_said(last),
                evidence=[last],
                trees=(tree, tree),
                seconds=40,
            )
        (directory / "diff.patch").write_text(trees.diff(start, tree), encoding="utf-8", errors="surrogateescape")
        self.store.end_run(
            number,
            RunOutcome.VERIFIED,
            reason="`pytest -q` failed on the starting tree and passes now",
            final_tree=tree,
            changed=json.dumps(trees.changed(start, tree)),
            evidence=json.dumps([dump(last)]),
        )
        report = report_markdown(views.result(self.store, number), diff_stat=trees.stat(start, tree))
        (directory / "report.md").write_text(report, encoding="utf-8")
        self.clock.now += 300
        return number

    def fanned(self, repo: Path, *, goal: str) -> int:
        """An ended ultrawork run with a money budget: one unit merged, one failed and kept, one empty, one that read.

        Tokens of the unit that failed have no price.
        """
        number = self.new(goal=goal, workspace=repo, workflow="ultrawork", limits=Limits(cap=1, money_usd=2.0))
        trees = Trees(repo, run_dir(self.home, f"r{number}"))
        start, made = trees.record(), {}
        for name in ("api", "web"):
            (repo / f"{name}.py").write_text(f"def {name}() -> int:\n    return 1\n")
            made[name] = trees.record()
            (repo / f"{name}.py").unlink()
        trees.restore(made["api"], ["api.py"])
        checkout = state_dir(self.home) / "units" / f"r{number}" / "4-web"
        checkout.mkdir(parents=True)
        self.store.update_run(number, status="running", started_at=self.clock(), start_tree=start)
        plan = StepReport(verdict=StepVerdict.PASS, summary="Four units that can be done at once.", units=UNITS)
        self.step(number, 1, "plan", 1, report=plan)
        said = StepReport(verdict=StepVerdict.FAIL, summary="4 units: 1 merged, 1 done, 1 empty, 1 failed")
        self.step(number, 2, "units", 1, report=said, usage=Usage(), role="executor", seconds=0)
        came = (
            Came(unit="api", state=UnitState.MERGED, base=start, tree=made["api"], files=("api.py",)),
            Came(
                unit="web",
                state=UnitState.FAILED,
                base=start,
                tree=made["web"],
                files=("web.py",),
                checkout=str(checkout),
                why="red in its own checkout: `pytest -q` (1 failed)",
            ),
            Came(unit="docs", state=UnitState.EMPTY, base=start, tree=start, why="it changed nothing"),
            Came(unit="survey", state=UnitState.DONE, base=start, tree=start),
        )
        for index, (unit, one) in enumerate(zip(UNITS, came, strict=True), 3):
            self._unit(number, index, unit, one)
        self.store.update_step(number, 2, ended_at=self.clock())
        aggregate = StepReport(verdict=StepVerdict.PASS, summary="The seams hold.")
        self.step(number, 7, "aggregate", 1, report=aggregate, role="review")
        self.store.end_run(number, RunOutcome.FAILED, reason="1 of 4 units failed: web", final_tree=made["api"])
        self.clock.now += 300
        return number

    def _unit(self, number: int, index: int, unit: Unit, came: Came) -> None:
        failed = came.state is UnitState.FAILED
        used = Usage(input_tokens=4_100, output_tokens=600, seconds=50, cost_usd=0.0213)
        self.step(
            number,
            index,
            f"units/{unit.name}",
            1,
            report=StepReport(verdict=StepVerdict.PASS, summary=f"{unit.name} is as asked."),
            usage=Usage(input_tokens=4_100, output_tokens=600, seconds=50, unpriced_tokens=4_700) if failed else used,
            status=StepStatus.FAILED if failed else StepStatus.DONE,
            role=unit.role,
            came=came,
        )
        self.store.event(number, "unit", step=index, unit=unit.name, state=came.state, why=came.why)

    def _check(self, repo: Path, number: int, label: str, tree: str) -> Evidence:
        return run_check(
            Check(name="check-1", command="pytest -q"),
            workspace=repo,
            tree=tree,
            directory=run_dir(self.home, f"r{number}") / "checks" / label,
            cookie=f"{self.home}:seed/{label}",
            limit_s=60,
        )


def _brief(evidence: Evidence) -> dict[str, Any]:
    return {"command": evidence.command, "passed": evidence.passed, "counts": evidence.counts()}


def _said(evidence: Evidence) -> StepReport:
    """What a verifier says about a green or a red check."""
    if evidence.passed:
        return StepReport(verdict=StepVerdict.PASS, summary="The suite is green and the change is small.")
    return StepReport(
        verdict=StepVerdict.FAIL,
        summary="The suite is still red: add() subtracts.",
        findings=(
            Finding(severity=Severity.BLOCKER, summary="add() still subtracts its arguments.", file="calc.py", line=5),
            Finding(severity=Severity.NIT, summary="The docstring names a function that is gone."),
        ),
        open_questions=("Should a negative amount be refused?",),
        dropped_findings=1,
    )


UNITS = (
    Unit(name="api", role="executor", goal="Serve the prices.", files=("api.py", "tests/test_api.py")),
    Unit(name="web", role="executor", goal="Show the prices.", files=("web.py",)),
    Unit(name="docs", role="executor", goal="Tell of the prices.", files=("docs/",)),
    Unit(name="survey", role="explore", goal="Find who else shows prices.", topic="where prices are shown today"),
)
OUTCOMES = (
    (RunOutcome.VERIFIED, "make the login tests pass", "`pytest -q` failed on the starting tree and passes now"),
    (RunOutcome.UNVERIFIED, "tidy the CSS of the cart", "nothing broke; no check covers the goal (all were green)"),
    (RunOutcome.CAP_REACHED, "speed up the search", "5 of 5 iterations used; at the last, `pytest -q` failed (3/9)"),
    (RunOutcome.STALLED, "port the parser to the new grammar", "the same 4 tests failed twice on the same tree"),
    (RunOutcome.BLOCKED, "add a payment provider", "the executor needs an answer"),
    (RunOutcome.BUDGET, "translate every page", "2,000,312 of 2,000,000 tokens used"),
    (RunOutcome.TAMPERED, "make CI green", "tests that ran at the start no longer run: test_cart::test_total"),
    (RunOutcome.CANCELLED, "rename the package", "cancelled by a person"),
    (RunOutcome.FAILED, "update the dependencies", "the executor step could not be done: HTTP 401 from the model"),
)


def seed_outcomes(seeds: Seeds) -> None:
    """One ended run for each outcome, of each workflow in turn."""
    workflows = list(Workflow)
    for at, (outcome, goal, reason) in enumerate(OUTCOMES):
        question = "Which provider, and is its sandbox reachable from here?" if outcome is RunOutcome.BLOCKED else ""
        workflow = workflows[at % len(workflows)].value
        seeds.ended(outcome, goal, reason=reason, question=question, workflow=workflow)


def many(seeds: Seeds, count: int) -> None:
    """`count` plain ended runs."""
    words = ("fix the flaky test", "add a page for refunds", "document the API", "drop Python 3.10", "cache prices")
    outcomes = list(RunOutcome)
    with seeds.store.transaction() as db:
        for i in range(count):
            at = seeds.clock() - (count - i) * 60
            db.execute(
                "insert into runs (workflow, definition, goal, workspace, checks, limits, status, outcome, reason, "
                "iteration, created_at, started_at, ended_at) "
                "values ('ralph', ?, ?, ?, ?, ?, 'ended', ?, '', ?, ?, ?, ?)",
                (
                    seeds.source,
                    f"{words[i % len(words)]} ({i + 1})",
                    f"/srv/projects/p{i % 7}",
                    "[]",
                    json.dumps(asdict(Limits())),
                    outcomes[i % len(outcomes)].value,
                    1 + i % 5,
                    at,
                    at + 1,
                    at + 50,
                ),
            )
