"""The card of a single specialist's turn, kept by the real host's hooks on its real board."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from matrix_coder.testing import HermesHome, Rule, ScriptedModel

HEADER = "matrix debug: why does the import stall"
INFERRED = "why does the API endpoint crash on empty input?"


def _settings(mirror: str) -> dict[str, object]:
    return {"plugins": {"entries": {"matrix_coder": {"settings": {"kanban": {"mirror": mirror}}}}}}


@pytest.mark.parametrize(
    ("mirror", "message", "shown"),
    [
        ("all", HEADER, True),
        ("all", INFERRED, True),
        ("explicit", HEADER, True),
        ("explicit", INFERRED, False),
        ("workflows", HEADER, False),
        ("workflows", INFERRED, False),
        ("off", HEADER, False),
        ("off", INFERRED, False),
    ],
)
def test_specialist_when_its_turn_ends_then_its_card_says_so_where_one_is_wanted(
    scripted_model: Callable[..., ScriptedModel],
    hermes_home: Callable[..., HermesHome],
    mirror: str,
    message: str,
    shown: bool,
) -> None:
    """One card for each turn that the setting names, closed as done when the one-shot process leaves."""
    home = hermes_home(scripted_model([Rule(match=".", steps=({"text": "found it"},))]), config=_settings(mirror))
    done = home.run("-z", message)
    assert done.rc == 0, done.err
    cards = home.hermes("kanban", "list").out
    assert ("done      matrix-coder" in cards) is shown, cards
    assert ("debug" in cards) is shown
