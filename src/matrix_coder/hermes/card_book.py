"""Which Kanban card shows which step, kept in the run store."""

from __future__ import annotations

from collections.abc import Mapping

from ..engine import views
from ..engine.store import Store
from .kanban_sync import CardRecord


class StoreCardBook:
    """The mirror's `CardBook` over the run store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def cards_of(self, run_id: str) -> dict[int, CardRecord]:
        """What is kept about the cards of a run (step 0) and of its steps."""
        rows = self.store.read("select * from cards where run_id = ?", views.run_number(run_id))
        return {
            r["step"]: CardRecord(card_id=r["card_id"], shown=r["shown"], state=r["state"], board=r["board"])
            for r in rows
        }

    def record(self, run_id: str, cards: Mapping[int, CardRecord]) -> None:
        """Keep these. A machine's sudden end may lose the last ones: cards are found by their keys, too."""
        number = views.run_number(run_id)
        rows = [(number, step, c.card_id, c.shown, c.state, c.board) for step, c in cards.items()]
        with self.store.transaction(synced=False) as db:
            db.executemany(
                "insert or replace into cards (run_id, step, card_id, shown, state, board) values (?, ?, ?, ?, ?, ?)",
                rows,
            )
