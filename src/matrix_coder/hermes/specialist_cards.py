"""The intake's port to the board: one card for each single specialist's turn that the settings ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.decision import Decision, GateOutcome
from ..core.ports import CardEnd
from ..engine.paths import hermes_home
from . import surface
from .settings import KanbanSettings, Mirror, load_settings

if TYPE_CHECKING:
    from .kanban_thread import SpecialistThread

_FLUSH_S = 2.0


class SpecialistCards:
    """Opens and closes cards from the turn's hooks without ever waiting for the board, but at a process's end."""

    def __init__(self, settings: KanbanSettings | None = None) -> None:
        self._settings = settings or load_settings(hermes_home()).kanban
        self._thread: SpecialistThread | None = None
        self._open: dict[str, Decision] = {}

    def opened(self, decision: Decision, *, session_id: str, turn_id: str) -> str | None:
        """The turn's id as the card's, where this kind of turn gets one; else None."""
        if not self._wanted(decision):
            return None
        self._open[turn_id] = decision
        self._writer().open(turn_id, decision.route or "", decision.goal, session_id)
        return turn_id

    def closed(self, card: str, end: CardEnd) -> None:
        """The turn ended so; its card will say it."""
        decision = self._open.pop(card, None)
        if decision is None:
            return
        self._writer().close(card, end.value, route=decision.route or "", goal=decision.goal)
        if surface.is_one_shot("cli") and self._thread is not None:
            # The process is about to leave without waiting for any thread.
            self._thread.stop(_FLUSH_S)
            self._thread = None

    def _wanted(self, decision: Decision) -> bool:
        mirror = self._settings.mirror
        return mirror is Mirror.ALL or (mirror is Mirror.EXPLICIT and decision.outcome is GateOutcome.EXPLICIT)

    def _writer(self) -> SpecialistThread:
        from .kanban import KanbanMirror  # noqa: PLC0415 - loads the host's board with the first card
        from .kanban_thread import SpecialistThread  # noqa: PLC0415

        if self._thread is None:
            self._thread = SpecialistThread(KanbanMirror(_NoBook(), board=self._settings.board or None))
        return self._thread


class _NoBook:
    """Single cards are found by their own keys; nothing is kept about them."""

    def card_of(self, run_id: str, step: int) -> None:
        """No run's card is known here."""

    def record(self, run_id: str, step: int, card: object) -> None:
        """Nothing is kept."""
