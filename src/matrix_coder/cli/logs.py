"""What a run's checks and steps have written, as data and as text."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from ..core.errors import InputError
from ..core.models import Evidence, RunView, StepView
from ..engine.paths import run_dir
from ..hermes.commands import step_line

_LOG_TAIL = 8_000


def logs_json(home: Path, run: RunView, step: int | None) -> dict[str, Any]:
    """The outputs of a run's checks, whole, and the ends of its steps' own logs. Raises InputError for no such step."""
    if step is not None and step not in {s.number for s in run.steps}:
        raise InputError(f"a step of {run.run_id}", str(step), f"`matrix-coder show {run.run_id}` lists them")
    folder = run_dir(home, run.run_id)
    steps = [_step(folder, s) for s in run.steps if step in (None, s.number)]
    return {"run_id": run.run_id, "folder": str(folder), "steps": steps}


def logs_text(told: dict[str, Any]) -> str:
    """The same to read."""
    parts = [f"everything of {told['run_id']}: {told['folder']}"]
    for step in told["steps"]:
        parts += [step["line"], *step["attempts"]]
        for check in step["checks"]:
            parts += [f"$ {check['command']}", check["output"]]
        if step["log_tail"]:
            parts += [f"end of {step['log']}:", step["log_tail"]]
    return "\n".join(parts)


def _step(folder: Path, step: StepView) -> dict[str, Any]:
    attempts = sorted((folder / "steps").glob(f"{step.number}-*/*"), key=_by_numbers)
    log = attempts[-1] / "process.log" if attempts else None
    return {
        "number": step.number,
        "name": step.name,
        "role": step.role,
        "line": step_line(step),
        "attempts": [str(p) for p in attempts],
        "checks": [_check(e) for e in step.evidence],
        "log": str(log) if log else "",
        "log_tail": _tail(log) if log else "",
    }


def _by_numbers(path: Path) -> tuple[list[int], str]:
    return [int(n) for n in re.findall(r"\d+", path.name)], path.name


def _check(evidence: Evidence) -> dict[str, Any]:
    path = Path(evidence.output_path)
    whole = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else evidence.tail
    return {
        "command": evidence.command,
        "passed": evidence.passed,
        "counts": evidence.counts(),
        "output_path": evidence.output_path,
        "output": whole,
    }


def _tail(log: Path) -> str:
    try:
        with log.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(0, stream.tell() - _LOG_TAIL))
            return stream.read().decode("utf-8", "replace").strip()
    except FileNotFoundError:
        return ""
