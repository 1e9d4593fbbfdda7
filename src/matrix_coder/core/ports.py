"""What the intake needs from outside: each a small Protocol that the host's adapters fill in."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from .decision import Decision


class WorkflowPort(Protocol):
    """Starts runs from a chat, and knows the runs of a session."""

    def start_from_chat(
        self, decision: Decision, *, session_id: str, platform: str, kwargs: Mapping[str, object]
    ) -> str:
        """The text that tells the model which run has started and how. Raises MatrixError if none has."""

    def session_note(self, session_id: str) -> str | None:
        """What the turn should know of the session's runs: open questions, live runs, each result once.

        None, at the cost of a stat, for nothing.
        """

    def said(self, message: str, session_id: str) -> str | None:
        """What a message that speaks to a run itself (`answer: ...`, `matrix steer: ...`) came to; None for any other.

        Raises MatrixError where it can't be handed on.
        """


class CommandPort(Protocol):
    """Answers `/matrix ...` where a surface hands it over as plain text."""

    def run(self, text: str, session_id: str) -> str:
        """The output of the command line, `text` with its `/matrix`."""


class PreferencePort(Protocol):
    """Knows what a person does not want inferred."""

    def allows(self, message: str, session_id: str) -> bool:
        """Whether something may be inferred from this message. Asked only before something would be added."""


class CardEnd(StrEnum):
    """How a specialist's turn ended."""

    DONE = "done"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class CardPort(Protocol):
    """Keeps a card for a single specialist's turn."""

    def opened(self, decision: Decision, *, session_id: str, turn_id: str) -> str | None:
        """The card's id; None when no card is kept."""

    def closed(self, card: str, end: CardEnd) -> None:
        """The turn of this card is over."""
