"""One version, in one place; whatever else shows it says the same."""

from __future__ import annotations

from importlib.metadata import version
from importlib.resources import files

import yaml

import matrix_coder
from matrix_coder._version import __version__


def test_version_when_shown_anywhere_then_it_is_the_same() -> None:
    """The manifest, the package and the installed distribution agree."""
    manifest = yaml.safe_load(files("matrix_coder").joinpath("plugin.yaml").read_text(encoding="utf-8"))
    assert manifest["version"] == matrix_coder.__version__ == __version__ == version("matrix-coder")
