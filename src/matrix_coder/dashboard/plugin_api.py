"""What the host's dashboard imports: the router of this package, under whatever name the package is loaded.

The host loads this file by its path, as a module of its own. The package itself may be there already as
`matrix_coder` (installed) or as `hermes_plugins.matrix_coder` (a directory plugin); where it is not, its launcher
loads it.
"""

import importlib
import importlib.util
import sys
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent
# A copy of the package that the host has loaded already serves its own runs: a second one beside it would not.
_NAMES = ("matrix_coder", "hermes_plugins.matrix_coder")


def _load() -> str:
    spec = importlib.util.spec_from_file_location("matrix_coder_launch", _PACKAGE / "launch.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"no package at {_PACKAGE}")
    launcher = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(launcher)
    launcher.load()
    return "matrix_coder"


_loaded = next((name for name in _NAMES if name in sys.modules), "")
router = importlib.import_module(f"{_loaded or _load()}.web.api").router
