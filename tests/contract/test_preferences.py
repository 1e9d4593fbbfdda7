"""What a person does not want inferred, through the real host."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from matrix_coder.testing import HermesHome, Rule, ScriptedModel

ASK = "why does the API endpoint crash on empty input?"
EXPLICIT = "matrix debug: the API endpoint crashes on empty input"


@pytest.fixture
def place(
    scripted_model: Callable[..., ScriptedModel], hermes_home: Callable[..., HermesHome]
) -> tuple[ScriptedModel, HermesHome]:
    model = scripted_model([Rule(match=".", steps=({"text": "ok"},))])
    return model, hermes_home(model)


def added(model: ScriptedModel, text: str) -> bool:
    """Whether the model's last request holds more than the text itself in its last user message."""
    last = next(str(m["content"]) for m in reversed(model.bodies[-1]["messages"]) if m["role"] == "user")
    assert last.startswith(text)
    return len(last) > len(text)


def test_off_when_said_in_a_session_then_holds_for_that_session_alone(
    place: tuple[ScriptedModel, HermesHome],
) -> None:
    """`/matrix off` stops inferring in its session alone, never an explicit trigger; `on` takes it back."""
    model, home = place
    seen = []
    session = home.converse(["hello"])[0]["session_id"]
    for turns in (["/matrix off", ASK], [EXPLICIT], ["/matrix on", ASK]):
        home.converse([{"text": turns[0], "resume": session}, *turns[1:]])
        seen.append(added(model, turns[-1]))
    home.converse([ASK])
    assert [*seen, added(model, ASK)] == [False, True, True, True]


def test_never_when_a_phrase_is_named_then_no_message_with_it_activates(
    place: tuple[ScriptedModel, HermesHome],
) -> None:
    """`never` is for good and for every session; `forget` takes it back."""
    model, home = place
    assert home.command("matrix-coder", "never", "API endpoint").rc == 0
    home.converse([ASK])
    assert not added(model, ASK)
    assert "api endpoint" in home.command("matrix-coder", "forget").out
    assert home.command("matrix-coder", "forget", "api endpoint").rc == 0
    home.converse([ASK])
    assert added(model, ASK)
    unknown = home.command("matrix-coder", "forget", "api endpoint")
    assert (unknown.rc, unknown.err.count("\n")) == (2, 1)


def test_kill_switches_when_set_then_only_explicit_triggers_work(place: tuple[ScriptedModel, HermesHome]) -> None:
    """The environment variable and the setting each end all inferring, and leave explicit triggers alone."""
    model, home = place
    home.extra["MATRIX_CODER_IMPLICIT_ROUTING"] = "0"
    home.converse([ASK])
    assert not added(model, ASK)
    home.converse([EXPLICIT])
    assert added(model, EXPLICIT)
    del home.extra["MATRIX_CODER_IMPLICIT_ROUTING"]
    home.configure({"plugins": {"entries": {"matrix_coder": {"settings": {"routing": {"implicit": False}}}}}})
    home.converse([ASK])
    assert not added(model, ASK)
