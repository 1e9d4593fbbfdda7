"""The dashboard's API, mounted by the host at /api/plugins/matrix_coder. The host's own check stands before it all.

Plain functions run in threads, so that the store and git never hold the host's event loop.
"""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from ..core.errors import RunUnknown
from ..core.intent_gate import explain
from ..engine.client import Client, known_number
from ..engine.paths import hermes_home, state_dir
from ..engine.store import Store
from ..hermes.words import apply_words
from . import configuration, diffs, outputs, runs, starts, stream
from .commands import carry_out, is_done_later
from .decided import decisions_answer, route_answer
from .problems import ProblemRoute
from .shapes import (
    CommandAnswer,
    CommandRequest,
    DecisionsAnswer,
    Diff,
    DiffFile,
    EvidenceDetail,
    OutputPart,
    Problem,
    ReportText,
    RouteAnswer,
    RouteRequest,
    RunDetail,
    RunPage,
    RunSummary,
    SettingsAnswer,
    StartRequest,
)

_PROBLEMS: dict[int | str, dict[str, Any]] = {status: {"model": Problem} for status in (400, 404, 409, 422, 500, 503)}
router = APIRouter(prefix="/v1", route_class=ProblemRoute, responses=_PROBLEMS, tags=["matrix_coder"])

# What a page can count to; the store's numbers end a little above.
_MOST = 2**53
Limit = Annotated[int, Query(ge=1, le=runs.MAX_PAGE)]
Step = Annotated[int, Path(ge=0, le=_MOST)]
After = Annotated[int, Query(ge=0, le=_MOST)]


def _store(run_id: str) -> Store:
    """The store, for a run. It is not made by looking: without one there is no run."""
    home = hermes_home()
    known_number(run_id)
    if not (state_dir(home) / "runs.db").is_file():
        raise RunUnknown("the id of a run", run_id, "no run was ever started here")
    return Store(home)


@router.get("/runs")
def list_runs(
    before: Annotated[int | None, Query(ge=1, le=_MOST)] = None,
    limit: Limit = 50,
    state: Annotated[str, Query(max_length=40)] = "",
    workflow: Annotated[str, Query(max_length=40)] = "",
    text: Annotated[str, Query(max_length=200)] = "",
) -> RunPage:
    """Runs, newest first."""
    home = hermes_home()
    if not (state_dir(home) / "runs.db").is_file():
        return runs.empty_page(time.time())
    asked = runs.Asked(before=before, limit=limit, state=state, workflow=workflow, text=text.strip())
    return runs.page(Store(home), asked)


@router.post("/runs", status_code=201)
def post_run(asked: StartRequest) -> RunSummary:
    """Start a run."""
    return starts.start(asked)


@router.get("/runs/{run_id}")
def get_run(run_id: str) -> RunDetail:
    """One run with its steps."""
    return runs.detail(_store(run_id), run_id)


@router.get("/runs/{run_id}/report")
def get_report(run_id: str) -> ReportText:
    """The final report."""
    return outputs.report_text(_store(run_id), run_id)


@router.get("/runs/{run_id}/diff")
def get_diff(run_id: str) -> Diff:
    """What the run changed so far."""
    return diffs.run_diff(_store(run_id), run_id)


@router.get("/runs/{run_id}/diff/{index}")
def get_diff_file(run_id: str, index: int) -> DiffFile:
    """One file of what the run changed."""
    return diffs.run_patch(_store(run_id), run_id, index)


@router.get("/runs/{run_id}/steps/{step}/diff")
def get_step_diff(run_id: str, step: Step) -> Diff:
    """What changed during a step."""
    return diffs.step_diff(_store(run_id), run_id, step)


@router.get("/runs/{run_id}/steps/{step}/diff/{index}")
def get_step_diff_file(run_id: str, step: Step, index: int) -> DiffFile:
    """One file of what changed during a step."""
    return diffs.step_patch(_store(run_id), run_id, step, index)


@router.get("/runs/{run_id}/steps/{step}/evidence/{index}")
def get_evidence(run_id: str, step: Step, index: int) -> EvidenceDetail:
    """One check of a step with its cases; step 0 is the starting tree."""
    return outputs.evidence_detail(_store(run_id), run_id, step, index)


@router.get("/runs/{run_id}/steps/{step}/evidence/{index}/output")
def get_output(
    run_id: str,
    step: Step,
    index: int,
    end: Annotated[int | None, Query(ge=0, le=_MOST)] = None,
    limit: Annotated[int, Query(ge=1, le=outputs.MAX_PART)] = 65_536,
) -> OutputPart:
    """A part of what a check printed: up to its end, or up to byte `end`."""
    return outputs.output(_store(run_id), run_id, step, index, end=end, limit=limit)


@router.post("/runs/{run_id}/commands", responses={202: {"model": CommandAnswer}})
def post_command(run_id: str, asked: CommandRequest, response: Response) -> CommandAnswer:
    """Give a command to a run; 202 for one that the worker carries out after this answer."""
    client = Client(_store(run_id).home)
    message = carry_out(client, run_id, asked.name, asked.arguments)
    response.status_code = 202 if is_done_later(asked.name) else 200
    return CommandAnswer(message=message, run=runs.summary(client.show(run_id)))


@router.get("/runs/{run_id}/events", response_class=StreamingResponse)
async def follow_run(request: Request, run_id: str, after: After = 0) -> StreamingResponse:
    """The run's events after `after`, as they happen."""
    return _events(request, await asyncio.to_thread(_run_there, run_id), after)


def _run_there(run_id: str) -> int:
    """The number of a run that there is. Raises RunUnknown: a stream of none would be silent for ever."""
    number = known_number(run_id)
    _store(run_id).run_row(number)
    return number


@router.get("/events", response_class=StreamingResponse)
async def follow_all(request: Request, after: After = 0) -> StreamingResponse:
    """The events of all runs after `after`, as they happen."""
    return _events(request, None, after)


def _events(request: Request, number: int | None, after: int) -> StreamingResponse:
    events = stream.follow(hermes_home(), number, after, request.is_disconnected)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


@router.post("/route")
def post_route(asked: RouteRequest) -> RouteAnswer:
    """How a message would be routed, and why. Nothing starts."""
    apply_words()
    return route_answer(explain(asked.text))


@router.get("/decisions")
def get_decisions(session: Annotated[str, Query(max_length=300)] = "") -> DecisionsAnswer:
    """The last decisions of a chat session, or of the newest, and which sessions there are."""
    return decisions_answer(hermes_home(), session)


@router.get("/settings")
def get_settings() -> SettingsAnswer:
    """The effective configuration, and where each value comes from."""
    return configuration.settings_answer(hermes_home())
