"""What a run changed, shown and put back. Byte for byte, and never over what a person has changed since."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ..core.errors import InputError, WorkspaceBusy
from . import views
from .merge import load_came
from .paths import run_dir
from .store import Store
from .workspace import Trees


def diff(store: Store, number: int, step: int | None) -> str:
    """The unified diff of the whole run so far, or of one step. Raises RunUnknown, InputError."""
    trees, row = _trees(store, number)
    if step is not None:
        own = next((load_came(s) for s in store.step_rows(number) if s["number"] == step and "/" in s["step"]), None)
        if own is not None and own.base:
            return trees.diff(own.base, own.tree)
        found = _step(store, number, step)
        return trees.diff(found["tree_before"], found["tree_after"] or trees.record())
    if not row["start_tree"]:
        return ""
    return trees.diff(row["start_tree"], row["final_tree"] or trees.record())


def undo(store: Store, number: int, step: int | None) -> tuple[str, ...]:
    """Put the files that the run changed back as they were before it, or before its step `step`.

    Only those files: whatever else changed in the workspace stays, ignored files too. Of a unit that was merged, what
    it brought. Raises InputError, naming
    the files, where one of them differs from what the run left; WorkspaceBusy where another run is live there.
    """
    trees, row = _trees(store, number)
    require_no_other(store, number, row["workspace"])
    chosen = _step(store, number, step) if step is not None else None
    before = chosen["tree_before"] if chosen is not None else row["start_tree"]
    left = _last_tree(store, number, row)
    if chosen is not None and "/" in chosen["step"]:
        # One of several units that were worked on side by side: nothing came after it that builds on it.
        left = chosen["tree_after"]
    changed = trees.changed_raw(before, left)
    now = trees.record()
    if not set(changed) & set(trees.changed_raw(before, now)):
        return ()
    touched = sorted(set(trees.changed_raw(left, now)) & set(changed))
    if touched:
        names = ", ".join(touched[:5]) + (f" and {len(touched) - 5} more" if len(touched) > 5 else "")
        raise InputError(
            "the files as the run left them",
            f"changes of your own since in {names}",
            f"put those aside first, or take the parts you want from `matrix-coder diff r{number}`",
        )
    trees.restore(before, changed)
    store.event(number, "undone", step=step or 0, files=len(changed))
    return tuple(changed)


def require_no_other(store: Store, number: int, workspace: str) -> None:
    """No other run is live in this directory, above or below it: its files are that run's. Raises WorkspaceBusy."""
    place = Path(workspace)
    for row in store.read("select id, workspace from runs where status != 'ended' and id != ?", number):
        other = Path(row["workspace"])
        if place.is_relative_to(other) or other.is_relative_to(place):
            run = views.run_id_of(row["id"])
            remedy = f"wait for it, or stop it with `matrix-coder cancel {run}`"
            raise WorkspaceBusy(f"no other live run in {workspace}", f"{run} at work there", remedy)


def _last_tree(store: Store, number: int, row: sqlite3.Row) -> str:
    """The tree as the run left it last."""
    after = [s["tree_after"] for s in store.step_rows(number) if s["tree_after"] and "/" not in s["step"]]
    return str(row["final_tree"] or (after[-1] if after else row["start_tree"]))


def _trees(store: Store, number: int) -> tuple[Trees, sqlite3.Row]:
    row = store.run_row(number)
    return Trees(Path(row["workspace"]), run_dir(store.home, views.run_id_of(number))), row


def _step(store: Store, number: int, step: int) -> sqlite3.Row:
    found = next((s for s in store.step_rows(number) if s["number"] == step and s["tree_before"]), None)
    if found is None:
        raise InputError(f"a step of r{number} that began", str(step), f"`matrix-coder show r{number}` lists them")
    return found
