"""Sessions that go on under a new id, as the host's compression makes them: they keep their runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from . import surface
from .markers import any_marker, has_marker


@dataclass(slots=True)
class Successors:
    """Hands waiting runs on from a session to the one that goes on in its place."""

    home: Path
    _known: set[str] = field(default_factory=set)

    def follow(self, session_id: str) -> None:
        """Take over the runs of the session before this one. Looked up once for each id, while any runs wait."""
        if not session_id or session_id in self._known:
            return
        ancestors = surface.ancestors(session_id) if any_marker(self.home) else []
        if ancestors is None:
            return  # a chat has its new id a moment before the host's table has it
        self._known.add(session_id)
        predecessor = next((p for p in ancestors if has_marker(self.home, p)), "")
        if predecessor:
            from ..engine.client import Client  # noqa: PLC0415 - routing must work without the engine
            from .bridge import HermesBridge  # noqa: PLC0415

            HermesBridge(Client(self.home).store).adopt(session_id, predecessor)
