"""The board under load: cards written while a dashboard streams it to many readers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from boardload import BoardLoad

CARDS, STREAMS = 150, 20


@pytest.fixture
def load(tmp_path: Path) -> Iterator[BoardLoad]:
    """A dashboard with a page and twenty streams open."""
    made = BoardLoad(tmp_path, streams=STREAMS)
    yield made
    made.close()


def test_cards_when_a_page_and_twenty_streams_are_open_then_none_is_lost_or_incomplete(load: BoardLoad) -> None:
    """Each card comes once, whole, and every stream sees it come and end (`make bench-board` writes a thousand)."""
    numbers = load.write(CARDS)
    assert load.assert_nothing_lost(numbers) > CARDS
    assert load.looks > 0
