"""Imports point one way: hermes, web and cli to the engine, the engine to the core, the core to nothing of ours."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import matrix_coder

ROOT = Path(matrix_coder.__file__).parent
# What each layer may import of the package; "top" are the modules that put the layers together.
LAYERS = {
    "core": {"core"},
    "engine": {"core", "engine"},
    "hermes": {"core", "engine", "hermes", "top"},
    "web": {"core", "engine", "hermes", "web", "top"},
    "testing": {"testing", "core", "engine", "top"},
    "top": {"core", "engine", "hermes", "web", "top"},
}
HOST = {"hermes_cli", "tools", "run_agent", "agent", "gateway", "hermes_constants", "toolsets", "hermes_state"}


@dataclass(frozen=True)
class Import:
    """One import: the module it stands in, how many dots it has, what it names."""

    file: Path
    line: int
    level: int
    module: str

    @property
    def layer(self) -> str:
        return layer_of(self.file)

    @property
    def target(self) -> str:
        """The layer that a relative import leads to."""
        package = self.file.parent.relative_to(ROOT).parts
        parts = (*package[: len(package) - (self.level - 1)], *filter(None, self.module.split(".")))
        return layer_of(ROOT.joinpath(*parts)) if parts else "top"

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line} {'.' * self.level}{self.module}"


def layer_of(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return first if first in LAYERS else "top"


def imports_of(file: Path) -> Iterator[Import]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield Import(file, node.lineno, 0, name.name)
        elif isinstance(node, ast.ImportFrom):
            names = [""] if node.module else [f".{name.name}" for name in node.names]
            for name in names:
                yield Import(file, node.lineno, node.level, f"{node.module or ''}{name}".lstrip("."))


IMPORTS = [found for file in sorted(ROOT.rglob("*.py")) for found in imports_of(file)]
RELATIVE = [i for i in IMPORTS if i.level]
ABSOLUTE = [i for i in IMPORTS if not i.level]


def wrong(found: list[Import]) -> list[str]:
    return [str(i) for i in found]


def test_imports_when_looked_for_then_every_layer_has_some() -> None:
    """The tests below look at the real package."""
    assert {i.layer for i in IMPORTS} >= set(LAYERS) - {"web"}
    assert len(IMPORTS) > 200


@pytest.mark.parametrize("layer", LAYERS)
def test_relative_imports_when_they_cross_layers_then_only_the_right_way(layer: str) -> None:
    """hermes, web, cli -> engine -> core, and never back."""
    assert wrong([i for i in RELATIVE if i.layer == layer and i.target not in LAYERS[layer]]) == []


def test_imports_when_they_name_our_package_then_they_are_relative() -> None:
    """A directory plugin is loaded under a name of the host's own: only relative imports find their way there."""
    ours = [i for i in ABSOLUTE if i.module.split(".")[0] == "matrix_coder" and i.layer != "testing"]
    assert wrong(ours) == []


def test_core_when_it_imports_absolutely_then_the_standard_library_alone() -> None:
    """The core needs nothing that has to be installed, but for the YAML parser of the registry."""
    foreign = [
        i
        for i in ABSOLUTE
        if i.layer == "core"
        and i.module.split(".")[0] not in sys.stdlib_module_names
        and not (i.file.name == "registry.py" and i.module.split(".")[0] == "yaml")
    ]
    assert wrong(foreign) == []


def test_host_when_it_is_imported_then_by_its_adapters_alone() -> None:
    """Neither core nor engine knows the host."""
    assert wrong([i for i in ABSOLUTE if i.module.split(".")[0] in HOST and i.layer in ("core", "engine")]) == []


def test_dbos_when_it_is_imported_then_by_the_engine_alone() -> None:
    """No other layer knows the durable library."""
    found = {i.layer for i in ABSOLUTE if i.module.split(".")[0] == "dbos"}
    assert found == {"engine"}


def test_dbos_when_a_client_is_loaded_then_it_is_not() -> None:
    """Chat, command line and dashboard start and read runs without loading the durable library."""
    code = "import sys, matrix_coder.engine.client; print('dbos' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_late_imports_by_name_when_looked_for_then_the_listed_places_alone() -> None:
    """An import by name hides from the rules above, so each is listed.

    Front door, launcher, the dashboard's shim, and what a step loads of the host.
    """
    found = {
        str(file.relative_to(ROOT))
        for file in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) in ("import_module", "__import__")
    }
    assert found == {"core/harness.py", "launch.py", "dashboard/plugin_api.py", "hermes/step_process.py"}
