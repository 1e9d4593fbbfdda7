"""The intake's port to the board: one card for each single specialist's turn that the settings ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..core.decision import Decision, GateOutcome
from ..core.ports import CardEnd
from ..engine.paths import hermes_home
from . import surface

if TYPE_CHECKING:
    from .kanban_sync import CardRecord
    from .kanban_thread import SpecialistThread
    from .settings import KanbanSettings

_FLUSH_S = 2.0


class SpecialistCards:
    """Opens and closes cards from the turn's hooks without ever waiting for the board, but at a process's end."""

    def __init__(self, settings: KanbanSettings | None = None) -> None:
        self._given = settings
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

    @property
    def _settings(self) -> KanbanSettings:
        """Read with the first specialist's turn: ordinary turns need none."""
        from .settings import chat_settings  # noqa: PLC0415 - brings the validating library

        self._given = self._given or chat_settings(hermes_home()).kanban
        return self._given

    def _wanted(self, decision: Decision) -> bool:
        wanted = {"all"} if decision.outcome is not GateOutcome.EXPLICIT else {"all", "explicit"}
        return self._settings.mirror.value in wanted

    def _writer(self) -> SpecialistThread:
        from .kanban import KanbanMirror  # noqa: PLC0415 - loads the host's board with the first card
        from .kanban_thread import SpecialistThread  # noqa: PLC0415

        if self._thread is None:
            self._thread = SpecialistThread(KanbanMirror(_NoBook(), board=self._settings.board or None))
        return self._thread


class _NoBook:
    """Single cards are found by their own keys; nothing is kept about them."""

    def cards_of(self, run_id: str) -> dict[int, CardRecord]:
        """No run's card is known here."""
        return {}

    def record(self, run_id: str, cards: Mapping[int, CardRecord]) -> None:
        """Nothing is kept."""
