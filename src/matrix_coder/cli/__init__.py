"""The command line: `matrix-coder ...`, and the same as `hermes matrix ...`."""

from __future__ import annotations

import sys

from . import doctor, look, routing, run, steer, units  # noqa: F401 - each names its commands to the group
from .app import EXIT_CODES, cli, run_words

__all__ = ["EXIT_CODES", "cli", "main", "run_in_host"]


def main() -> None:
    """The console script."""
    sys.exit(run_words(sys.argv[1:], "matrix-coder"))


def run_in_host(arguments: list[str]) -> int:
    """Run one command line for `hermes matrix ...`; the exit code."""
    return run_words(arguments, "hermes matrix")
