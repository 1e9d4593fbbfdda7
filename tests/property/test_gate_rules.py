"""The seed's plain rules, over the words they are made of: no vote may overrule them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrix_coder.core.intent_gate import decide
from matrix_coder.core.names import Role

ROLE_WORDS = ("review", "verify", "debug", "test", "simplify", "explore", "plan", "refactor")
TERMS = (
    "database", "compiler", "endpoint", "API", "repo", "backend", "regex", "parser", "codebase", "middleware",
    "websocket", "linter", "dockerfile", "frontend", "mutex",
)  # fmt: skip
NAMES = ("pytest", "docker", "SQL", "postgres", "kubernetes", "webpack", "graphql", "redis", "typescript", "terraform")
TWO_SENSE = ("server", "class", "function", "script", "query", "module", "package", "handler", "method", "component")
DETERMINERS = ("the", "this", "our", "the new", "the current")
LEADS = ("", "please ", "can you ", "could you please ", "hermes, ", "ok, ")
ENDS = ("", ".", "!", " please")


@settings(max_examples=600, deadline=None)
@given(
    st.sampled_from(LEADS),
    st.sampled_from(ROLE_WORDS),
    st.sampled_from(DETERMINERS),
    st.sampled_from(TERMS),
    st.sampled_from(ENDS),
)
def test_decide_when_role_word_opens_and_term_follows_then_coding(
    lead: str, role: str, determiner: str, term: str, end: str
) -> None:
    """A role's word at the start and an unmistakable term are work on code, politely led or not, in that role."""
    decision = decide(f"{lead}{role} {determiner} {term}{end}")
    assert decision.coding
    assert decision.role == (Role.SIMPLIFY if role == "refactor" else role)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(LEADS), st.sampled_from(ROLE_WORDS), st.sampled_from(NAMES))
def test_decide_when_role_word_opens_and_technology_follows_then_coding(lead: str, role: str, name: str) -> None:
    """A technology's name needs no article."""
    assert decide(f"{lead}{role} {name}").coding


QUESTIONS = (
    "is {} slow", "is {} down?", "does {} time out", "does {} retry?", "why does {} hang", "why is {} so slow?",
    "where is {} configured", "where is {}", "how does {} work", "how is {} tested?", "why {}?", "can {} fail?",
)  # fmt: skip


@settings(max_examples=600, deadline=None)
@given(st.sampled_from(QUESTIONS), st.sampled_from(("the", "this", "our")), st.sampled_from(TERMS))
def test_decide_when_question_asks_about_a_term_at_hand_then_coding(question: str, determiner: str, term: str) -> None:
    """A question that starts with is, does, why, where or how, or ends in one mark, about the thing at hand."""
    assert decide(question.format(f"{determiner} {term}")).coding


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(("why does {} hang", "is {} slow", "does {} run", "how does {} work")), st.sampled_from(NAMES))
def test_decide_when_question_asks_what_a_technology_does_then_coding(question: str, name: str) -> None:
    """A question about a technology at work needs no article."""
    assert decide(question.format(name)).coding


ALONE = ("debug", "fix", "refactor", "review", "test", "simplify", "patch", "rewrite", "verify")


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(LEADS), st.sampled_from(ALONE), st.sampled_from(("the", "this", "our")), st.sampled_from(TWO_SENSE)
)
def test_decide_when_order_and_two_sense_word_stand_alone_then_coding(
    lead: str, order: str, determiner: str, word: str
) -> None:
    """With no neighbour that says otherwise, what an agent is told to debug, fix or refactor is code."""
    assert decide(f"{lead}{order} {determiner} {word}").coding


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(("I want to", "we need to", "I'd like to", "I need to")),
    st.sampled_from(("refactor", "migrate", "update", "replace", "split")),
    st.sampled_from(("the", "our", "this")),
    st.sampled_from(TERMS),
)
def test_decide_when_work_on_a_term_is_wished_then_coding(wish: str, verb: str, determiner: str, term: str) -> None:
    """A wish to work on something technical is a request."""
    assert decide(f"{wish} {verb} {determiner} {term}").coding


@pytest.mark.parametrize(
    "text",
    [
        "review my code",
        "review my PR",
        "debug my script",
        "fix my build",
        "explain my regex",
        "why is my docker image so big",
        "how do I write a regex",
        "what is in the repo?",
        "the compiler crashes",
        "the database is slow",
    ],
)
def test_decide_when_short_and_about_code_then_coding(text: str) -> None:
    """Short requests of daily work count, with `my` as with `the`."""
    assert decide(text).coding


@pytest.mark.parametrize(
    "text", ["fix the bug", "fix the crash", "debug the error", "fix this exception", "fix the timeout"]
)
def test_decide_when_order_names_a_fault_alone_then_coding(text: str) -> None:
    """A fault that the agent is told to fix is one in code."""
    assert decide(text).coding


@pytest.mark.parametrize(
    "text",
    [
        "don't debug the server",
        "I debugged the server yesterday",
        "she reviewed the database on Friday",
        "test the soup",
        "review the book",
        "fix the leak in the bathroom",
        "plan the trip",
        "plan the server's birthday party",
        "review the restaurant and its server",
        "is the library open on Sunday",
        "is the class full",
        "why is the service at this restaurant so slow",
        "is the table free tonight?",
        "where is the nearest library",
        "is python hard to learn",
        "is php dead",
        "why do people use docker",
        "where did docker come from",
        "the database is great",
        "my brother debugs the compiler for a living",
        "nobody likes the linter",
        "debug my relationship",
        "review my essay",
        "fix my sink",
        "test my knowledge",
        "I want to learn docker",
        "I'd like to order a pizza",
        "can you remember my codebase between chats?",
    ],
)
def test_decide_when_neighbours_tense_or_talk_say_otherwise_then_none(text: str) -> None:
    """Everyday neighbours, negation, past tense, opinions and other people's work are no requests."""
    assert not decide(text).coding
