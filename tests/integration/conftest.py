"""Fixtures of the tests over real parts."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def shared() -> Iterator[Path]:
    """A directory that another user can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="matrix-layer-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder).resolve()
