"""The effective settings, and where each value comes from."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from .._version import __version__
from ..core.errors import InputError
from ..engine.paths import state_dir
from ..engine.spawn import worker_pid
from ..hermes.settings import Settings, load_settings
from .problems import problem_of
from .shapes import Problem, Setting, SettingsAnswer

_WHAT = {
    "limits.cap": "iterations that a run may start",
    "limits.minutes": "time that a run's specialists and checks may take",
    "limits.tokens": "tokens that a run may use",
    "limits.step_minutes": "time that one step may take",
    "limits.check_minutes": "time that one check may take",
    "kanban.mirror": "which work gets cards on the Kanban board: all, explicit, workflows or off",
    "kanban.board": "the board that the cards are on; empty is the current one",
}


def settings_answer(home: Path) -> SettingsAnswer:
    """What is in force under this home."""
    file = home / "config.yaml"
    problem: Problem | None = None
    settings = Settings()
    try:
        settings = load_settings(home)
    except InputError as error:
        problem = problem_of(error)
    written = {} if problem else _written(file)
    return SettingsAnswer(
        file=str(file),
        settings=list(_rows(settings.model_dump(mode="json"), Settings().model_dump(mode="json"), written, file)),
        places=_places(home),
        problem=problem,
    )


def _rows(values: dict[str, Any], defaults: dict[str, Any], written: dict[str, Any], file: Path) -> Iterator[Setting]:
    for section, group in values.items():
        for key, value in group.items():
            name = f"{section}.{key}"
            own = isinstance(written.get(section), dict) and key in written[section]
            yield Setting(
                name=name,
                value=_text(value),
                default=_text(defaults[section][key]),
                source=str(file) if own else "built-in default",
                what=_WHAT.get(name, ""),
            )


def _written(file: Path) -> dict[str, Any]:
    """The part of the file that is ours, as it was just found to be valid."""
    found: Any = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
    for key in ("plugins", "entries", "matrix_coder", "settings"):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _places(home: Path) -> list[Setting]:
    from_variable = "HERMES_HOME" if os.environ.get("HERMES_HOME", "").strip() else "the host's default"
    worker = worker_pid(home) if (state_dir(home) / "worker.lock").exists() else 0
    engine = _version("dbos") if importlib.util.find_spec("dbos") else "not installed"
    return [
        _place("home", str(home), from_variable, "where Hermes and the runs live"),
        _place("run store", str(state_dir(home) / "runs.db"), "below the home", "runs, steps and events"),
        _place("worker", f"process {worker}" if worker else "not running", "the store's lock", "drives the runs"),
        _place("matrix-coder", __version__, "the package", "the plugin's version"),
        _place("hermes-agent", _version("hermes-agent"), "the package", "the host's version"),
        _place("dbos", engine, "the package", "the durable engine"),
    ]


def _place(name: str, value: str, source: str, what: str) -> Setting:
    return Setting(name=name, value=value, default="", source=source, what=what)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
