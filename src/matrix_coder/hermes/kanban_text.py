"""A card of the host's Kanban board as a value, and text that fits on it. Pure.

The lengths are those at which Hermes' dashboard and Switch UI cut: a title shows about 52 characters,
a card about 90 of its body, a comment about 65 a line. `claimed` is what a model said and `verified`
what the engine's own check said; a card never shows one as the other.
"""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
from dataclasses import dataclass, field
from enum import StrEnum

ASSIGNEE = "matrix-coder"
"""The lane of our cards. No profile has this name, so the host's dispatcher leaves the lane alone."""

AUTHOR = "matrix-coder"
CLAIM_PREFIX = "matrix_coder:"
RUN_CARD = 0
"""The step number under which a run's own card is kept; steps count from 1."""

PAGE = "/matrix"
"""Where the dashboard has our page; behind it, the address of a run."""

GOAL_IN_TITLE = 44
GOAL_OF_SPECIALIST = 36
LEAD = 90
LINE = 65
OUTPUT_LINES = 40
LONGEST_OUTPUT = 20_000
METADATA_CHARS = 299

Scalar = str | int | float | bool


class CardState(StrEnum):
    """Where a card of ours stands on the board: the host's own words for it."""

    RUNNING = "running"
    DONE = "done"
    BLOCKED = "blocked"


class CardEnd(StrEnum):
    """How a single specialist's turn ended."""

    DONE = "done"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A check's whole output, as a file to hang on a card."""

    filename: str
    path: str
    shown_chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One card as the board should show it. `line` is its result, its summary or why it is blocked."""

    key: str
    step: int
    title: str
    body: str
    state: CardState
    claimer: str
    line: str = ""
    metadata: dict[str, Scalar] = field(default_factory=dict)
    comments: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    tenant: str = ""
    priority: int = 0
    session_id: str = ""
    workspace: str = ""

    def digest(self) -> str:
        """A short fingerprint of everything that the card shows."""
        shown = (self.title, self.body, self.state, self.claimer, self.line, self.metadata, self.comments)
        return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()[:16]


def run_tag(run_id: str) -> str:
    """`r8` for the run of that id, or of number 8: what stands at the start of each of its cards."""
    return f"r{run_id}" if run_id.isdigit() else one_line(run_id, 12)


def card_key(run_id: str, step: int) -> str:
    """The idempotency key of one card of a run."""
    return f"matrix:{run_id}:{step}"


def one_line(text: str, limit: int) -> str:
    """The text without control characters and line breaks, cut at `limit` characters with an ellipsis.

    Hermes' page takes what is on a card for Markdown: no link of a model's or a file's making can be pressed there.
    """
    flat = " ".join(_printable(text).replace("](", "] (").split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def fenced(text: str, *, lines: int = OUTPUT_LINES) -> str:
    """The last lines of a text, folded to what a comment shows, in a fence that the text can't close.

    To Hermes' page three marks end every fence, however long it is, so the text holds none in a row.
    """
    plain = re.sub("`{3,}", lambda marks: " ".join(marks[0]), _printable(text[-LONGEST_OUTPUT:]))
    folded: list[str] = []
    for raw in plain.strip("\n").split("\n"):
        # What fills a terminal's width, such as the blanks before pytest's `[100%]`, needs no line of its own.
        shown = re.sub(r"(?<=\S) {3,}(?=\S)", "  ", raw) if len(raw) > LINE else raw
        folded += textwrap.wrap(shown, LINE, drop_whitespace=False, replace_whitespace=False) or [""]
    kept = folded[-lines:]
    if len(folded) > lines:
        kept.insert(0, f"… {len(folded) - lines} more lines above")
    fence = "```"
    return "\n".join((fence, *kept, fence))


def _printable(text: str) -> str:
    """Without terminal colours and control characters; tabs become spaces."""
    plain = re.sub(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)", "", text)
    plain = plain.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)
    return "".join(c if c == "\n" or (c.isprintable() and not 0xD800 <= ord(c) <= 0xDFFF) else " " for c in plain)


def body_text(lead: str, *, goal: str, session: str, rows: tuple[str, ...] = (), run_id: str = "") -> str:
    """What a card says below its title: the sentence that the board shows, then a list, the run's page last."""
    lines = [one_line(lead, LEAD), f"- Goal: {one_line(goal, 300)}"]
    if session:
        lines.append(f"- Chat: {one_line(session, 80)}")
    lines += [f"- {row}" for row in rows]
    if run_id:
        lines.append(f"- Page: {PAGE}#/runs/{run_tag(run_id)}")
    return "\n".join(lines)


def fit_metadata(facts: dict[str, Scalar]) -> dict[str, Scalar]:
    """The facts that fit under what Hermes' page shows opened, first ones first."""
    kept: dict[str, Scalar] = {}
    for key, value in facts.items():
        if len(json.dumps(kept | {key: value}, ensure_ascii=False)) <= METADATA_CHARS:
            kept[key] = value
    return kept
