"""What a chat sees of its runs: the end and the questions by themselves, once, and answers that reach the run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from matrix_coder.core.models import RunOutcome
from matrix_coder.testing import Rule

from .chatbench import Gateway, Messenger, Repl
from .runbench import MEND, Bench, RunBench, rules, says

QUESTION = "Which of the two sums is the right one?"
BLOCKED = says("BLOCKED", open_questions=[QUESTION])
START = 'matrix ralph check="pytest -q" in={repo}: make the tests pass'
HANDS_ON = {"tool": "matrix_runs", "args": {"action": "answer"}}


def answers(place: RunBench, number: int = 1) -> list[str]:
    """What was handed to a run as its answers."""
    return [row["text"] for row in place.client.store.controls(number, "answer")]


def last_users(place: RunBench) -> list[str]:
    """The last user text of each request that a model got."""
    return [
        next((str(m["content"]) for m in reversed(b.get("messages", [])) if m.get("role") == "user"), "")
        for b in place.model.bodies
    ]


def test_repl_when_a_run_asks_then_the_next_message_answers_and_each_line_comes_once(bench: Bench) -> None:
    """Start, question and result reach the interactive chat by themselves, once; the next message is the answer,
    to the letter; the chat still ends at once."""
    said = 'the first one, "plus" - don\'t ask again'
    place = bench(
        [
            *rules([BLOCKED, says("PASS", MEND)], [says("PASS")]),
            Rule(match="matrix ralph", steps=({"text": "it has started"},)),
            Rule(match="the first one", steps=(HANDS_ON, HANDS_ON, {"text": "handed on"})),
            Rule(match="how did it go", steps=({"text": "well"},)),
        ]
    )
    chat = Repl(place.home, cwd=place.repo)
    try:
        chat.wait_for("Welcome")
        chat.say(START.format(repo=place.repo))
        chat.wait_for("[matrix] r1 ralph started in")
        chat.wait_for(f"Question: {QUESTION}")
        chat.say(said)
        chat.wait_for("handed on")
        chat.wait_for("verified after 1 of 5 iterations")
        chat.say("how did it go")
        chat.wait_for("well")
        assert chat.leave() == 0
    finally:
        chat.process.terminate(force=True)
    assert answers(place) == [said]
    assert chat.screen.count("Question: ") == 1
    assert chat.screen.count("verified after") == 1
    told = [t for t in last_users(place) if "run r1 has ended as verified" in t]
    assert len(told) == 1
    assert "has been shown this in the chat already" in told[0]
    assert sum("is blocked until the person answers" in t for t in last_users(place)) == 3


@pytest.fixture
def messenger() -> Iterator[Messenger]:
    server = Messenger()
    yield server
    server.close()


def test_gateway_when_a_run_asks_and_the_gateway_restarts_then_the_chat_is_told_once(
    bench: Bench, messenger: Messenger
) -> None:
    """A gateway chat gets question and result as messages, answers with its next one, and loses nothing to a restart
    of the gateway; an API session polls, and gets the result with its next turn."""
    place = bench(
        [
            *rules([BLOCKED, BLOCKED, says("PASS", MEND)], [says("PASS")]),
            Rule(match="matrix ralph", steps=({"text": "it has started"},)),
            Rule(match="the first one", steps=(HANDS_ON, {"text": "handed on"})),
            Rule(match="/matrix show", steps=({"text": "shown"},)),
            Rule(match="how did it go", steps=({"text": "well"},)),
        ]
    )
    start = START.format(repo=place.repo)
    gateway = Gateway(place.home, messenger, place.repo)
    try:
        messenger.say(start)
        messenger.wait_for("it has started")
        asked = messenger.wait_for(f"Question: {QUESTION}")
        messenger.say("/matrix show")
        messenger.wait_for("question: " + QUESTION)
        messenger.say("the first one, please")
        messenger.wait_for("handed on")
        messenger.wait_for(f"Question: {QUESTION}", times=2)
    finally:
        gateway.stop()
    assert answers(place) == ["the first one, please"]
    assert len(asked.splitlines()) <= 6
    assert not set("`*|") & set(asked)
    assert place.home.command("matrix-coder", "answer", "r1", "the second").rc == 0
    assert place.finish("r1").outcome is RunOutcome.VERIFIED
    gateway.start()
    try:
        messenger.wait_for("verified after")
        assert "it has started" in gateway.ask(start, "api-one")
        assert place.finish("r2").outcome is RunOutcome.UNVERIFIED
        gateway.ask("/matrix show", "api-one")
        gateway.ask("how did it go", "api-one")
        gateway.ask("how did it go, again", "api-one")
    finally:
        gateway.stop()
    assert (messenger.count("Question: "), messenger.count("verified after")) == (2, 1)
    seen = last_users(place)
    assert any("nothing can be sent to an API session" in t for t in seen if t.startswith("matrix ralph"))
    assert any("r2 ralph: unverified" in t for t in seen if t.startswith("/matrix show"))
    assert sum("run r2 has ended as unverified" in t for t in seen) == 1
    assert "r2" not in "".join(messenger.sent)
