"""What chat, command line and dashboard do with runs: start, wait, look, cancel. None of them ever executes one.

A start is one row in the store. The worker, started on demand, finds it there; if it dies, the next one does.
"""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from ..core.errors import EngineMissing, InputError, WorkspaceRefused
from ..core.models import RunStatus, RunView, SpecialistResult
from ..core.names import Workflow
from ..core.registry import load_persona, load_workflow
from . import checks, views
from .paths import state_dir
from .spawn import ensure_worker
from .store import Store
from .workspace import find_workspace

INSTALL_ENGINE = 'pip install "dbos>=3.2,<3.3"'
_POLL_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a run may use. Seconds, tokens; `cap` counts iterations started."""

    cap: int = 5
    budget_s: float = 7_200.0
    tokens: int = 2_000_000
    step_s: float = 1_800.0
    check_s: float = 600.0

    def words(self) -> str:
        """The limits in one line, as they are shown at the start."""
        return f"cap {self.cap}, {self.budget_s / 60:g} min, {self.tokens:,} tokens, {self.step_s / 60:g} min a step"


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """A run to start. `workspace` is any directory inside the repository."""

    workflow: str
    goal: str
    workspace: Path
    session_id: str = ""
    domain: str = ""
    commands: tuple[str, ...] = ()
    limits: Limits = Limits()

    def check(self) -> tuple[Path, tuple[checks.Check, ...]]:
        """The repository's root and the run's checks. Raises InputError for whatever can't be started."""
        _require_workflow(self.workflow)
        if not self.goal.strip():
            raise InputError(
                "a goal for the workflow",
                "none",
                f"say what should be true, such as `matrix {self.workflow}: make the tests pass`",
            )
        if self.domain:
            load_persona(self.domain, "domain")
        workspace = find_workspace(self.workspace)
        return workspace, checks.resolve(self.commands, workspace)


class Client:
    """Runs under one HERMES_HOME. Raises StoreError when the store can't be used."""

    def __init__(self, home: Path | None = None) -> None:
        self.store = Store(home)

    def start(self, start: Start) -> RunView:
        """The run, queued, with a worker on its way. Raises InputError with one line that says what to do."""
        require_engine()
        workspace, found = start.check()
        definition = load_workflow(start.workflow)
        if state_dir(self.store.home).resolve().is_relative_to(workspace):
            raise WorkspaceRefused(
                "a workspace that does not hold the run store",
                f"{workspace}, which holds {self.store.path}",
                "point HERMES_HOME outside the repository",
            )
        number = self.store.create_run(
            fields={
                "workflow": definition.name,
                "definition": definition.source,
                "goal": start.goal,
                "domain": start.domain,
                "workspace": str(workspace),
                "checks": json.dumps([asdict(c) for c in found]),
                "limits": json.dumps(asdict(start.limits)),
            },
            session_id=start.session_id,
        )
        ensure_worker(self.store.home)
        return views.view(self.store, number)

    def show(self, run_id: str) -> RunView:
        """One run with its steps. Raises RunUnknown."""
        return views.view(self.store, views.run_number(run_id))

    def runs(self, *, session_id: str = "", limit: int = 20) -> list[RunView]:
        """The newest runs, newest first."""
        return views.recent(self.store, session_id=session_id, limit=limit)

    def result(self, run_id: str) -> SpecialistResult:
        """The result of a run that has ended. Raises RunUnknown; ValueError while it is live."""
        return views.result(self.store, views.run_number(run_id))

    def cancel(self, run_id: str, why: str = "") -> RunView:
        """Ask for the run to stop; the worker ends its processes. An ended run stays as it ended."""
        number = views.run_number(run_id)
        run = views.view(self.store, number)
        if run.status is not RunStatus.ENDED:
            self.store.control(number, "cancel", why)
            ensure_worker(self.store.home)
        return run

    def wait(
        self,
        run_id: str,
        *,
        timeout_s: float | None = None,
        on_event: Callable[[str, dict[str, object]], None] | None = None,
    ) -> RunView:
        """The run once it has ended, or as it is at the time-out. `on_event` gets each event's kind and data."""
        number = views.run_number(run_id)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        seen, looks = 0, 0
        while True:
            ended = self.store.run_row(number)["status"] == RunStatus.ENDED
            for row in self.store.events(number, after=seen):
                seen = row["id"]
                if on_event is not None:
                    on_event(row["kind"], json.loads(row["data"]))
            if ended or (deadline is not None and time.monotonic() >= deadline):
                return views.view(self.store, number)
            looks += 1
            if looks % 50 == 0:
                # A worker that was killed is replaced by whoever waits for its runs.
                ensure_worker(self.store.home)
            time.sleep(_POLL_S)


def require_engine() -> None:
    """Raises EngineMissing, with the one line that installs it, where DBOS is not importable."""
    if importlib.util.find_spec("dbos") is None:
        raise EngineMissing("the durable engine (DBOS) for workflows", "it is not installed", f"run: {INSTALL_ENGINE}")


def _require_workflow(name: str) -> None:
    if name not in {w.value for w in Workflow}:
        raise InputError(f"a workflow, one of {', '.join(Workflow)}", name or "nothing", "name one of them")
    if name != Workflow.RALPH:
        raise InputError("a workflow that this version drives (ralph)", name, "start it as ralph")


def run_workflow(  # noqa: PLR0913 - the seed's own signature, and its options by keyword
    workflow: str,
    goal: str,
    session_id: str,
    *,
    workspace: Path | None = None,
    check: tuple[str, ...] = (),
    domain: str = "",
    limits: Limits | None = None,
    home: Path | None = None,
    on_event: Callable[[str, dict[str, object]], None] | None = None,
) -> SpecialistResult:
    """Start a run, wait for its outcome and return its result."""
    client = Client(home)
    run = client.start(
        Start(
            workflow=workflow,
            goal=goal,
            session_id=session_id,
            workspace=workspace or Path.cwd(),
            commands=check,
            domain=domain,
            limits=limits or Limits(),
        )
    )
    client.wait(run.run_id, on_event=on_event)
    return client.result(run.run_id)
