"""The mark around text that the plugin adds to a turn, and the way to take exactly that out again.

    <matrix-coder turn="9f3a…" after="42" size="5120" seal="…" place="…">
    …body…
    </matrix-coder …seal…>

`seal` proves with a key of this installation that the body was written here. `place` ties it to the
user text that it was added to, so that a genuine block pasted into another message is just text there.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass

OPENING = "<matrix-coder "
GAP = "\n\n"  # what the host puts between a message and the text added to it
_HEAD = re.compile(
    r'<matrix-coder turn="([0-9a-f]{12})" after="(\d{1,9})" size="(\d{1,6})"'
    r' seal="([0-9a-f]{32})" place="([0-9a-f]{32})">\n'
)
MOST_CANDIDATES = 64  # well-formed heads looked at in one text; a message holds one genuine block


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A body in its mark, for one message of one turn. `head` occurs in no other text."""

    turn: str
    head: str
    text: str


def turn_tag(turn_id: str) -> str:
    """The short name of a turn inside its mark: 12 hexadecimal digits."""
    return hashlib.sha256(turn_id.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def wrapped(body: str, *, key: bytes, turn: str, user_text: str) -> Block:
    """The body in a mark that only the holder of the key can make, tied to the turn and the user text.

    A mark inside the body is spelled differently: a block never holds another one.
    """
    body = body.replace(OPENING, "<matrix_coder ")
    seal, place = _seal(key, turn, body), _place(key, turn, user_text)
    numbers = f'turn="{turn}" after="{len(user_text)}" size="{len(body)}"'
    head = f'{OPENING}{numbers} seal="{seal}" place="{place}">\n'
    return Block(turn=turn, head=head, text=f"{head}{body}\n</matrix-coder {seal}>")


def without_blocks(text: str, *, key: bytes, clean: str = "", keep: str = "") -> str:
    """The text without the genuine blocks in it, each with the gap before it; all else byte-identical.

    `clean` is the user text that the message began as, where it is known: nothing inside it is touched,
    and what follows it needs no tie to a place. A block that starts with `keep` stays.
    """
    known = bool(clean) and text.startswith(clean)
    start = len(clean) if known else 0
    for begin, end in _genuine(text, key, start, tied=not known):
        if not keep or not text.startswith(keep, begin):
            cut = begin - len(GAP) if text[max(start, begin - len(GAP)) : begin] == GAP else begin
            text = text[:cut] + text[end:]
    return text


def _genuine(text: str, key: bytes, start: int, *, tied: bool) -> Iterator[tuple[int, int]]:
    """Where genuine blocks stand, last first, so that cutting one leaves the others where they are."""
    looked_at, end = 0, len(text)
    while looked_at < MOST_CANDIDATES and (begin := text.rfind(OPENING, start, end)) >= 0:
        end = begin
        head = _HEAD.match(text, begin)
        if head is None:
            continue
        looked_at += 1
        close = _close_of(text, key, head, tied=tied)
        if close is not None:
            yield begin, close


def _close_of(text: str, key: bytes, head: re.Match[str], *, tied: bool) -> int | None:
    """Where a genuine block ends; None for one that was not written here, or not for this place."""
    turn, after, size, seal, place = head.groups()
    body_end = head.end() + int(size)
    closing = f"\n</matrix-coder {seal}>"
    if not text.startswith(closing, body_end):
        return None
    if not hmac.compare_digest(seal, _seal(key, turn, text[head.end() : body_end])):
        return None
    if tied and not _in_place(text, key, head.start(), turn, int(after), place):
        return None
    return body_end + len(closing)


def _in_place(text: str, key: bytes, begin: int, turn: str, after: int, place: str) -> bool:
    """Whether the message starts with the block's user text, or has it right before the block."""
    if after > begin:
        return False
    edge = begin - len(GAP)
    nearby = (text[:after], text[max(0, edge - after) : max(0, edge)])
    return any(hmac.compare_digest(place, _place(key, turn, user_text)) for user_text in nearby)


def _seal(key: bytes, turn: str, body: str) -> str:
    return _digest(key, f"seal {turn} {body}")


def _place(key: bytes, turn: str, user_text: str) -> str:
    return _digest(key, f"place {turn} {user_text}")


def _digest(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]
