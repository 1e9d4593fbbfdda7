"""What is known about turns that are under way, and for how long: bounded, in memory, safe for threads."""

from __future__ import annotations

import threading
from collections.abc import MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from .decision import Decision
from .marks import Block

V = TypeVar("V")
Message = MutableMapping[str, object]
MOST_TURNS = 1_024
MOST_SESSIONS = 1_024


@dataclass(slots=True, kw_only=True)
class Turn:
    """One turn of a session while it runs.

    `block` is what it injects; `carriers` are the host's own messages that may carry it; `pasted` are user
    texts of the conversation that hold something like a mark. `person` says that a person's message began it;
    `handed` holds what of that message went to runs.
    """

    session_id: str
    turn_id: str
    user_text: str = ""
    block: Block | None = None
    decision: Decision | None = None
    tip: bool = False
    carriers: Sequence[Message] = ()
    pasted: tuple[str, ...] = ()
    card: str | None = None
    failed: bool = False
    person: bool = False
    handed: set[tuple[str, str]] = field(default_factory=set)


@dataclass(slots=True)
class Bounded(Generic[V]):
    """A map that forgets its oldest entry when a new key would make it too big. Reads change nothing."""

    most: int
    _entries: dict[str, V] = field(default_factory=dict)

    def get(self, key: str) -> V | None:
        return self._entries.get(key)

    def put(self, key: str, value: V) -> list[V]:
        """Stores the value as the newest; returns what had to be forgotten for it."""
        self._entries.pop(key, None)
        self._entries[key] = value
        forgotten = []
        while len(self._entries) > self.most:
            forgotten.append(self._entries.pop(next(iter(self._entries))))
        return forgotten

    def pop(self, key: str) -> V | None:
        return self._entries.pop(key, None)

    def __len__(self) -> int:
        return len(self._entries)


class Turns:
    """The turns under way, by turn and by session; a session has one at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_turn: Bounded[Turn] = Bounded(MOST_TURNS)
        self._current: Bounded[str] = Bounded(MOST_SESSIONS)

    def begin(self, turn: Turn) -> list[Turn]:
        """Makes this the session's turn; returns the turns that it ends: the session's last, and evicted ones."""
        with self._lock:
            earlier = self._current.get(turn.session_id)
            ended = [self._by_turn.pop(earlier)] if earlier is not None else []
            self._current.put(turn.session_id, turn.turn_id)
            ended += self._by_turn.put(turn.turn_id, turn)
            return [t for t in ended if t is not None]

    def of(self, turn_id: str) -> Turn | None:
        """The turn with this id, while it runs."""
        with self._lock:
            return self._by_turn.get(turn_id)

    def current(self, session_id: str) -> Turn | None:
        """The session's turn, while it runs."""
        with self._lock:
            turn_id = self._current.get(session_id)
            return self._by_turn.get(turn_id) if turn_id is not None else None

    def moved(self, turn: Turn, session_id: str) -> None:
        """The host went on with the same turn under another session id, as it does when it compresses."""
        with self._lock:
            self._current.pop(turn.session_id)
            turn.session_id = session_id
            self._current.put(session_id, turn.turn_id)

    def end(self, turn_id: str) -> Turn | None:
        """Forgets the turn; returns it if it was still known."""
        with self._lock:
            turn = self._by_turn.pop(turn_id)
            if turn is not None and self._current.get(turn.session_id) == turn_id:
                self._current.pop(turn.session_id)
            return turn

    def __len__(self) -> int:
        return len(self._by_turn)
