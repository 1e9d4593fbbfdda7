"""The interactive chat, typed into through a terminal of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from matrix_coder.testing import HermesHome, Rule, ScriptedModel

from .chatbench import Repl


@pytest.fixture
def repl(scripted_model: Callable[..., ScriptedModel], hermes_home: Callable[..., HermesHome]) -> Iterator[Repl]:
    model = scripted_model([Rule(match=".", steps=({"text": "the answer ends here"},))])
    chat = Repl(hermes_home(model))
    yield chat
    chat.process.terminate(force=True)


def test_chat_when_it_streams_then_the_tip_is_seen_and_can_be_taken_up(repl: Repl) -> None:
    """In the interactive chat, which shows answers as they come, the person sees the tip, and why, and can accept."""
    repl.wait_for("Welcome")
    repl.say("fix README typo")
    repl.wait_for("Efficient for Hermes to handle this directly")
    repl.wait_for("the answer ends here")
    repl.say("invoke Matrix Coder anyway")
    repl.wait_for("executor joins this turn")
    repl.wait_for("the answer ends here", times=2)
    repl.say("/matrix why")
    repl.wait_for("outcome D (matrix), route executor")
