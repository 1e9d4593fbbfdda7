"""Promises of the gate that hold for any text."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from matrix_coder.core.decision import Route
from matrix_coder.core.gate_view import bounded, view
from matrix_coder.core.intent_gate import answers_tip, decide, explain, parse_trigger
from matrix_coder.core.names import Domain, Lens, Role, Workflow

PIECES = st.sampled_from(
    [
        "matrix", "review", "ralph", ":", "@frontend", "@x", " ", "\n", "```", '"', "'", "`", "fix", "the",
        "src/app.py", "cap=3", 'check="', "hermes,", "handle it directly", "代码", "код", "é", "🙂", "İ",
        "\u200b", "\x00", "-", "/", "..", "Traceback (most recent call last):", "+ a", "| a |", "> a", "\t",
    ]
)  # fmt: skip
TEXTS = st.one_of(
    st.text(max_size=300), st.lists(PIECES, max_size=40).map("".join), st.lists(PIECES, max_size=40).map(" ".join)
)


@st.composite
def routes(draw: st.DrawFn) -> Route:
    """Any route."""
    role = draw(st.sampled_from(Role))
    lens = draw(st.sampled_from([None, *Lens])) if role is Role.REVIEW else None
    return Route(role=role, lens=lens, domain=draw(st.sampled_from([None, *Domain])))


@settings(max_examples=400, deadline=None)
@given(TEXTS)
def test_decide_when_any_text_then_a_consistent_decision(text: str) -> None:
    """No text raises, and role, verdict and lens of a decision never contradict each other."""
    decision = decide(text)
    assert decision.coding is (decision.role is not None)
    assert decision.lens is None or decision.role == "review"
    assert decision.goal in text.strip()
    json.dumps(decision.as_dict())
    answers_tip(text)


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_explain_when_any_text_then_same_outcome_and_spans_inside(text: str) -> None:
    """An explanation agrees with the decision, and its spans lie inside the message."""
    told = explain(text)
    assert told["outcome"] == decide(text).outcome
    signals = told["signals"]
    assert isinstance(signals, list)
    for signal in signals:
        start, end = signal["span"]
        assert 0 <= start <= end <= len(text)


@settings(deadline=None)
@given(routes(), st.text(max_size=200))
def test_parse_when_formatted_then_route_and_goal_come_back(route: Route, goal: str) -> None:
    """A header written from a route parses back, with the goal byte for byte."""
    decision = parse_trigger(f"matrix {route.name}: {goal}")
    assert decision is not None
    assert decision.route == route.name
    assert decision.goal == goal.strip()


@settings(deadline=None)
@given(st.sampled_from(Workflow), st.text(min_size=1, max_size=200).filter(str.strip))
def test_workflow_when_colon_then_always_starts(workflow: Workflow, goal: str) -> None:
    """A colon right after a workflow header always starts it, with the goal as it stands."""
    decision = decide(f"matrix {workflow}: {goal}")
    assert (decision.role, decision.asks, decision.goal) == (workflow, False, goal.strip())


@settings(deadline=None)
@given(TEXTS)
def test_view_when_any_text_then_bounded(text: str) -> None:
    """What decides is bounded, however long the message is."""
    seen = view(bounded((text + " x") * 60))
    assert len(seen.ask) <= 1_100
    assert len(seen.paste) <= 700
