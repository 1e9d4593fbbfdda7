"""The plugin loads both ways the host knows, and costs a process next to nothing until it is used."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

import matrix_coder
from matrix_coder.core.prompts import compose
from matrix_coder.testing import HermesHome, ScriptedModel

from .leaks import blocks, user_texts

HEAVY = ("dbos", "sqlalchemy", "yaml", "pydantic", "click", "rich", "psutil")
LOADED = """
import json
from hermes_cli.plugins import discover_plugins, get_plugin_manager
discover_plugins()
(plugin,) = [p for p in get_plugin_manager()._plugins.values() if p.manifest.name == "matrix_coder"]
print(json.dumps({"source": plugin.manifest.source, "module": plugin.module.__name__, "error": plugin.error}))
"""


@pytest.fixture
def bare_site(tmp_path: Path) -> dict[str, str]:
    """An environment with the host's packages, but without this package's entry point and without DBOS.

    Links to the packages, read by the base interpreter: a real installation that lacks two of them.
    """
    folder = tmp_path / "site"
    folder.mkdir()
    absent = ("matrix_coder", "_editable_impl_matrix", "dbos")
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if entry.suffix != ".pth" and not entry.name.lower().startswith(absent):
            (folder / entry.name).symlink_to(entry)
    return {"PYTHONPATH": str(folder)}


def as_folder(home: HermesHome) -> None:
    """Puts the package into the home as a directory plugin."""
    plugins = home.path / "plugins"
    plugins.mkdir()
    (plugins / "matrix_coder").symlink_to(Path(matrix_coder.__file__).parent)


def base_python(home: HermesHome, env: dict[str, str], *words: str) -> str:
    """Output of the base interpreter in the home."""
    interpreter = Path(getattr(sys, "_base_executable", sys.executable))
    done = home.command(str(interpreter), *words, env=env)
    assert done.rc == 0, done.err
    return done.out


def test_entry_point_when_enabled_then_the_host_loads_it_under_its_own_name(
    scripted_model: Callable[..., ScriptedModel], hermes_home: Callable[..., HermesHome]
) -> None:
    """The installed package is found by its entry point."""
    loaded = json.loads(hermes_home(scripted_model()).python(LOADED).out.splitlines()[-1])
    assert loaded == {"source": "entrypoint", "module": "matrix_coder", "error": None}


def test_directory_plugin_when_enabled_then_routing_works_without_the_package_and_the_engine(
    scripted_model: Callable[..., ScriptedModel],
    hermes_home: Callable[..., HermesHome],
    bare_site: dict[str, str],
) -> None:
    """As a directory plugin, in an environment without this package and DBOS, a header brings the specialist;
    a workflow gets the one line that installs the engine."""
    model = scripted_model(default="very well")
    home = hermes_home(model)
    as_folder(home)
    loaded = json.loads(base_python(home, bare_site, "-c", LOADED).splitlines()[-1])
    assert loaded == {"source": "user", "module": "hermes_plugins.matrix_coder", "error": None}
    hermes = ("-m", "hermes_cli.main", "-z")
    assert base_python(home, bare_site, *hermes, "matrix review:api: the routes").strip() == "very well"
    base_python(home, bare_site, *hermes, "matrix ralph: make the tests pass")
    persona, workflow = model.bodies
    assert compose("review", lens="api", surface="chat") in blocks(persona)[0]
    assert 'pip install "dbos>=3.2,<3.3"' in blocks(workflow)[0]
    assert compose("review", lens="api", surface="chat") not in user_texts(workflow)[-1]


def test_register_when_called_by_the_host_then_nothing_heavy_is_imported(
    scripted_model: Callable[..., ScriptedModel], hermes_home: Callable[..., HermesHome]
) -> None:
    """In a process that has the host, loading the plugin imports neither the engine nor what the mind needs."""
    code = """
import json, sys
import run_agent
from hermes_cli.plugins import PluginContext, PluginManifest, get_plugin_manager
ctx = PluginContext(PluginManifest(name="matrix_coder", source="entrypoint"), get_plugin_manager())
before = set(sys.modules)
import matrix_coder
matrix_coder.register(ctx)
print(json.dumps(sorted(set(sys.modules) - before)))
"""
    home = hermes_home(scripted_model(), plugins=())
    new = json.loads(home.python(code).out.splitlines()[-1])
    assert "matrix_coder.hermes.hooks" in new
    assert not [name for name in new if name.split(".")[0] in HEAVY]
    assert not [name for name in new if name.startswith(("matrix_coder.core", "matrix_coder.engine"))]


def test_modules_of_register_when_imported_alone_then_they_need_only_the_standard_library() -> None:
    """What `register` imports brings in no other package, even where the host has not imported it yet."""
    code = """
import sys
import matrix_coder.hermes.hooks, matrix_coder.hermes.wiring
print(*sorted({name.split(".")[0] for name in sys.modules}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(HEAVY) & set(done.stdout.split())
