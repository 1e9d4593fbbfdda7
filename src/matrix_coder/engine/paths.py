"""Where things lie under HERMES_HOME. Owner-only, never inside a repository that a run works on."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from ..core.errors import StoreUnwritable


def hermes_home() -> Path:
    """The host's home: HERMES_HOME where it is set, else the host's own default."""
    configured = os.environ.get("HERMES_HOME", "").strip()
    return Path(configured).expanduser().absolute() if configured else Path.home() / ".hermes"


def state_dir(home: Path | None = None) -> Path:
    """The directory of the run store; it need not exist."""
    return (home or hermes_home()) / "matrix_coder"


def private_dir(path: Path) -> Path:
    """The directory, made for the owner alone where it is missing. Raises StoreUnwritable."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise _unwritable(path, "it is read-only")
    return path


def _unwritable(path: Path, why: str) -> StoreUnwritable:
    return StoreUnwritable(
        f"a writable directory {path}",
        why,
        "make it writable or point HERMES_HOME at a directory that is",
    )


def run_dir(home: Path, run_id: str) -> Path:
    """Where the whole record of a run lies as files that a person can read."""
    return state_dir(home) / "runs" / run_id


def marker(home: Path, session_id: str) -> Path:
    """The file that exists while a session has a run that is live or whose result is untold."""
    name = hashlib.sha256(session_id.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return state_dir(home) / "sessions" / name


def raise_marker(home: Path, session_id: str) -> None:
    """Say that the session has something to be told about."""
    file = marker(home, session_id)
    private_dir(state_dir(home))
    private_dir(file.parent)
    file.touch(mode=0o600)


def remove_all(folder: Path) -> None:
    """Remove a directory with all that is in it, also below directories that are shut or can't be written to.

    A workspace may hold such, a step may have made some, and the kernel leaves one in a layer's folder.
    Nothing happens where there is none. Raises OSError where something stays.
    """
    shutil.rmtree(folder, ignore_errors=True)
    if not os.path.lexists(folder):
        return
    folder.chmod(0o700)
    for directory, names, _ in os.walk(folder):
        for path in (Path(directory, name) for name in names):
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(folder)
