"""A place to run workflows for real: a repository, a Hermes home, a scripted model, a worker that is ended at last."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from matrix_coder.core.models import RunView, SpecialistResult
from matrix_coder.engine.client import Client, Limits, Options, Start
from matrix_coder.engine.procs import COOKIE
from matrix_coder.engine.spawn import worker_pid
from matrix_coder.testing import HermesHome, Rule, ScriptedModel

EXECUTOR = r"step \d+: executor"
VERIFY = r"step \d+: verify"
MEND = {
    "tool": "patch",
    "args": {"mode": "replace", "path": "calc.py", "old_string": "a - b", "new_string": "a + b"},
}


def report(verdict: str, summary: str = "", **more: Any) -> dict[str, Any]:
    """A scripted model's call of the report tool."""
    return {"tool": "matrix_report", "args": {"verdict": verdict, "summary": summary or verdict.lower(), **more}}


def says(verdict: str, *before: dict[str, Any], **more: Any) -> tuple[dict[str, Any], ...]:
    """A whole script: some tool calls, the report, a closing word."""
    return (*before, report(verdict, **more), {"text": "done"})


@dataclass
class RunBench:
    """Starts runs and looks at what they left."""

    model: ScriptedModel
    home: HermesHome
    repo: Path
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def client(self) -> Client:
        return Client(self.home.path)

    def start(self, *, goal: str = "make the tests pass", session: str = "", cap: int = 5, **more: Any) -> RunView:
        limits = Limits(cap=cap, **more.pop("limits", {}))
        start = Start(
            workflow=more.pop("workflow", "ralph"),
            goal=goal,
            workspace=self.repo,
            session_id=session,
            commands=more.pop("checks", ("pytest -q",)),
            limits=limits,
            options=Options(**more.pop("options", {})),
        )
        assert not more, f"unknown: {more}"
        return self.client.start(start)

    def finish(self, run_id: str, timeout_s: float = 120) -> SpecialistResult:
        ended = self.client.wait(run_id, timeout_s=timeout_s, on_event=lambda k, d: self.events.append((k, dict(d))))
        assert ended.outcome is not None, f"{run_id} did not end within {timeout_s} s: {ended}"
        return self.client.result(run_id)

    def run(self, **options: Any) -> SpecialistResult:
        return self.finish(self.start(**options).run_id)

    def wait_for(self, what: Callable[[], Any], timeout_s: float = 60) -> Any:
        """The first true answer of `what`."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            found = what()
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"not seen within {timeout_s} s")

    def event_of(self, number: int, kind: str, **fields: Any) -> dict[str, Any]:
        """The first event of this kind with these fields, once it is there."""

        def look() -> dict[str, Any] | None:
            import json

            for row in self.client.store.events(number):
                data = json.loads(row["data"])
                if row["kind"] == kind and all(data.get(k) == v for k, v in fields.items()):
                    return dict(data)
            return None

        found: dict[str, Any] = self.wait_for(look)
        return found

    def worker(self) -> int:
        return worker_pid(self.home.path)

    def kill_worker(self) -> int:
        """`kill -9` for the worker; its pid."""
        pid = self.worker()
        os.kill(pid, signal.SIGKILL)
        return pid

    def left_over(self) -> list[psutil.Process]:
        """Processes of any attempt of this home that are still there."""
        mark = str(self.home.path)
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(COOKIE, "").startswith(mark) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    def workers(self) -> list[psutil.Process]:
        """The workers of this home, those that are only starting, too."""
        words = ["worker", str(self.home.path)]
        return [p for p in psutil.process_iter(["cmdline"]) if (p.info["cmdline"] or [])[-2:] == words]

    def close(self) -> None:
        told: set[int] = set()

        def gone() -> bool:
            for process in self.workers():
                if process.pid not in told:
                    told.add(process.pid)
                    process.terminate()
            return not self.workers()

        self.wait_for(gone, timeout_s=40)
        assert not self.left_over()


def scripts(**by_step: Sequence[Sequence[dict[str, Any]]]) -> list[Rule]:
    """Scripts for each step's first, second, ... turn; the last one repeats."""
    return [
        Rule(match=rf"step \d+: {name}\b", attempts=tuple(tuple(s) for s in turns)) for name, turns in by_step.items()
    ]


Bench = Callable[..., RunBench]


def rules(executor: Sequence[Sequence[dict[str, Any]]], verify: Sequence[Sequence[dict[str, Any]]]) -> list[Rule]:
    """Scripts for the executor's and the verifier's first, second, ... turn; the last one repeats."""
    return [
        Rule(match=EXECUTOR, attempts=tuple(tuple(s) for s in executor)),
        Rule(match=VERIFY, attempts=tuple(tuple(s) for s in verify)),
    ]
