"""Which Kanban card shows which step, kept in the run store."""

from __future__ import annotations

from ..engine import views
from ..engine.store import Store
from .kanban import CardRecord


class StoreCardBook:
    """The mirror's `CardBook` over the run store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def card_of(self, run_id: str, step: int) -> CardRecord | None:
        """What is kept about the card of a run (step 0) or of a step; None when it has none."""
        rows = self.store.read("select * from cards where run_id = ? and step = ?", views.run_number(run_id), step)
        if not rows:
            return None
        row = rows[0]
        return CardRecord(card_id=row["card_id"], shown=row["shown"], state=row["state"], board=row["board"])

    def record(self, run_id: str, step: int, card: CardRecord) -> None:
        """Keep what was last written to a card."""
        with self.store.transaction() as db:
            db.execute(
                "insert or replace into cards (run_id, step, card_id, shown, state, board) values (?, ?, ?, ?, ?, ?)",
                (views.run_number(run_id), step, card.card_id, card.shown, card.state, card.board),
            )
