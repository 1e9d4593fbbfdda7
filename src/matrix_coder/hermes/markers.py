"""Markers: a file for each session that has something to be told. Asking for one costs a stat and opens no store."""

from __future__ import annotations

from pathlib import Path

from ..engine.paths import marker, private_dir, state_dir


def raise_marker(home: Path, session_id: str) -> None:
    """Say that the session has something to be told about."""
    file = marker(home, session_id)
    private_dir(state_dir(home))
    private_dir(file.parent)
    file.touch(mode=0o600)


def has_marker(home: Path, session_id: str) -> bool:
    """Whether the session has something to be told about; costs one stat."""
    return bool(session_id) and marker(home, session_id).exists()
