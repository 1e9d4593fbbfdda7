"""Diffs of runs and steps, file by file, so that a page need not hold a large one whole."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..core.models import RunStatus
from ..core.patches import FilePatch, parse
from ..engine import views
from ..engine.merge import load_came
from ..engine.paths import run_dir
from ..engine.store import Store
from ..engine.workspace import Trees
from .problems import NotHere
from .shapes import Diff, DiffFile

_MAX_DIFF = 40_000_000
_MAX_FILES = 2_000
MAX_PATCH = 8_000_000
# What is sent with the list: small patches, up to this much in all.
_INLINE_PATCH = 30_000
_INLINE_ALL = 400_000


@dataclass(frozen=True, slots=True)
class Parsed:
    """A whole diff, by file; `cut` where its end was left off."""

    files: tuple[FilePatch, ...]
    cut: bool


def run_diff(store: Store, run_id: str) -> Diff:
    """What the run changed: between its starting and its final tree, or the newest tree of a live run."""
    return _shape(_of_run(store, views.run_number(run_id)))


def run_patch(store: Store, run_id: str, index: int) -> DiffFile:
    """One file of the run's diff, with its patch."""
    return _one(_of_run(store, views.run_number(run_id)), index)


def step_diff(store: Store, run_id: str, step: int) -> Diff:
    """What changed between the trees before and after a step."""
    return _shape(_of_step(store, views.run_number(run_id), step))


def step_patch(store: Store, run_id: str, step: int, index: int) -> DiffFile:
    """One file of a step's diff, with its patch."""
    return _one(_of_step(store, views.run_number(run_id), step), index)


def _of_run(store: Store, number: int) -> Parsed:
    row = store.run_row(number)
    directory = run_dir(store.home, views.run_id_of(number))
    saved = directory / "diff.patch"
    # A run that goes on after its end has one of its earlier end.
    if row["status"] == RunStatus.ENDED and saved.is_file():
        found = saved.stat()
        return _of_file(saved, found.st_mtime_ns, found.st_size)
    newest = store.read(
        "select tree_before, tree_after from steps where run_id = ? and tree_before != '' order by number desc limit 1",
        number,
    )
    after = (newest[0]["tree_after"] or newest[0]["tree_before"]) if newest else row["start_tree"]
    return _of_trees(directory, row["start_tree"], after)


def _of_step(store: Store, number: int, step: int) -> Parsed:
    store.run_row(number)
    rows = store.read("select * from steps where run_id = ? and number = ?", number, step)
    if not rows:
        raise NotHere(f"a step of r{number}", f"no step {step}", "open the run again")
    before, after = _step_trees(rows[0])
    if not before or not after:
        raise NotHere(f"the trees before and after step {step} of r{number}", "one of them", "wait for its end")
    return _of_trees(run_dir(store.home, views.run_id_of(number)), before, after)


def _step_trees(row: sqlite3.Row) -> tuple[str, str]:
    """The trees that a step lies between; of a unit those of its own checkout, whether it was merged or not."""
    came = load_came(row) if "/" in row["step"] else None
    if came is not None and came.base:
        return came.base, came.tree
    return row["tree_before"], row["tree_after"]


@lru_cache(maxsize=4)
def _of_file(path: Path, _changed: int, size: int) -> Parsed:
    with path.open("rb") as stream:
        data = stream.read(_MAX_DIFF)
    return Parsed(tuple(parse(_readable(data))), size > _MAX_DIFF)


@lru_cache(maxsize=8)
def _of_trees(directory: Path, before: str, after: str) -> Parsed:
    if not before or not (directory / "trees.git" / "ready").exists():
        raise NotHere("the recorded trees of the run", f"none in {directory}", "they are made when the run opens")
    # Two recorded trees need no workspace to be compared, and it may be gone.
    text = Trees(directory, directory).diff(before, after) if before != after else ""
    data = text.encode("utf-8", "surrogateescape")
    return Parsed(tuple(parse(_readable(data[:_MAX_DIFF]))), len(data) > _MAX_DIFF)


def _readable(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _shape(parsed: Parsed) -> Diff:
    left = _INLINE_ALL
    files = []
    for index, file in enumerate(parsed.files[:_MAX_FILES]):
        size = len(file.patch)
        inline = size <= min(_INLINE_PATCH, left)
        left -= size if inline else 0
        files.append(_file(index, file, file.patch if inline else None))
    return Diff(
        files=files,
        files_total=len(parsed.files),
        added=sum(f.added for f in parsed.files),
        removed=sum(f.removed for f in parsed.files),
        cut=parsed.cut,
    )


def _one(parsed: Parsed, index: int) -> DiffFile:
    if not 0 <= index < len(parsed.files):
        raise NotHere("a file of the diff", f"no file {index}", "open the diff again")
    file = parsed.files[index]
    whole = file.patch[:MAX_PATCH]
    return _file(index, file, whole if len(whole) == len(file.patch) else whole[: whole.rfind("\n") + 1])


def _file(index: int, file: FilePatch, patch: str | None) -> DiffFile:
    return DiffFile(
        index=index,
        path=file.path,
        old_path=file.old_path,
        change=file.change,
        added=file.added,
        removed=file.removed,
        size=len(file.patch),
        patch=patch,
    )
