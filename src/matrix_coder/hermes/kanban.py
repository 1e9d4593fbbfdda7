"""The Kanban mirror: runs and single specialists, shown on the host's board.

`KanbanMirror.sync` can be called at any time, any number of times, after any crash or outage: what to do
follows from what the board shows (see `kanban_sync`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from ..core.models import RunStatus, RunView, StepStatus, StepView, Usage
from .kanban_board import HostBoard
from .kanban_cards import specialist_card, specialist_title
from .kanban_file import BoardError
from .kanban_sync import ROUNDS, CardBook, CardRecord, Sync, SyncReport
from .kanban_text import Card, CardEnd, CardState, Scalar, fit_metadata, one_line

__all__ = ["CardBook", "CardRecord", "KanbanMirror", "SyncReport"]

FORGOTTEN_AFTER_S = 86_400.0
"""A single specialist's card that is open for longer was left by a session that died."""


class KanbanMirror:
    """Shows runs on one board of the host: the named one, or the one current when the run started."""

    def __init__(self, card_book: CardBook, board: str | None = None, clock: Callable[[], float] = time.time) -> None:
        self._book = card_book
        self._board = board or ""
        self._clock = clock
        self._boards_of_singles: dict[str, str] = {}
        self._last: dict[str, RunView] = {}

    def sync(self, run: RunView, *, whole: bool = True) -> SyncReport:
        """Make the board show the run. Trouble with the board is reported, not raised; call again later.

        Without `whole`, cards that were seen right and should show the same as then are not looked at again, so
        that a step costs the same at the end of a long run: what others did to them is found by the next whole one.
        """
        last = None if whole else self._last.get(run.run_id)
        work = Sync(self._book, run, run.steps if last is None else _changed_steps(last, run))
        try:
            if whole or work.leave_what_is_shown():
                work.make(HostBoard(work.board or self._board))
        except BoardError as trouble:
            work.problems.append(str(trouble))
        if work.problems or run.status is RunStatus.ENDED:
            self._last.pop(run.run_id, None)
        else:
            self._last[run.run_id] = run
        return work.report()

    def open_specialist_card(self, route: str, goal: str, session_id: str, turn: str = "") -> str | None:
        """The id of a running card for one specialist's turn, or None while the board can't be written.

        Cards that this session left open before, and those of dead sessions, are closed as interrupted.
        """
        now = self._clock()
        card = specialist_card(route, goal, session_id, turn or f"{now:.3f}")
        try:
            board = HostBoard(self._board)
            with board.shared():
                for left in board.left_open(card, now - FORGOTTEN_AFTER_S):
                    board.complete(left, "interrupted: its turn never came to an end", {"end": CardEnd.INTERRUPTED})
            card_id = _open_single(board, card)
        except BoardError:
            return None
        self._boards_of_singles[card_id] = board.slug
        return card_id

    def close_specialist_card(
        self,
        card_id: str,
        how: CardEnd | str,
        *,
        route: str = "",
        goal: str = "",
        line: str = "",
        facts: dict[str, Scalar] | None = None,
    ) -> bool:
        """Whether the card now says how its turn ended; False while the board can't be written."""
        end = CardEnd(how)
        told = one_line(f"{end}: {line}" if line else str(end), 200)
        try:
            board = HostBoard(self._boards_of_singles.get(card_id, self._board))
            closed = _close_single(board, card_id, told, fit_metadata({"end": str(end), **(facts or {})}))
            if closed and route:
                body = f"{told}\n- Goal: {one_line(goal, 300)}"
                board.retitle(card_id, specialist_title(route, goal, end), body)
        except BoardError:
            return False
        self._boards_of_singles.pop(card_id, None)
        return closed


def _open_single(board: HostBoard, card: Card) -> str:
    """Created, claimed, and there when looked for again."""
    for _ in range(ROUNDS):
        with board.shared():
            card_id = board.create(card)
            board.claim(card_id, card.claimer)
        if any(s.status == CardState.RUNNING for s in board.cards([card.key]).get(card.key, [])):
            return card_id
    raise BoardError("the board does not keep the card", lasting=True)


def _close_single(board: HostBoard, card_id: str, line: str, facts: dict[str, Scalar]) -> bool:
    """Whether the card is done when looked for again."""
    for _ in range(ROUNDS):
        board.complete(card_id, line, facts)
        if board.status(card_id) == CardState.DONE:
            return True
    return False


def _changed_steps(last: RunView, run: RunView) -> tuple[StepView, ...]:
    """The steps that may read otherwise than in the last view: of rounds where something changed, and questions."""
    if _frame(last) != _frame(run):
        return run.steps
    before = {s.number: s for s in last.steps}
    rounds = {s.iteration for s in run.steps if before.get(s.number) != s}
    return tuple(s for s in run.steps if s.iteration in rounds or s.status is StepStatus.BLOCKED)


def _frame(run: RunView) -> RunView:
    """What all steps of a run have in common."""
    return replace(run, steps=(), iteration=0, usage=Usage())
