"""The checkouts that a run keeps: looked at, and dropped on a person's word. Nothing here is ever dropped by itself."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ..core.errors import InputError
from ..core.models import RunStatus
from ..core.units import UnitState
from . import views
from .checkout import remove_files, units_of_run
from .merge import Came, load_came
from .paths import run_dir
from .steps import write_report
from .store import Store
from .workspace import Trees


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A checkout: that of a unit, or, without a unit, the one in which an isolated run worked.

    `size` is in bytes, `since` in seconds since the epoch; `command` takes what it holds, where that can be.
    """

    name: str
    path: str
    size: int
    since: float
    state: str
    branch: str = ""
    command: str = ""


def kept(store: Store, number: int) -> list[Kept]:
    """What a run keeps. Raises RunUnknown."""
    return [_look(store, number, row, path) for row, path in _found(store, number)]


def drop(store: Store, number: int, unit: str = "") -> Kept:
    """Remove a checkout of an ended run: a unit's, or, without a name, that of an isolated run. What it was.

    Raises InputError for a run that has not ended, and for what is not kept.
    """
    run = views.view(store, number)
    if run.status is not RunStatus.ENDED:
        raise InputError("a run that has ended", f"{run.run_id}, which is {run.status}", "wait for it or cancel it")
    found = {one.name: (one, row) for row, path in _found(store, number) for one in [_look(store, number, row, path)]}
    if unit not in found:
        if not found:
            raise InputError(f"a checkout that {run.run_id} keeps", "none", "there is nothing to drop")
        names = ", ".join(sorted(name or "its own" for name in found))
        what = unit or "no unit named"
        remedy = f"`matrix-coder checkouts {run.run_id}` lists them"
        raise InputError(f"a checkout that {run.run_id} keeps ({names})", what, remedy)
    one, row = found[unit]
    remove_files(store.home, run.run_id, Path(one.path))
    if os.path.lexists(one.path):
        raise InputError(f"a directory that can be removed at {one.path}", "one that can't", "remove it yourself")
    if row is not None:
        _forget(store, number, row)
        _tell_report(store, number)
    store.event(number, "dropped", unit=unit, path=one.path)
    return one


def _found(store: Store, number: int) -> Iterator[tuple[sqlite3.Row | None, Path]]:
    """Each checkout that is there, with the row of its unit."""
    row = store.run_row(number)
    if json.loads(row["options"]).get("origin") and Path(row["workspace"]).is_dir():
        yield None, Path(row["workspace"])
    rows = {f"{s['number']}-{s['step'].partition('/')[2]}": s for s in store.step_rows(number) if "/" in s["step"]}
    folder = units_of_run(store.home, views.run_id_of(number))
    for name, unit in rows.items():
        if (folder / name).is_dir():
            yield unit, folder / name


def _look(store: Store, number: int, row: sqlite3.Row | None, path: Path) -> Kept:
    run = store.run_row(number)
    if row is None:
        command = f"matrix-coder take {views.run_id_of(number)}"
        since = run["ended_at"] or run["created_at"]
        return Kept(name="", path=str(path), size=_size(path), since=since, state="isolated", command=command)
    unit = row["step"].partition("/")[2]
    last = max(s["number"] for s in store.step_rows(number) if s["step"] == row["step"])
    came = load_came(row)
    can_be_merged = came is not None and bool(came.files) and row["number"] == last
    return Kept(
        # One that was begun again has an older checkout, too.
        name=unit if row["number"] == last else path.name,
        path=str(path),
        size=_size(path),
        since=row["ended_at"] or row["started_at"],
        state=_state(run, came),
        branch=came.branch if came else "",
        command=f"matrix-coder merge {views.run_id_of(number)} {unit}" if can_be_merged else "",
    )


def _state(run: sqlite3.Row, came: Came | None) -> str:
    if came is None:
        return "not finished" if run["status"] == RunStatus.ENDED else "at work"
    return came.state.value


def _size(directory: Path) -> int:
    """The bytes of the files below; what can't be looked at counts as nothing."""
    total = 0
    for folder, _, files in os.walk(directory):
        for name in files:
            with suppress(OSError):
                total += (Path(folder) / name).lstat().st_size
    return total


def _forget(store: Store, number: int, row: sqlite3.Row) -> None:
    """Say in the unit's row that there is nothing left to take."""
    came = load_came(row)
    if came is None:
        store.update_step(number, row["number"], note="its checkout was dropped")
        return
    why = f"{came.why}; its checkout was dropped" if came.why else "its checkout was dropped"
    gone = replace(came, state=UnitState.FAILED, why=why, checkout="", branch="")
    note = gone.account(views.run_id_of(number))
    store.update_step(number, row["number"], result=json.dumps(asdict(gone)), note=note)


def _tell_report(store: Store, number: int) -> None:
    """Write an ended run's report again, with its units as they are now."""
    run, folder = store.run_row(number), run_dir(store.home, views.run_id_of(number))
    if (folder / "report.md").exists():
        trees = Trees(Path(run["workspace"]), folder)
        write_report(folder, views.result(store, number), trees.stat(run["start_tree"], run["final_tree"]))
