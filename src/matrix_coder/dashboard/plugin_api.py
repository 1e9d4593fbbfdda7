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


def _is_ours(module: object) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and Path(file).resolve() == _PACKAGE / "__init__.py"


def _loaded() -> str:
    names = [n for n in list(sys.modules) if n.rpartition(".")[2] == "matrix_coder"]
    return next((n for n in names if _is_ours(sys.modules[n])), "")


def _load() -> str:
    spec = importlib.util.spec_from_file_location("matrix_coder_launch", _PACKAGE / "launch.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"no package at {_PACKAGE}")
    launcher = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(launcher)
    launcher.load()
    return "matrix_coder"


router = importlib.import_module(f"{_loaded() or _load()}.web.api").router
