"""A run, shown on the host's Kanban board: read the truth, read the board, make the moves in between.

`KanbanMirror.sync` can be called at any time, any number of times, after any crash or outage: what to do
follows from what the board shows, never from what was done before. It reads its own writes back on a
fresh connection and repeats what is missing, because the host loses writes (see `kanban_board`).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from ..core.models import RunView
from .kanban_board import BoardError, HostBoard
from .kanban_cards import run_card, specialist_card, specialist_title, step_card
from .kanban_plan import ARCHIVED, Move, Seen, Verb, fresh, moves
from .kanban_text import RUN_CARD, Attachment, Card, CardEnd, CardState, Scalar, fit_metadata, one_line

ROUNDS = 4
"""Passes over the board in one sync: one that writes, one that reads back, two for what was lost."""

CLOCK_SLACK_S = 5
"""The host counts whole seconds: a card may look a little older than its run."""

FORGOTTEN_AFTER_S = 86_400.0
"""A single specialist's card that is open for longer was left by a session that died."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardRecord:
    """What is kept about one card: its id and board, a digest of what it shows, and its state."""

    card_id: str
    shown: str = ""
    state: str = ""
    board: str = ""


class CardBook(Protocol):
    """Which card shows which run or step. Step 0 is the run itself."""

    def card_of(self, run_id: str, step: int) -> CardRecord | None: ...

    def record(self, run_id: str, step: int, card: CardRecord) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """What one sync did, in cards, and what it could not do."""

    created: int = 0
    updated: int = 0
    repaired: int = 0
    problems: tuple[str, ...] = ()


class KanbanMirror:
    """Shows runs on one board of the host: the named one, or the one current when the run started."""

    def __init__(self, card_book: CardBook, board: str | None = None, clock: Callable[[], float] = time.time) -> None:
        self._book = card_book
        self._board = board or ""
        self._clock = clock
        self._boards_of_singles: dict[str, str] = {}

    def sync(self, run: RunView) -> SyncReport:
        """Make the board show the run. Trouble with the board is reported, not raised; call again later."""
        work = _Sync(self._book, run)
        try:
            record = self._book.card_of(run.run_id, RUN_CARD)
            board = HostBoard((record.board if record else "") or self._board)
            seen = work.look(board)
            board.keep()
            work.make(board, seen)
        except BoardError as trouble:
            work.problems.append(str(trouble))
        return work.report()

    def open_specialist_card(self, route: str, goal: str, session_id: str, turn: str = "") -> str | None:
        """The id of a running card for one specialist's turn, or None while the board can't be written.

        Cards that this session left open before, and those of dead sessions, are closed as interrupted.
        """
        now = self._clock()
        card = specialist_card(route, goal, session_id, turn or f"{now:.3f}")
        try:
            board = HostBoard(self._board)
            for left in board.left_open(card, now - FORGOTTEN_AFTER_S):
                board.complete(left, "interrupted: its turn never came to an end", {"end": CardEnd.INTERRUPTED})
            board.keep()
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


class _Sync:
    """One sync of one run: passes over its cards until a pass finds nothing to do."""

    def __init__(self, book: CardBook, run: RunView) -> None:
        self.book = book
        self.run = run
        self.problems: list[str] = []
        self._touched: dict[str, set[int]] = {"created": set(), "updated": set(), "repaired": set()}
        self._wanted = [run_card(run), *(step_card(run, s) for s in run.steps)]
        self._records = {c.step: book.card_of(run.run_id, c.step) for c in self._wanted}
        self._taken_keys: set[str] = set()

    def report(self) -> SyncReport:
        made, fixed = self._touched["created"], self._touched["repaired"]
        return SyncReport(
            created=len(made),
            updated=len(self._touched["updated"] - made),
            repaired=len(fixed),
            problems=tuple(dict.fromkeys(self.problems)),
        )

    def make(self, board: HostBoard, seen: dict[int, Seen]) -> None:
        """Passes until one finds the board as it should be, at most `ROUNDS`."""
        for attempt in range(ROUNDS):
            self.problems.clear()
            if not self._pass(board, seen, again=attempt > 0):
                return self._remember(board, seen)
            seen = self.look(board)
        self.problems.append(f"run {self.run.run_id}: the board still differs after {ROUNDS} passes")
        return None

    # Looking ------------------------------------------------------------------------------------------

    def look(self, board: HostBoard) -> dict[int, Seen]:
        """Our cards as the board shows them now, by step."""
        found = board.cards(k for c in self._wanted for k in (c.key, self._later_key(c)))
        picked = {c.step: self._pick(c, found) for c in self._wanted}
        return {step: seen for step, seen in picked.items() if seen is not None}

    def _later_key(self, card: Card) -> str:
        """The key where an older store had a run of the same number and its card is still there."""
        return f"{card.key}@{int(self.run.created_at)}"

    def _pick(self, card: Card, found: dict[str, list[Seen]]) -> Seen | None:
        record = self._records[card.step]
        known = record.card_id if record else ""
        oldest = int(self.run.created_at) - CLOCK_SLACK_S
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
        busy = False
        if not ended or RUN_CARD not in seen:
            busy = self._card(board, opening, seen, again=again)
        for card in steps:
            busy |= self._card(board, card, seen, again=again)
        if ended:
            busy |= self._card(board, parent, seen, again=again)
        return busy

    def _card(self, board: HostBoard, card: Card, seen: dict[int, Seen], *, again: bool) -> bool:
        """Whether this card had to be touched. Trouble that is this card's alone stays with it."""
        try:
            if card.step in seen:
                return self._bring(board, card, seen, again=again)
            if self._put_away(card, seen):
                return False
            seen[card.step] = self._create(board, card, again=again)
            self._bring(board, card, seen, again=again)
        except BoardError as trouble:
            if trouble.lasting:
                raise
            self.problems.append(str(trouble))
        return True

    def _bring(self, board: HostBoard, card: Card, seen: dict[int, Seen], *, again: bool) -> bool:
        """Whether the card differed from what it should show; then its moves were made."""
        now, record = seen[card.step], self._records[card.step]
        parent = seen.get(RUN_CARD) if card.step != RUN_CARD else None
        above = parent.card_id if parent and not parent.archived else ""
        if now.taken:
            self.problems.append(f"card {now.card_id} is held by another worker and was left alone")
        plan = moves(_with_real_files(card), now, above, was=record.state if record else "")
        if plan:
            was_right = again or (record is not None and record.shown == card.digest())
            self._touched["repaired" if was_right else "updated"].add(card.step)
        for move in plan:
            _play(board, move, card, now.card_id, above)
        return bool(plan)

    def _put_away(self, card: Card, seen: dict[int, Seen]) -> bool:
        """A person archived this card, or the whole run's card: no new one comes in its place."""
        records = [self._records[card.step], self._records[RUN_CARD]]
        run = seen.get(RUN_CARD)
        return (run is not None and run.archived) or any(r is not None and r.state == ARCHIVED for r in records)

    def _create(self, board: HostBoard, card: Card, *, again: bool) -> Seen:
        """The new card, or the one that an earlier try created before it could record it."""
        lost = again or self._records[card.step] is not None
        key = self._later_key(card) if card.key in self._taken_keys else card.key
        card_id = board.create(replace(card, key=key))
        self._touched["repaired" if lost else "created"].add(card.step)
        record = self._records[card.step] = CardRecord(card_id=card_id, board=board.slug)
        self.book.record(self.run.run_id, card.step, record)
        return fresh(card, card_id)

    def _remember(self, board: HostBoard, seen: dict[int, Seen]) -> None:
        for card in self._wanted:
            if (now := seen.get(card.step)) is None:
                continue
            state = ARCHIVED if now.archived else card.state.value
            kept = CardRecord(card_id=now.card_id, shown=card.digest(), state=state, board=board.slug)
            if kept != self._records[card.step]:
                self.book.record(self.run.run_id, card.step, kept)


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
