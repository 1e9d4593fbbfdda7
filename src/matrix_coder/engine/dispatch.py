"""One attempt at a step: a process of its own, watched until it has answered, was told to stop, or ran out of time."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.delegation import CallKind, DelegateCall, ProviderProblem, read_delegate
from ..core.models import StepReport, Usage
from ..core.serde import load_report
from .procs import COOKIE, end_everything, host_environment, started_at

LAUNCHER = Path(__file__).resolve().parent.parent / "launch.py"
_POLL_S = 0.1
_MAX_LINE = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a step's process needs to know. `directory` is where it works: the workspace, or a copy of it."""

    cookie: str
    role: str
    writes: bool
    task: str
    context: str
    workspace: Path
    directory: Path
    record: Path
    limit_s: float


@dataclass(slots=True)
class Attempt:
    """What an attempt came to.

    `finished` when the process said that it was through; `stopped` says why the engine ended it before; neither
    when it died. `exit_code` tells how then: the engine ends what is left of a finished process, too.
    """

    report: StepReport | None = None
    problem: ProviderProblem | None = None
    calls: list[DelegateCall] = field(default_factory=list)
    session: str = ""
    refused: list[str] = field(default_factory=list)
    stopped: str = ""
    finished: bool = False
    exit_code: int | None = None

    @property
    def usage(self) -> Usage:
        return sum((c.usage for c in self.calls), Usage())


def run_attempt(
    job: Job,
    *,
    on_start: Callable[[int, float], None],
    on_event: Callable[[str, dict[str, Any]], None],
    stop: Callable[[], str],
) -> Attempt:
    """Run one attempt to its end; nothing that it started is left when this returns.

    `on_start` is told pid and start time before the process does anything; `on_event` each thing the child
    does; `stop` is asked a few times a second and answers with a reason to end the attempt at once.
    """
    job.record.mkdir(parents=True, exist_ok=True)
    job_file = job.record / "job.json"
    job_file.write_text(json.dumps(_job_data(job), ensure_ascii=False, indent=1), encoding="utf-8")
    (job.record / "prompt.md").write_text(job.context, encoding="utf-8")
    attempt = Attempt()
    channel_r, channel_w = os.pipe()
    lease_r, lease_w = os.pipe()
    try:
        with (job.record / "process.log").open("wb") as log:
            process = _spawn(job, job_file, channel_w, lease_r, log)
        os.close(channel_w)
        os.close(lease_r)
        started = started_at(process.pid)
        on_start(process.pid, started)
        try:
            _follow(process, channel_r, attempt, job.limit_s, on_event, stop)
        finally:
            end_everything(job.cookie, pid=process.pid, started=started)
            attempt.exit_code = process.wait()
    finally:
        os.close(lease_w)
        os.close(channel_r)
    return attempt


def _job_data(job: Job) -> dict[str, object]:
    return {
        "cookie": job.cookie,
        "role": job.role,
        "writes": job.writes,
        "task": job.task,
        "context": job.context,
        "workspace": str(job.workspace),
        "directory": str(job.directory),
    }


def _spawn(job: Job, job_file: Path, channel: int, lease: int, log: Any) -> subprocess.Popen[bytes]:
    env = host_environment(os.environ) | {
        COOKIE: job.cookie,
        # The host's safe default for a flagged command: denied when there is nobody to ask.
        "HERMES_INTERACTIVE": "1",
        # The engine runs the checks itself; the host's own nudges would only cost model calls.
        "HERMES_VERIFY_ON_STOP": "0",
        "TERMINAL_CWD": str(job.directory),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.Popen(
        [sys.executable, str(LAUNCHER), "step", str(job_file), str(channel), str(lease)],
        cwd=job.directory,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        pass_fds=(channel, lease),
        start_new_session=True,
    )


def _follow(
    process: subprocess.Popen[bytes],
    channel: int,
    attempt: Attempt,
    limit_s: float,
    on_event: Callable[[str, dict[str, Any]], None],
    stop: Callable[[], str],
) -> None:
    deadline = time.monotonic() + limit_s
    for message in _messages(channel, process, lambda: time.monotonic() > deadline or bool(stop())):
        kind = str(message.pop("kind", ""))
        if kind == "end":
            attempt.finished = True
            return
        _take(attempt, kind, message)
        if kind in ("tool", "child", "report"):
            on_event(kind, message)
    if process.poll() is None:
        attempt.stopped = stop() or f"the step ran into its limit of {limit_s:g} s"


def _messages(channel: int, process: subprocess.Popen[bytes], ended: Callable[[], bool]) -> Iterator[dict[str, Any]]:
    """The messages as they come, until the process ends or `ended()`."""
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(channel, selectors.EVENT_READ)
        while not ended():
            if not selector.select(timeout=_POLL_S):
                if process.poll() is not None:
                    return
                continue
            chunk = os.read(channel, 65_536)
            if not chunk:
                return
            *lines, pending = (pending + chunk).split(b"\n")
            if len(pending) > _MAX_LINE:
                return
            for line in lines:
                with suppress(ValueError):
                    yield json.loads(line)


def _take(attempt: Attempt, kind: str, message: dict[str, Any]) -> None:
    if kind == "report" and attempt.report is None:
        attempt.report = load_report(message["report"])
    elif kind == "child":
        attempt.session = str(message.get("session") or "")
    elif kind == "tool" and message.get("refused"):
        attempt.refused.append(f"{message.get('name')}: {message.get('preview')}")
    elif kind == "call":
        error = message.get("error")
        problem = ProviderProblem(status=error.get("status"), words=str(error.get("words"))) if error else None
        call = read_delegate(str(message.get("answer")), problem=problem)
        attempt.calls.append(call)
        attempt.problem = problem if call.kind is CallKind.PROVIDER_ERROR else None
