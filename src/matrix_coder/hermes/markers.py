"""Markers: a file for each session that has something to be told. Asking for one costs a stat and opens no store."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ..engine.paths import marker, raise_marker, state_dir

__all__ = ["any_marker", "drop_marker", "has_marker", "raise_marker"]


def has_marker(home: Path, session_id: str) -> bool:
    """Whether the session has something to be told about; costs one stat."""
    return bool(session_id) and marker(home, session_id).exists()


def any_marker(home: Path) -> bool:
    """Whether any session of this home has something to be told about."""
    try:
        with os.scandir(state_dir(home) / "sessions") as found:
            return next(found, None) is not None
    except OSError:
        return False


def drop_marker(home: Path, session_id: str) -> None:
    """The session has been told everything."""
    with suppress(OSError):
        marker(home, session_id).unlink()
