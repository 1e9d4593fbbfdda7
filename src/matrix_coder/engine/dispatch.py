"""One attempt at a step: a process of its own, watched until it has answered, was told to stop, or ran out of time."""

from __future__ import annotations

import json
import os
import secrets
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from ..core.delegation import CallKind, DelegateCall, ProviderProblem, read_delegate
from ..core.models import StepReport, Usage
from ..core.serde import load_report
from . import forkserver
from .guarded import Guarded, Running
from .procs import COOKIE, host_environment

LAUNCHER = Path(__file__).resolve().parent.parent / "launch.py"
_POLL_S = 0.1
_MAX_LINE = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a step's process needs to know. `directory` is where it works: the workspace, or a copy of it.

    With `layer`, a folder, it works in the workspace through a layer of its own, and leaves what it writes in there.
    With `units` its report may hold the units of a plan.
    """

    cookie: str
    role: str
    writes: bool
    task: str
    context: str
    workspace: Path
    directory: Path
    record: Path
    limit_s: float
    environment: dict[str, str] = field(default_factory=dict)
    units: bool = False
    layer: Path | None = None


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
    forged: int = 0
    discarded: list[str] = field(default_factory=list)
    seconds: float = 0.0
    streamed: Usage = Usage()
    exit_code: int | None = None

    @property
    def usage(self) -> Usage:
        """Tokens as the host counted them at the end, or as they came in where there was no end; wall clock; money.

        Money is what came in, priced call by call. Tokens that only the end told of have no price.
        """
        told, came = sum((c.usage for c in self.calls), Usage()), self.streamed
        best = told if told.tokens >= came.tokens else came
        unseen = best.tokens - came.tokens
        return replace(
            best, seconds=self.seconds, cost_usd=came.cost_usd, unpriced_tokens=came.unpriced_tokens + unseen
        )


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
    job.record.mkdir(mode=0o700, parents=True, exist_ok=True)
    job_file = job.record / "job.json"
    job_file.write_text(json.dumps(_job_data(job), ensure_ascii=False, indent=1), encoding="utf-8")
    (job.record / "prompt.md").write_text(job.context, encoding="utf-8")
    attempt = Attempt()
    token = secrets.token_hex(16)
    begun = time.monotonic()
    reading, writing = os.pipe()
    try:
        try:
            with (job.record / "process.log").open("wb") as log:
                process = _spawn(job, job_file, writing, log, stop)
        finally:
            os.close(writing)
        try:
            on_start(process.pid, process.started)
            # Nobody else knows the word that its messages carry.
            process.tell(f"{token}\n".encode())
            _follow(process, reading, token, attempt, job.limit_s, on_event, stop)
        finally:
            attempt.exit_code = process.end()
            attempt.seconds = time.monotonic() - begun
    finally:
        os.close(reading)
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
        "units": job.units,
        "layer": str(job.layer or ""),
    }


def step_environment(source: Mapping[str, str]) -> dict[str, str]:
    """What every step's process has in its environment, before it loads the host."""
    return host_environment(source) | {
        # The host's safe default for a flagged command: denied when there is nobody to ask.
        "HERMES_INTERACTIVE": "1",
        # The engine runs the checks itself; the host's own nudges would only cost model calls.
        "HERMES_VERIFY_ON_STOP": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _spawn(job: Job, job_file: Path, channel: int, log: IO[bytes], stop: Callable[[], str]) -> Running:
    temporary = job.record / "tmp"
    temporary.mkdir(mode=0o700, exist_ok=True)
    own = {COOKIE: job.cookie, "TERMINAL_CWD": str(job.directory), "TMPDIR": str(temporary)}
    wanted = forkserver.Wanted(
        job_file=job_file,
        directory=job.directory,
        environment=step_environment(os.environ) | own | job.environment,
        cookie=job.cookie,
        protect=job.workspace if job.layer or job.directory != job.workspace else None,
        keep=[job.directory, temporary],
        layer=job.layer,
    )
    server = forkserver.current()
    if server is not None and server.wait(stop):
        forked = server.fork(wanted, channel=channel, log=log.fileno(), stop=stop)
        if forked is not None:
            return forked
    return Guarded(
        [sys.executable, str(LAUNCHER), "step", str(job_file), str(channel)],
        cookie=wanted.cookie,
        protect=wanted.protect,
        keep=wanted.keep,
        layer=wanted.layer,
        cwd=wanted.directory,
        env=dict(wanted.environment),
        stdin=subprocess.PIPE,
        stdout=log,
        pass_fds=(channel,),
    )


def _follow(
    process: Running,
    channel: int,
    token: str,
    attempt: Attempt,
    limit_s: float,
    on_event: Callable[[str, dict[str, Any]], None],
    stop: Callable[[], str],
) -> None:
    deadline = time.monotonic() + limit_s
    for message in _messages(channel, process, lambda: time.monotonic() > deadline or bool(stop())):
        if message.pop("token", None) != token:
            # Somebody else has found the pipe. What it says is not the step's.
            attempt.forged += 1
            continue
        kind = str(message.pop("kind", ""))
        if kind == "end":
            attempt.finished = True
            return
        _take(attempt, kind, message)
        if kind in ("tool", "child", "report", "discarded"):
            on_event(kind, message)
    if process.running():
        attempt.stopped = stop() or f"the step ran into its limit of {limit_s:g} s"


def _messages(channel: int, process: Running, ended: Callable[[], bool]) -> Iterator[dict[str, Any]]:
    """The messages as they come, until the process ends or `ended()`."""
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(channel, selectors.EVENT_READ)
        while not ended():
            if not selector.select(timeout=_POLL_S):
                if not process.running():
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
                    message = json.loads(line)
                    if isinstance(message, dict):
                        yield message


def _take(attempt: Attempt, kind: str, message: dict[str, Any]) -> None:
    if kind == "report" and attempt.report is None:
        attempt.report = load_report(message["report"])
    elif kind == "usage":
        attempt.streamed += Usage(
            input_tokens=int(message["input"]),
            output_tokens=int(message["output"]),
            cost_usd=float(message["cost"]),
            unpriced_tokens=int(message["unpriced"]),
        )
    elif kind == "child":
        attempt.session = str(message.get("session") or "")
    elif kind == "discarded":
        attempt.discarded += [str(f) for f in message.get("files") or []]
    elif kind == "tool" and message.get("refused"):
        attempt.refused.append(f"{message.get('name')}: {message.get('preview')}")
    elif kind == "call":
        error = message.get("error")
        problem = ProviderProblem(status=error.get("status"), words=str(error.get("words"))) if error else None
        call = read_delegate(str(message.get("answer")), problem=problem)
        attempt.calls.append(call)
        attempt.problem = problem if call.kind is CallKind.PROVIDER_ERROR else None
