"""The loop driver's front door: start a workflow, block until its outcome, get one honest result."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from .models import SpecialistResult


def run_workflow(
    workflow: str,
    goal: str,
    session_id: str,
    *,
    workspace: Path | None = None,
    check: tuple[str, ...] = (),
    domain: str = "",
    **options: Any,
) -> SpecialistResult:
    """The result of one run of `workflow` on `goal`; returns when the run has ended.

    `workspace` is a directory inside a git repository, by default the current one; `check` the commands whose
    exit codes decide, by default what the repository says of itself. `options` are `limits`, `home` and
    `on_event` as in the engine's `run_workflow`. Raises InputError for what can't be started (then nothing
    was) and StoreError when the store can't be used.
    """
    # The core knows no engine: it is looked up by name at the first call, and with it the durable library.
    engine = import_module("..engine.client", __package__)
    run = cast("Callable[..., SpecialistResult]", engine.run_workflow)
    return run(workflow, goal, session_id, workspace=workspace, check=check, domain=domain, **options)
