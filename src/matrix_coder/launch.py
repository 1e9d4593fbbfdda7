"""Starts one of this package's own processes: `python launch.py worker|step ...`.

A directory plugin is loaded by the host under a name of the host's own and is not importable in a new
process. This file loads the package it lies in as `matrix_coder`, wherever that is, and goes on from there.
"""

import importlib
import importlib.util
import sys
from pathlib import Path


def load() -> None:
    """Make `matrix_coder` importable as the package that this file lies in."""
    here = Path(__file__).resolve().parent
    spec = importlib.util.spec_from_file_location(
        "matrix_coder", here / "__init__.py", submodule_search_locations=[str(here)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"no package at {here}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["matrix_coder"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    # The script's own directory would shadow top-level names with ours (`core`, `engine`, `hermes`).
    sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]
    load()
    sys.exit(importlib.import_module("matrix_coder.processes").main(sys.argv[1:]))
