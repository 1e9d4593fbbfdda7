"""One sync of one run with its board: look, make the moves in between, look again.

What to do follows from what the board shows, never from what was done before. Each look is on a fresh
connection, and what is missing is written again, because the host loses writes (see `kanban_file`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from ..core.models import RunView, StepView
from .kanban_board import HostBoard
from .kanban_cards import step_card
from .kanban_file import BoardError
from .kanban_plan import ARCHIVED, Move, Seen, Verb, fresh, moves
from .kanban_run_card import run_card
from .kanban_text import RUN_CARD, Attachment, Card, CardState

ROUNDS = 4
"""Looks at the board in one sync: one before it writes, one that reads back, two for what was lost."""

CLOCK_SLACK_S = 5
"""The host counts whole seconds: a card may look a little older than its run."""

CARDS_TOGETHER = 25
"""Cards in one transaction: other programs wait for the board no longer than these take, some 50 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardRecord:
    """What is kept about one card: its id and board, a digest of what it shows, and its state."""

    card_id: str
    shown: str = ""
    state: str = ""
    board: str = ""


class CardBook(Protocol):
    """Which card shows which run or step. Step 0 is the run itself."""

    def cards_of(self, run_id: str) -> dict[int, CardRecord]:
        """What is kept about the cards of a run, by step."""

    def record(self, run_id: str, cards: Mapping[int, CardRecord]) -> None:
        """Keep these, all at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """What one sync did, in cards, and what it could not do."""

    created: int = 0
    updated: int = 0
    repaired: int = 0
    problems: tuple[str, ...] = ()


class Sync:
    """One sync of a run and some of its steps: looks and moves until a look finds nothing to do."""

    def __init__(self, book: CardBook, run: RunView, steps: Sequence[StepView]) -> None:
        self.problems: list[str] = []
        self._book = book
        self._run = run
        self._touched: dict[str, set[int]] = {"created": set(), "updated": set(), "repaired": set()}
        self._records = book.cards_of(run.run_id)
        self._new: dict[int, CardRecord] = {}
        self._wanted = [run_card(run), *(step_card(run, s) for s in steps)]
        self._taken_keys: set[str] = set()

    @property
    def board(self) -> str:
        """The board where the run's card is; empty when it has none yet."""
        record = self._records.get(RUN_CARD)
        return record.board if record else ""

    def leave_what_is_shown(self) -> bool:
        """Whether anything is left to look at once the cards that were last seen right are left out.

        All of a run's cards are recorded at once, so where the run's own is right at its end, all are.
        """
        parent, *steps = self._wanted
        if self._is_shown(parent) and (parent.state is not CardState.RUNNING or all(map(self._is_shown, steps))):
            return False
        self._wanted = [parent, *(c for c in steps if not self._is_shown(c))]
        return True

    def _is_shown(self, card: Card) -> bool:
        record = self._records.get(card.step)
        return record is not None and record.shown == card.digest()

    def report(self) -> SyncReport:
        """What was done so far."""
        made, fixed = self._touched["created"], self._touched["repaired"]
        return SyncReport(
            created=len(made),
            updated=len(self._touched["updated"] - made),
            repaired=len(fixed),
            problems=tuple(dict.fromkeys(self.problems)),
        )

    def make(self, board: HostBoard) -> None:
        """Look and move until the board is as it should be, at most `ROUNDS` times. Raises BoardError."""
        for attempt in range(ROUNDS):
            self.problems.clear()
            with board.shared():
                seen = self._look(board)
                if not self._pass(board, seen, again=attempt > 0):
                    return self._remember(board, seen)
        self.problems.append(f"run {self._run.run_id}: the board still differs after {ROUNDS} looks")
        return None

    # Looking ------------------------------------------------------------------------------------------

    def _look(self, board: HostBoard) -> dict[int, Seen]:
        """Our cards as the board shows them now, by step."""
        found = board.cards(k for c in self._wanted for k in (c.key, self._later_key(c)))
        picked = {c.step: self._pick(c, found) for c in self._wanted}
        held = [s.card_id for s in picked.values() if s is not None and s.taken]
        self.problems += [f"card {card_id} is held by another worker and was left alone" for card_id in held]
        return {step: seen for step, seen in picked.items() if seen is not None}

    def _later_key(self, card: Card) -> str:
        """The key where an older store had a run of the same number and its card is still there."""
        return f"{card.key}@{int(self._run.created_at)}"

    def _pick(self, card: Card, found: dict[str, list[Seen]]) -> Seen | None:
        record = self._records.get(card.step)
        known = record.card_id if record else ""
        oldest = int(self._run.created_at) - CLOCK_SLACK_S
        mine = [s for s in found.get(card.key, []) if s.card_id == known or s.created_at >= oldest]
        if len(mine) < len(found.get(card.key, [])):
            self._taken_keys.add(card.key)
        mine += found.get(self._later_key(card), [])
        # The recorded card, else one that is not archived, else an archived one.
        return min(mine, key=lambda s: (s.card_id != known, s.archived), default=None)

    # Moving -------------------------------------------------------------------------------------------

    def _pass(self, board: HostBoard, seen: dict[int, Seen], *, again: bool) -> bool:
        """Whether anything had to be done: the run's card is opened before its steps, and closed after."""
        parent, *steps = self._wanted
        ended = parent.state is not CardState.RUNNING
        opening = replace(parent, state=CardState.RUNNING, comments=()) if ended else parent
        cards = [] if ended and RUN_CARD in seen else [opening]
        cards += [*steps, parent] if ended else steps
        busy = False
        for at in range(0, len(cards), CARDS_TOGETHER):
            busy |= self._part(board, cards[at : at + CARDS_TOGETHER], seen, again=again)
        return busy

    def _part(self, board: HostBoard, cards: list[Card], seen: dict[int, Seen], *, again: bool) -> bool:
        """Whether any of these cards had to be touched; all of them in one transaction where that can be."""
        if not any(self._to_create(card, seen) or self._plan(card, seen) for card in cards):
            return False
        before = {what: set(steps) for what, steps in self._touched.items()}
        self._new = {}
        try:
            with board.together():
                for card in cards:
                    self._card(board, card, seen, again=again)
        except BoardError as trouble:
            # One that does not last came after the commit: while others write, the host takes files for torn.
            if trouble.lasting:
                self._touched = before
                raise
            self.problems.append(str(trouble))
        if self._new:
            self._book.record(self._run.run_id, self._new)
        return True

    def _card(self, board: HostBoard, card: Card, seen: dict[int, Seen], *, again: bool) -> None:
        """Bring one card to what it should show. Trouble that is this card's alone stays with it."""
        try:
            if self._to_create(card, seen):
                seen[card.step] = self._create(board, card, again=again)
            if plan := self._plan(card, seen):
                record = self._records.get(card.step)
                was_right = again or (record is not None and record.shown == card.digest())
                self._touched["repaired" if was_right else "updated"].add(card.step)
                for move in plan:
                    _play(board, move, card, seen[card.step].card_id, _parent_of(card, seen))
        except BoardError as trouble:
            if trouble.lasting:
                raise
            self.problems.append(str(trouble))

    def _plan(self, card: Card, seen: dict[int, Seen]) -> list[Move]:
        now, record = seen.get(card.step), self._records.get(card.step)
        if now is None:
            return []
        return moves(_with_real_files(card), now, _parent_of(card, seen), was=record.state if record else "")

    def _to_create(self, card: Card, seen: dict[int, Seen]) -> bool:
        """Not there, and not put away: a person archived this card, or the whole run's card."""
        if card.step in seen:
            return False
        records = [self._records.get(card.step), self._records.get(RUN_CARD)]
        run = seen.get(RUN_CARD)
        return not (run is not None and run.archived) and all(r is None or r.state != ARCHIVED for r in records)

    def _create(self, board: HostBoard, card: Card, *, again: bool) -> Seen:
        """The new card, or the one that an earlier try created before it could record it."""
        lost = again or card.step in self._records
        key = self._later_key(card) if card.key in self._taken_keys else card.key
        card_id = board.create(replace(card, key=key))
        self._touched["repaired" if lost else "created"].add(card.step)
        self._new[card.step] = self._records[card.step] = CardRecord(card_id=card_id, board=board.slug)
        return fresh(card, card_id)

    def _remember(self, board: HostBoard, seen: dict[int, Seen]) -> None:
        """Keep what was seen right, all at once, so that the run's own card vouches for the others."""
        kept: dict[int, CardRecord] = {}
        for card in self._wanted:
            if (now := seen.get(card.step)) is None or now.taken:
                continue
            state = ARCHIVED if now.archived else card.state.value
            record = CardRecord(card_id=now.card_id, shown=card.digest(), state=state, board=board.slug)
            if record != self._records.get(card.step):
                kept[card.step] = record
        if kept and not self.problems:
            self._book.record(self._run.run_id, kept)


def _parent_of(card: Card, seen: dict[int, Seen]) -> str:
    """The id of the run's card, for a step's card under it."""
    parent = seen.get(RUN_CARD) if card.step != RUN_CARD else None
    return parent.card_id if parent and not parent.archived else ""


def _with_real_files(card: Card) -> Card:
    return replace(card, attachments=tuple(a for a in card.attachments if _worth_attaching(a)))


def _worth_attaching(attachment: Attachment) -> bool:
    """The file is there, and holds more than the comment shows."""
    with contextlib.suppress(OSError):
        return Path(attachment.path).stat().st_size > attachment.shown_chars
    return False


def _play(board: HostBoard, move: Move, card: Card, card_id: str, parent: str) -> None:
    """One move, as one call on the host."""
    match move.verb:
        case Verb.CLAIM:
            board.claim(card_id, card.claimer)
        case Verb.COMPLETE:
            board.complete(card_id, card.line, card.metadata)
        case Verb.RESULT:
            board.result(card_id, card.line, card.metadata)
        case Verb.BLOCK:
            board.block(card_id, card.line, move.text)
        case Verb.EDIT:
            board.edit(card, card_id)
        case Verb.LINK:
            board.link(parent, card_id)
        case Verb.UNLINK:
            board.unlink(parent, card_id)
        case Verb.COMMENT:
            board.comment(card_id, move.text)
        case Verb.ATTACH:
            path = next(a.path for a in card.attachments if a.filename == move.text)
            board.attach(card_id, move.text, path)
        case Verb.UNBLOCK | Verb.RECLAIM | Verb.RESET | Verb.ASSIGN:
            getattr(board, move.verb)(card_id)
