"""From what a board shows to what it should show: the moves in between. Pure.

The board is a picture of the run, so whatever a person changed on a card is put back, with two
exceptions: an archived card was put away on purpose and stays away, and a card that another worker
holds is that worker's. People's comments are theirs and are never touched.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from .kanban_text import ASSIGNEE, CLAIM_PREFIX, Card, CardState

ARCHIVED = "archived"


class Verb(StrEnum):
    """One call on the host's board. `RESET` is what the host's own page does when a card is dragged."""

    ASSIGN = "assign"
    UNLINK = "unlink"
    RECLAIM = "reclaim"
    UNBLOCK = "unblock"
    RESET = "reset"
    CLAIM = "claim"
    COMPLETE = "complete"
    BLOCK = "block"
    RESULT = "result"
    EDIT = "edit"
    LINK = "link"
    COMMENT = "comment"
    ATTACH = "attach"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A verb and what it needs: the comment, the file name or the kind of the block."""

    verb: Verb
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One card as the board shows it, read on a connection of its own."""

    card_id: str
    status: str
    title: str = ""
    body: str = ""
    result: str = ""
    assignee: str = ASSIGNEE
    priority: int = 0
    claim: str = ""
    block_kind: str = ""
    created_at: int = 0
    parents: frozenset[str] = field(default_factory=frozenset)
    comments: frozenset[str] = field(default_factory=frozenset)
    files: frozenset[str] = field(default_factory=frozenset)

    @property
    def archived(self) -> bool:
        return self.status == ARCHIVED

    @property
    def taken(self) -> bool:
        """A worker that is not ours runs this card."""
        ours = not self.claim or self.claim.startswith(CLAIM_PREFIX)
        return self.status == CardState.RUNNING and not ours


def fresh(card: Card, card_id: str) -> Seen:
    """What the board shows of a card right after it was created."""
    return Seen(card_id=card_id, status="ready", title=card.title, body=card.body, priority=card.priority)


def moves(card: Card, seen: Seen, parent: str = "", *, was: str = "") -> list[Move]:
    """The moves that make `seen` show `card`, in the order in which the host accepts them.

    `parent` is the run's card for a step's card, else empty; `was` the state that we last left it in.
    """
    if seen.archived or seen.taken:
        return []
    status = _status_moves(card, seen)
    linked = bool(parent) and parent in seen.parents
    plan = [Move(verb=Verb.ASSIGN)] if seen.assignee != ASSIGNEE and seen.status != CardState.RUNNING else []
    if linked and any(m.verb is Verb.CLAIM for m in status):
        # The host lets nothing under an open parent be claimed.
        plan.append(Move(verb=Verb.UNLINK))
        linked = False
    plan += status
    if (card.title, card.body, card.priority) != (seen.title, seen.body, seen.priority):
        plan.append(Move(verb=Verb.EDIT))
    if parent and not linked:
        plan.append(Move(verb=Verb.LINK))
    plan += [Move(verb=Verb.COMMENT, text=c) for c in _comments(card, seen, was) if c not in seen.comments]
    return plan + [Move(verb=Verb.ATTACH, text=a.filename) for a in card.attachments if a.filename not in seen.files]


def _status_moves(card: Card, seen: Seen) -> list[Move]:
    match card.state:
        case CardState.RUNNING:
            verbs = _to_running(card, seen)
        case CardState.DONE:
            verbs = _to_done(card, seen)
        case CardState.BLOCKED:
            verbs = _to_blocked(seen)
    # Blocked twice for one kind, a card goes to triage and from there to a model: the kinds alternate.
    kind = "" if seen.block_kind == "needs_input" else "needs_input"
    return [Move(verb=v, text=kind if v is Verb.BLOCK else "") for v in verbs]


def _to_running(card: Card, seen: Seen) -> list[Verb]:
    if seen.status == CardState.RUNNING:
        return [] if seen.claim == card.claimer else [Verb.RECLAIM, Verb.CLAIM]
    if seen.status == "ready":
        return [Verb.CLAIM]
    return [Verb.UNBLOCK if seen.status == CardState.BLOCKED else Verb.RESET, Verb.CLAIM]


def _to_done(card: Card, seen: Seen) -> list[Verb]:
    if seen.status == CardState.DONE:
        return [] if seen.result == card.line else [Verb.RESULT]
    if seen.status in ("ready", CardState.RUNNING, CardState.BLOCKED):
        return [Verb.COMPLETE]
    return [Verb.RESET, Verb.COMPLETE]


def _to_blocked(seen: Seen) -> list[Verb]:
    if seen.status == CardState.BLOCKED:
        return []
    return [Verb.BLOCK] if seen.status in ("ready", CardState.RUNNING) else [Verb.RESET, Verb.BLOCK]


def _comments(card: Card, seen: Seen, was: str) -> tuple[str, ...]:
    moved = was == card.state == CardState.RUNNING and seen.status not in (CardState.RUNNING, "ready")
    if not moved:
        return card.comments
    return (*card.comments, f"moved to {seen.status} here, but the work goes on: the card is back in running")
