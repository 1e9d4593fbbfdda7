"""What the plugin composes is what the model gets: whole, for every specialist, through the real host."""

from __future__ import annotations

from collections.abc import Callable

from matrix_coder.core.names import Domain, Lens, Role
from matrix_coder.testing import HermesHome, Rule, ScriptedModel

from .leaks import BLOCK, blocks, persona, user_texts

SESSION_LENGTH = 12


def routes() -> list[str]:
    """Every role, a review with every lens and without, on every domain and on none."""
    heads = [role.value for role in Role] + [f"{Role.REVIEW}:{lens}" for lens in Lens]
    return [head + at for head in heads for at in ("", *(f"@{domain}" for domain in Domain))]


def test_request_when_a_specialist_is_called_then_it_holds_the_whole_composition(
    scripted_model: Callable[..., ScriptedModel], hermes_home: Callable[..., HermesHome]
) -> None:
    """For every role, lens and domain, the request of the real host holds the composed text whole, once."""
    model = scripted_model(default="understood")
    known = routes()
    said = [f"matrix {route}: look at item {n}" for n, route in enumerate(known)]
    turns = [{"text": text, "session": str(n // SESSION_LENGTH)} for n, text in enumerate(said)]
    hermes_home(model).converse(turns)
    assert len(model.bodies) == len(known) == 84
    for text, route, body in zip(said, known, model.bodies, strict=True):
        last = user_texts(body)[-1]
        assert persona(route) in blocks(body)[-1], route
        assert len(blocks(body)) == 1, route
        assert BLOCK.sub("", last) == text
        assert len(last) - len(text) < 10_000, route


def test_request_when_the_operator_allows_little_text_then_the_composition_is_still_whole(
    scripted_model: Callable[..., ScriptedModel], hermes_home: Callable[..., HermesHome]
) -> None:
    """A limit below the size of a composition makes no stub of it, at the iteration limit neither."""
    read = {"tool": "read_file", "args": {"path": "notes.txt"}}
    model = scripted_model([Rule(match="matrix", steps=(read, read, {"text": "this far"}))], default="yes")
    home = hermes_home(model, config={"hooks": {"output_spill": {"max_chars": 2_000}}})
    home.converse([{"text": "matrix debug: parse() fails", "max_iterations": 2}, "thank you", "good night"])
    turn = [body for body in model.bodies if "matrix debug" in user_texts(body)[-1] or "tools" not in body]
    assert len(turn) >= 3
    for body in turn:
        assert [persona("debug") in block for block in blocks(body)] == [True]
    assert not blocks(model.bodies[-1])
    assert user_texts(model.bodies[-1])[0] == "matrix debug: parse() fails"
