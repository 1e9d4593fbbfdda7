"""What chat, command line and dashboard do with runs: start, wait, look, cancel. None of them ever executes one.

A start is one row in the store. The worker, started on demand, finds it there; if it dies, the next one does.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ..core.errors import EngineMissing, InputError, MatrixError, RunUnknown, StoreError, WorkspaceRefused
from ..core.models import RunOutcome, RunStatus, RunView, SpecialistResult
from ..core.names import Workflow
from ..core.registry import WorkflowDefinition, load_persona, load_workflow
from . import aftermath, checks, isolated, kept, undo, views
from .merge import Came
from .paths import state_dir
from .plan import Limits, Options, raise_stored
from .procs import base_environment
from .spawn import ensure_worker, worker_trouble
from .store import Store
from .units import APPROVE_MERGE
from .ways import state_words, way_on
from .workspace import find_workspace

__all__ = ["Client", "Limits", "Options", "Start", "require_engine", "run_workflow"]

INSTALL_ENGINE = 'pip install "dbos>=3.2,<3.3"'
_POLL_S = 0.1
_WAITS = "waiting for approval"


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
    options: Options = Options()

    def check(self) -> tuple[Path, tuple[checks.Check, ...]]:
        """The repository's root and the run's checks. Raises InputError for whatever can't be started."""
        _require_workflow(self.workflow)
        _require_text(self.goal, "a goal")
        _require_text(str(self.workspace), "a path")
        if not self.goal.strip():
            raise InputError(
                "a goal for the workflow",
                "none",
                f"say what should be true, such as `matrix {self.workflow}: make the tests pass`",
            )
        if self.domain:
            load_persona(self.domain, "domain")
        steps = load_workflow(self.workflow).steps
        for name in self.options.approve:
            merges = name == APPROVE_MERGE and any(s.fan_out for s in steps.values())
            if name not in steps and not merges:
                raise InputError(f"approve= to name a step of {self.workflow} ({', '.join(steps)})", name, "name one")
        if shutil.which("git") is None:
            raise InputError("git on PATH", "none", "install git; `matrix-coder doctor` looks at what else a run needs")
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
        options, place = start.options, workspace
        if options.isolate:
            place = isolated.open_isolated(self.store.home, workspace)
            options = replace(options, origin=str(workspace))
        try:
            number = self._create(start, definition, place, found, options)
        except MatrixError:
            if options.isolate:
                isolated.remove_isolated(place)
            raise
        ensure_worker(self.store.home)
        return views.view(self.store, number)

    def _create(
        self,
        start: Start,
        definition: WorkflowDefinition,
        workspace: Path,
        found: tuple[checks.Check, ...],
        options: Options,
    ) -> int:
        return self.store.create_run(
            fields={
                "workflow": definition.name,
                "definition": definition.source,
                "goal": start.goal,
                "domain": start.domain,
                "workspace": str(workspace),
                "checks": json.dumps([asdict(c) for c in found]),
                "limits": json.dumps(asdict(start.limits)),
                "options": json.dumps(asdict(options)),
                # The worker may have been started from another shell; what a check finds on PATH is this one's.
                "environment": json.dumps(base_environment(os.environ)),
            },
            session_id=start.session_id,
        )

    def take(self, run_id: str) -> tuple[str, ...]:
        """Bring what an isolated run changed into its repository; the paths. Raises InputError where it can't be."""
        return isolated.take(self.store, known_number(run_id))

    def show(self, run_id: str) -> RunView:
        """One run with its steps. Raises RunUnknown."""
        return views.view(self.store, known_number(run_id))

    def runs(self, *, session_id: str = "", limit: int = 20) -> list[RunView]:
        """The newest runs, newest first."""
        return views.recent(self.store, session_id=session_id, limit=limit)

    def result(self, run_id: str) -> SpecialistResult:
        """The result of a run that has ended. Raises RunUnknown; ValueError while it is live."""
        return views.result(self.store, known_number(run_id))

    def cancel(self, run_id: str, why: str = "") -> RunView:
        """Ask for the run to stop; the worker ends its processes. An ended run stays as it ended."""
        number = known_number(run_id)
        run = views.view(self.store, number)
        if run.status is not RunStatus.ENDED:
            self.store.control(number, "cancel", why)
            if run.status is RunStatus.PAUSED:
                # Held runs have no process; the driver ends them as it would have at their next step.
                self.store.reopen(number)
            ensure_worker(self.store.home)
        return run

    def pause(self, run_id: str) -> RunView:
        """Ask for the run to wait before its next step. Raises InputError for a run that has ended."""
        number, run = self._live(run_id, "pause")
        if run.status is not RunStatus.PAUSED:
            self.store.control(number, "pause")
        return run

    def steer(self, run_id: str, text: str) -> RunView:
        """Tell the next step something. Raises InputError for a run that has ended, or for no text."""
        number, run = self._live(run_id, "steer")
        self.store.control(number, "steer", _some_text(text, "a sentence for the next step"))
        return run

    def resume(self, run_id: str) -> RunView:
        """Let a run go on that is paused or was asked to pause, or give one that failed its last step again."""
        number = known_number(run_id)
        run = views.view(self.store, number)
        if run.outcome is RunOutcome.FAILED:
            return self._go_on(number, redo=True)
        if run.status in (RunStatus.QUEUED, RunStatus.RUNNING) and self._is_to_pause(number):
            self.store.apply_controls(number, "pause")
        elif run.status is not RunStatus.PAUSED or run.reason.startswith(_WAITS):
            raise InputError("a paused or failed run to resume", state_words(run), way_on(run))
        return self._go_on(number)

    def _is_to_pause(self, number: int) -> bool:
        return any(not row["applied"] for row in self.store.controls(number, "pause"))

    def approve(self, run_id: str) -> RunView:
        """Approve what a run waits for."""
        number = known_number(run_id)
        run = views.view(self.store, number)
        if not self._approved(number):
            raise InputError("a run that waits for approval", state_words(run), way_on(run))
        self.store.control(number, "approve")
        return self._go_on(number)

    def _approved(self, number: int) -> bool:
        """Whether it is this call that approves: a second one at the same time would approve what nobody has seen."""
        sql = f"update runs set reason = 'approved' where id = ? and status = 'paused' and reason like '{_WAITS}%'"
        with self.store.transaction() as db:
            return db.execute(sql, (number,)).rowcount == 1

    def answer(self, run_id: str, text: str) -> RunView:
        """Answer a blocked run's question: the step that asked is done again, and knows the answer."""
        number = known_number(run_id)
        run = views.view(self.store, number)
        if run.outcome is not RunOutcome.BLOCKED:
            raise InputError("a blocked run to answer", state_words(run), way_on(run))
        self.store.control(number, "answer", _some_text(text, "the answer"))
        return self._go_on(number, redo=True)

    def raise_limits(
        self,
        run_id: str,
        *,
        cap: int | None = None,
        tokens: int | None = None,
        budget_s: float | None = None,
        money_usd: float | None = None,
    ) -> RunView:
        """Allow a run more. The only way up; one that ended at a limit goes on. Raises InputError for less."""
        number = known_number(run_id)
        run = views.view(self.store, number)
        allowed = (RunOutcome.CAP_REACHED, RunOutcome.BUDGET)
        if run.outcome is not None and run.outcome not in allowed:
            raise InputError("a live run, or one that ended at a limit", state_words(run), way_on(run))
        more = {"cap": cap, "tokens": tokens, "budget_s": budget_s, "money_usd": money_usd}
        limits = raise_stored(self.store, number, {name: most for name, most in more.items() if most is not None})
        self.store.control(number, "raise", limits.words())
        if run.outcome is None:
            return views.view(self.store, number)
        return self._go_on(number, redo=run.outcome is RunOutcome.BUDGET)

    def diff(self, run_id: str, step: int | None = None) -> str:
        """What a run changed so far, or one of its steps, as a unified diff."""
        number = known_number(run_id)
        return undo.diff(self.store, number, step)

    def undo(self, run_id: str, step: int | None = None) -> tuple[str, ...]:
        """Put back what the run changed, or its steps from this one on; the paths that were put back.

        Raises InputError, and changes nothing, where the person has changed the same files since.
        """
        number = known_number(run_id)
        run = views.view(self.store, number)
        if run.status not in (RunStatus.ENDED, RunStatus.PAUSED):
            remedy = f"`matrix-coder pause {run_id}` or cancel it first"
            raise InputError("a run that is not at work", state_words(run), remedy)
        return undo.undo(self.store, number, step)

    def merge(self, run_id: str, unit: str) -> RunView:
        """Have the worker merge a unit that an ended run left out; the run, which is live until that is done.

        `unit_came` tells then what came of it. Raises InputError with what stands against it at once.
        """
        number = known_number(run_id)
        run = views.view(self.store, number)
        if run.status is not RunStatus.ENDED:
            raise InputError("a run that has ended", state_words(run), way_on(run))
        aftermath.require_mergeable(self.store, number, unit)
        self.store.require_free(run.workspace)
        if not self.store.reopen(number, merge=unit):
            run = views.view(self.store, number)
            raise InputError("a run that has ended", state_words(run), way_on(run))
        ensure_worker(self.store.home)
        return views.view(self.store, number)

    def unit_came(self, run_id: str, unit: str) -> Came | None:
        """What a unit came to, as far as it is known."""
        return aftermath.unit_came(self.store, known_number(run_id), unit)

    def checkouts(self, run_id: str) -> list[kept.Kept]:
        """The checkouts that a run keeps: its units', and its own where it is isolated."""
        return kept.kept(self.store, known_number(run_id))

    def drop(self, run_id: str, unit: str = "") -> kept.Kept:
        """Remove one of them for good, with whatever it holds; what it was. Raises InputError."""
        return kept.drop(self.store, known_number(run_id), unit)

    def _live(self, run_id: str, what: str) -> tuple[int, RunView]:
        number = known_number(run_id)
        run = views.view(self.store, number)
        if run.status is RunStatus.ENDED:
            raise InputError(f"a live run to {what}", state_words(run), way_on(run))
        if self.store.merge_request(number):
            raise InputError(f"a run with steps to come to {what}", f"{run_id}, {run.reason}", way_on(run))
        return number, run

    def _go_on(self, number: int, *, redo: bool = False) -> RunView:
        if self.store.reopen(number, redo=redo):
            ensure_worker(self.store.home)
        return views.view(self.store, number)

    def wait(
        self,
        run_id: str,
        *,
        timeout_s: float | None = None,
        on_event: Callable[[str, dict[str, object]], None] | None = None,
    ) -> RunView:
        """The run once it has ended or waits for a person, or as it is at the time-out.

        `on_event` gets each event's kind and data.
        """
        number = known_number(run_id)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        seen, looks = 0, 0
        while True:
            ended = self.store.run_row(number)["status"] in (RunStatus.ENDED, RunStatus.PAUSED)
            for row in self.store.events(number, after=seen):
                seen = row["id"]
                if on_event is not None:
                    on_event(row["kind"], json.loads(row["data"]))
            if ended or (deadline is not None and time.monotonic() >= deadline):
                return views.view(self.store, number)
            looks += 1
            if looks % 20 == 0 and (trouble := worker_trouble(self.store.home)):
                raise StoreError("a worker for the run", trouble, f"then go on with: matrix-coder watch {run_id}")
            if looks % 50 == 1:
                # A worker that was killed is replaced by whoever waits for its runs.
                ensure_worker(self.store.home)
            time.sleep(_POLL_S)


def known_number(run_id: str) -> int:
    """The number behind a run's id. Raises RunUnknown for what is no id at all."""
    number = views.run_number(run_id)
    if not number:
        raise RunUnknown("the id of a run, such as r8", repr(run_id), "list them with `matrix-coder runs`")
    return number


def _some_text(text: str, what: str) -> str:
    if not text.strip():
        raise InputError(what, "nothing", "write it after the run's id")
    _require_text(text, what)
    return text.strip()


def require_engine() -> None:
    """Raises EngineMissing, with the one line that installs it, where DBOS is not importable."""
    if importlib.util.find_spec("dbos") is None:
        raise EngineMissing("the durable engine (DBOS) for workflows", "it is not installed", f"run: {INSTALL_ENGINE}")


def _require_text(text: str, what: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = repr(text[error.start : error.end])
        raise InputError(f"{what} of text that can be written as UTF-8", found, "leave those bytes out") from error


def _require_workflow(name: str) -> None:
    if name not in {w.value for w in Workflow}:
        raise InputError(f"a workflow, one of {', '.join(Workflow)}", name or "nothing", "name one of them")


def run_workflow(  # noqa: PLR0913 - the seed's own signature, and its options by keyword
    workflow: str,
    goal: str,
    session_id: str,
    *,
    workspace: Path | None = None,
    check: tuple[str, ...] = (),
    domain: str = "",
    limits: Limits | None = None,
    options: Options | None = None,
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
            options=options or Options(),
        )
    )
    client.wait(run.run_id, on_event=on_event)
    return client.result(run.run_id)
