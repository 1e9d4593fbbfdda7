"""A checkout of its own for each unit: a whole copy of the workspace, with a record of its trees beside the run's."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .context import RunContext
from .paths import state_dir
from .workspace import Trees, throw_away_copy

_LARGEST = 1_000_000
_ENVIRONMENTS = (".venv", "venv")
# What an environment keeps its own place, or that of an editable installation, in.
_PLACES = (
    "bin/*",
    "lib/python*/site-packages/*.pth",
    "lib/python*/site-packages/*.egg-link",
    "lib/python*/site-packages/__editable__*",
)


def units_of_run(home: Path, run_id: str) -> Path:
    """Where the checkouts of a run's units lie; outside every workspace."""
    return state_dir(home) / "units" / run_id


def units_dir(run: RunContext) -> Path:
    """The same for a run at work."""
    return units_of_run(run.store.home, run.plan.run_id)


def open_checkout(run: RunContext, name: str) -> Trees:
    """A fresh copy of the workspace, whatever git ignores included, as the record of its trees."""
    directory = throw_away_copy(run.plan.workspace, units_dir(run) / name)
    _move_environments(directory, run.plan.workspace)
    record = _record(run, name)
    shutil.rmtree(record, ignore_errors=True)
    return Trees(directory, record, origin=run.trees)


def reopen_checkout(run: RunContext, directory: Path) -> Trees:
    """The record of a checkout that was kept."""
    return Trees(directory, _record(run, directory.name), origin=run.trees)


def remove_checkout(run: RunContext, directory: Path) -> None:
    """Remove a checkout that has nothing left to merge, and the run's directory of them with the last one."""
    remove_files(run.store.home, run.plan.run_id, directory)


def remove_files(home: Path, run_id: str, directory: Path) -> None:
    """Remove a checkout with its record, and the run's directory of them with the last one."""
    folder = units_of_run(home, run_id)
    records = folder / "_records"
    for path in (directory, records / directory.name):
        shutil.rmtree(path, ignore_errors=True)
    for path in (records, folder):
        with suppress(OSError):
            path.rmdir()


def _record(run: RunContext, name: str) -> Path:
    return units_dir(run) / "_records" / name


def _move_environments(copy: Path, origin: Path) -> None:
    """Let the copied Python environments name the copy: else its tests would import the original's code."""
    here = re.compile(re.escape(bytes(origin)) + rb"(?=[/\s\"':]|$)")
    for file in _files_with_places(copy):
        with suppress(OSError):
            text = file.read_bytes()
            if here.search(text):
                file.write_bytes(here.sub(lambda _: bytes(copy), text))


def _files_with_places(copy: Path) -> Iterator[Path]:
    for name in _ENVIRONMENTS:
        root = copy / name
        if root.is_symlink() or not root.is_dir():
            continue
        for pattern in _PLACES:
            for file in root.glob(pattern):
                if file.is_file() and not file.is_symlink() and file.stat().st_size < _LARGEST:
                    yield file
