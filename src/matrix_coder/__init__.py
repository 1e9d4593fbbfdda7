"""Specialist routing and honest, durable coding loops for Hermes Agent."""

from __future__ import annotations

from typing import Any

from ._version import __version__

__all__ = ["__version__", "register"]


def register(ctx: Any) -> None:
    """Hermes' plugin entry: wires the hooks. What they need is imported by the first turn that needs it."""
    from .hermes.hooks import register_hooks  # noqa: PLC0415 - `import matrix_coder` alone touches no host
    from .hermes.wiring import register_all  # noqa: PLC0415

    register_all(ctx)
    register_hooks(ctx)
