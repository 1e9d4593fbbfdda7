"""A block can be told from any text that a message may hold, and leaves nothing behind."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix_coder.core.marks import GAP, OPENING, turn_tag, without_blocks, wrapped

KEY, OTHER = b"k" * 32, b"o" * 32
TURN = turn_tag("session:task:1")
texts = st.text(max_size=200)


def sent(user_text: str, body: str = "persona", key: bytes = KEY) -> str:
    """What the host stores and sends for a message that got a block."""
    return user_text + GAP + wrapped(body, key=key, turn=TURN, user_text=user_text).text


@given(user_text=texts, body=texts, before=texts, after=texts)
def test_block_when_taken_out_then_all_other_text_is_byte_identical(
    user_text: str, body: str, before: str, after: str
) -> None:
    """Exactly what was added goes, whatever the user wrote and whatever else was added around it."""
    block = wrapped(body, key=KEY, turn=TURN, user_text=user_text).text
    message = f"{user_text}{GAP}{before}{GAP}{block}{after}"
    assert without_blocks(message, key=KEY) == f"{user_text}{GAP}{before}{after}"
    assert without_blocks(message, key=KEY, clean=user_text) == f"{user_text}{GAP}{before}{after}"


@given(user_text=texts, body=texts)
def test_block_when_made_with_another_key_then_it_is_only_text(user_text: str, body: str) -> None:
    """A mark that was not made with this installation's key is left alone."""
    message = sent(user_text, body, OTHER)
    assert without_blocks(message, key=KEY) == message


@pytest.mark.parametrize("change", [("persona", "Persona"), ('size="7"', 'size="6"'), (TURN, "0" * 12)])
def test_block_when_changed_by_one_thing_then_it_is_only_text(change: tuple[str, str]) -> None:
    """A body, a size or a turn that doesn't fit the seal makes no block."""
    message = sent("hello").replace(*change)
    assert without_blocks(message, key=KEY) == message


def test_block_when_pasted_into_another_message_then_it_stays() -> None:
    """A genuine block copied out of a log and quoted by a person is that person's text."""
    pasted = "look at this: " + sent("hello").removeprefix("hello")
    assert without_blocks(pasted, key=KEY) == pasted
    assert without_blocks(sent(pasted), key=KEY, clean=pasted) == pasted


def test_block_when_the_whole_sent_message_is_pasted_then_the_known_user_text_protects_it() -> None:
    """Where the user's own text is known, nothing inside it is touched."""
    pasted = sent("hello")
    assert without_blocks(sent(pasted, "second"), key=KEY, clean=pasted) == pasted


def test_block_when_messages_were_joined_then_it_is_still_found() -> None:
    """The host may put an unanswered message before the one that got the block."""
    assert without_blocks("earlier" + GAP + sent("hello"), key=KEY) == "earlier" + GAP + "hello"


def test_block_when_it_is_the_one_to_keep_then_it_stays() -> None:
    """The block of the turn under way is told by its head."""
    block = wrapped("persona", key=KEY, turn=TURN, user_text="hello")
    message = "hello" + GAP + block.text
    assert without_blocks(message, key=KEY, keep=block.head) == message


def test_body_when_it_holds_a_mark_then_the_block_still_comes_out_whole() -> None:
    """A block never holds another one, so that cutting one can't break another."""
    block = wrapped(sent("inner"), key=KEY, turn=TURN, user_text="hello")
    assert block.text.count(OPENING) == 1
    assert without_blocks("hello" + GAP + block.text, key=KEY) == "hello"


def test_text_when_it_is_a_megabyte_of_openings_then_it_is_left_alone() -> None:
    """Looking for blocks takes a time that grows with the text, not with its square."""
    flood = (sent("x").replace("persona", "other") + OPENING * 20) * 2_000
    assert without_blocks(flood, key=KEY) == flood
