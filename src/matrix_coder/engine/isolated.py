"""Runs that work in a checkout of their own: made before the start, taken into the repository on demand."""

from __future__ import annotations

import json
import secrets
import shutil
from pathlib import Path

from ..core.errors import InputError
from . import views
from .paths import private_dir, run_dir, state_dir
from .store import Store
from .undo import require_no_other
from .workspace import Trees, throw_away_copy

_SHOWN = 5


def open_isolated(home: Path, workspace: Path) -> Path:
    """A whole copy of the workspace, whatever git ignores included, for one run to work in."""
    folder = private_dir(state_dir(home) / "isolated")
    return throw_away_copy(workspace, folder / f"{workspace.name}-{secrets.token_hex(4)}")


def remove_isolated(checkout: Path) -> None:
    """Remove a checkout that no run came to work in."""
    shutil.rmtree(checkout, ignore_errors=True)


def take(store: Store, number: int) -> tuple[str, ...]:
    """Bring what an isolated run changed into the repository it was started for; the paths that were brought.

    Raises InputError, and changes nothing, for a run that worked in place or has not ended, and where one of those
    files is not what the run started from any more. Raises WorkspaceBusy where a run is live in that repository.
    """
    row = store.run_row(number)
    origin = str(json.loads(row["options"]).get("origin") or "")
    if not origin or not row["final_tree"]:
        found = "one that worked in place" if not origin else "one that has not ended"
        raise InputError("an isolated run that has ended", found, f"see `matrix-coder diff r{number}`")
    if not Path(row["workspace"]).is_dir():
        patch = run_dir(store.home, views.run_id_of(number)) / "diff.patch"
        raise InputError(f"the checkout of r{number}", f"none: {row['workspace']} is gone", f"what it changed: {patch}")
    require_no_other(store, number, origin)
    record = run_dir(store.home, views.run_id_of(number))
    worked = Trees(Path(row["workspace"]), record)
    trees = Trees(Path(origin), record / "origin", origin=worked)
    changed = worked.changed_raw(row["start_tree"], row["final_tree"])
    now = trees.record()
    moved = set(trees.changed_raw(row["start_tree"], now)) & set(trees.changed_raw(row["final_tree"], now))
    hit = sorted(moved & set(changed))
    if hit:
        names = ", ".join(hit[:_SHOWN]) + (f" and {len(hit) - _SHOWN} more" if len(hit) > _SHOWN else "")
        raise InputError(
            "the files as the run found them",
            f"other changes since in {names}",
            f"put those aside first, or take the parts you want from {record / 'diff.patch'}",
        )
    trees.restore(row["final_tree"], changed)
    store.event(number, "taken", files=len(changed))
    return tuple(changed)
