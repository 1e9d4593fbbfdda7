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
from ..hermes.preferences import SWITCH, Preferences, switched_off
from ..hermes.settings import Settings, load_settings
from ..hermes.words import load_words, words_file
from .problems import problem_of
from .shapes import Problem, Setting, SettingsAnswer

_WHAT = {
    "limits.cap": "iterations that a run may start",
    "limits.minutes": "time that a run's specialists and checks may take",
    "limits.tokens": "tokens that a run may use",
    "limits.money": "dollars that a run may use, by the host's prices; 0 for no such limit",
    "limits.step_minutes": "time that one step may take",
    "limits.check_minutes": "time that one check may take",
    "kanban.mirror": "which work gets cards on the Kanban board: all, explicit, workflows or off",
    "kanban.board": "the board that the cards are on; empty is the current one",
    "routing.implicit": "whether specialists are inferred; explicit triggers always work",
    "routing.remember": "whether the last decisions of each chat are kept for this page",
    "chat.milestones": "what a chat is shown of its runs unasked: outcome, iterations or off",
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
        own = written.get(section)
        for key, value in group.items():
            name = f"{section}.{key}"
            # The switch outweighs the file, in every process that has it.
            off = name == "routing.implicit" and switched_off()
            in_file = str(file) if isinstance(own, dict) and key in own else "built-in default"
            yield Setting(
                name=name,
                value=_text(False if off else value),
                default=_text(defaults[section][key]),
                source=f"{SWITCH} in the environment" if off else in_file,
                what=_WHAT.get(name, ""),
            )


def _written(file: Path) -> dict[str, Any]:
    """The part of the file that is ours, as it was just found to be valid."""
    found: Any = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
    for key in ("plugins", "entries", "matrix_coder", "settings"):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
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
        _place("phrases", ", ".join(Preferences(home).phrases()), "/matrix never", "nothing is inferred from these"),
        _place("words", _words(home), "words.toml", "the team's own words, which routing knows"),
        _place("worker", f"process {worker}" if worker else "not running", "the store's lock", "drives the runs"),
        _place("matrix-coder", __version__, "the package", "the plugin's version"),
        _place("hermes-agent", _version("hermes-agent"), "the package", "the host's version"),
        _place("dbos", engine, "the package", "the durable engine"),
    ]


def _words(home: Path) -> str:
    try:
        words = load_words(home)
    except InputError as error:
        return f"left out whole: {error}"
    return str(words_file(home)) if words else "none"


def _place(name: str, value: str, source: str, what: str) -> Setting:
    return Setting(name=name, value=value, default="", source=source, what=what)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
