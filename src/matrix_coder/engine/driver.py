"""The driver: one durable function that takes a run from step to step until it ends or is held.

Deterministic: all that it knows comes from its durable steps and from what a run never changes. A run that was held
or ended and goes on is a new durable function over the same run: it takes in the steps that are done, then goes on.
"""

from __future__ import annotations

import errno
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any

from dbos import DBOS

from ..core.models import RunOutcome
from ..core.serde import Json, load_evidence
from ..core.workflow import Course, End, RunStep
from .aftermath import Aftermath
from .steps import Run, load_result
from .store import Store
from .units import Held
from .workspace import Trees

_STORAGE_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO})

draining = threading.Event()
_stores: list[Store] = []
# What one step of a run knows of the trees, the next need not ask again.
_trees: dict[int, Trees] = {}


def connect(store: Store) -> None:
    """Name the store that this process drives. Durable functions are found by name at recovery, and share it."""
    _stores[:] = [store]


@DBOS.workflow(name="matrix.run", max_recovery_attempts=1_000)
def drive(number: int) -> str:
    """Drive one run until it ends or is held; its outcome, or `paused`."""
    try:
        return _drive(number)
    except Exception as error:  # noqa: BLE001 - whatever is wrong in here must end the run, not leave it live for ever
        reason = str(error) or type(error).__name__
        return str(DBOS.run_step({"name": "fail"}, _patiently, _fail, number, reason))
    finally:
        _trees.pop(number, None)


def _drive(number: int) -> str:
    opened: dict[str, Any] = DBOS.run_step({"name": "open"}, _patiently, _open, number)
    if opened.get("merge"):
        return _merge_later(number, opened["merge"])
    course = Course(_run(number).plan.definition, load_evidence(opened["baseline"]))
    for done in opened["done"]:
        course.take(load_result(done["result"]), cap=opened["cap"], redo=done["redo"])
    while isinstance(course.move, RunStep):
        at = course.move
        data = DBOS.run_step(
            {"name": f"{at.number} {at.step}"}, _patiently, _step, number, at.step, at.number, at.iteration
        )
        if data["held"]:
            return str(DBOS.run_step({"name": "hold"}, _patiently, _hold, number, data["held"]))
        course.take(load_result(data["result"]), cap=data["cap"])
    end = course.move
    return str(
        DBOS.run_step({"name": "close"}, _patiently, _close, number, end.outcome.value, end.reason, end.question)
    )


def _merge_later(number: int, request: dict[str, Any]) -> str:
    """A run that had ended and has one of its units merged: that alone, then it ends again; its outcome."""
    end = DBOS.run_step({"name": f"merge {request['merge']}"}, _patiently, _merge, number, request)
    return str(DBOS.run_step({"name": "close"}, _patiently, _close_again, number, request, end))


def _patiently(step: Callable[..., Any], *arguments: Any) -> Any:
    """The step's result, however long its storage is locked, full or gone: that pauses a run and never ends it."""
    pause = 0.5
    while True:
        try:
            return step(*arguments)
        except (sqlite3.OperationalError, OSError) as error:
            if isinstance(error, OSError) and error.errno not in _STORAGE_ERRNOS:
                raise
            print(f"waiting for storage: {error}", flush=True)  # noqa: T201 - the worker's log
            time.sleep(pause)
            pause = min(pause * 2, 30.0)


def _run(number: int) -> Run:
    if not _stores:
        raise RuntimeError("the worker has not opened its store")
    run = Run(_stores[0], number, draining=draining.is_set, trees=_trees.get(number))
    _trees[number] = run.trees
    return run


def _open(number: int) -> dict[str, Json]:
    _trees.pop(number, None)
    return _run(number).open()


def _step(number: int, step: str, index: int, iteration: int) -> dict[str, Json]:
    run = _run(number)
    held = run.held(RunStep(step=step, number=index, iteration=iteration))
    if held:
        return {"held": held, "result": None, "cap": run.plan.limits.cap}
    try:
        result = run.step(RunStep(step=step, number=index, iteration=iteration))
    except Held as wait:
        return {"held": str(wait), "result": None, "cap": run.plan.limits.cap}
    return {"held": "", "result": result, "cap": run.plan.limits.cap}


def _hold(number: int, reason: str) -> str:
    return _run(number).hold(reason)


def _close(number: int, outcome: str, reason: str, question: str) -> str:
    return _run(number).close(End(outcome=RunOutcome(outcome), reason=reason, question=question))


def _merge(number: int, request: dict[str, Any]) -> dict[str, Json]:
    return Aftermath(_stores[0], number, draining.is_set, request=request).merge()


def _close_again(number: int, request: dict[str, Any], end: dict[str, Any]) -> str:
    run = _run(number)
    # What was said to the merge is done with: the run may go on some day.
    run.store.apply_controls(number, "merge", "cancel")
    evidence = None if end["evidence"] is None else load_evidence(end["evidence"])
    again = End(outcome=RunOutcome(end["outcome"]), reason=end["reason"], question=request["question"])
    return run.close(again, final=end["final"], evidence=evidence)


def _fail(number: int, reason: str) -> str:
    """End the run as failed: with its tree and report where they can be made, without them where not."""
    try:
        return _close(number, RunOutcome.FAILED.value, reason, "")
    except Exception as error:  # noqa: BLE001 - the last way out of a run: it ends, with or without its report
        _stores[0].end_run(number, RunOutcome.FAILED, reason=f"{reason}; no report could be written: {error}")
        return RunOutcome.FAILED.value
