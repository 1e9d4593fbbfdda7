"""The explicit grammar: roles, lenses, domains, workflows, options, and `matrix` as a plain noun."""

from __future__ import annotations

import pytest

from matrix_coder.core.decision import Route
from matrix_coder.core.gate_header import is_workflow_talk
from matrix_coder.core.intent_gate import decide, parse_trigger
from matrix_coder.core.names import Domain, Lens, Role


@pytest.mark.parametrize(
    ("text", "route", "goal"),
    [
        ("matrix debug: a: b", "debug", "a: b"),
        ("matrix review:security: check it", "review:security", "check it"),
        ("matrix review:check login.py", "review", "check login.py"),
        ("matrix debug:foo bar", "debug", "foo bar"),
        ("matrix plan@mobile split it", "plan", "@mobile split it"),
        ("matrix review @frontend security: x", "review@frontend", "security: x"),
        ("matrix: debug it", "review", "debug it"),
        ("matrix@frontend tidy", "review@frontend", "tidy"),
        ("matrix test@data-db", "test@data-db", ""),
        ("matrix reviewer do it", "review", "reviewer do it"),
        ("matrix review securityish x", "review", "securityish x"),
        ("matrix\nverify\nthe thing", "verify", "the thing"),
    ],
)
def test_parse_trigger_when_header_then_route_and_goal(text: str, route: str, goal: str) -> None:
    """A header gives its route, and everything after it is the goal, unchanged."""
    decision = parse_trigger(text)
    assert decision is not None
    assert (decision.route, decision.goal) == (route, goal)


@pytest.mark.parametrize(
    "text",
    [
        "Matrix multiplication is slow in numpy",
        "matrix determinant of [[1,2],[3,4]]",
        "Matrix homeserver is down",
        "Matrix is my favourite film, recommend something similar",
        "matrixing? is that a word",
        "matrix, please",
        "the matrix review: x",
        '"matrix review: x"',
        "```\nmatrix review: x\n```",
        "please matrix review: x",
    ],
)
def test_parse_trigger_when_plain_noun_then_none(text: str) -> None:
    """`matrix` as a noun, or inside a sentence, a quote or a code block, is an ordinary word."""
    assert parse_trigger(text) is None


def test_parse_trigger_when_goal_is_indented_then_bytes_are_kept() -> None:
    """Line breaks, indentation and case of the goal survive."""
    decision = parse_trigger("matrix executor: Do\n    this\tÄ  b\n\n  Then THAT")
    assert decision is not None
    assert decision.goal == "Do\n    this\tÄ  b\n\n  Then THAT"


def test_parse_trigger_when_options_then_typed_values() -> None:
    """Workflow options come back typed: numbers, seconds, commands, a path, a flag."""
    decision = parse_trigger(
        'matrix ralph@infra-cli cap=3 check="pytest -q" '
        "check='ruff check' budget=1h30m tokens=200k in=../repo isolate=yes: go"
    )
    assert decision is not None
    assert decision.options == {
        "cap": 3,
        "check": ("pytest -q", "ruff check"),
        "budget": 5400,
        "tokens": 200_000,
        "in": "../repo",
        "isolate": True,
    }
    assert (decision.goal, decision.domain, decision.asks) == ("go", "infra-cli", False)


def test_parse_trigger_when_option_has_glued_colon_then_header_ends() -> None:
    """A colon glued to the last option ends the header."""
    decision = parse_trigger("matrix ultraqa cap=2: cap=9 stays goal")
    assert decision is not None
    assert (decision.options, decision.goal) == ({"cap": 2}, "cap=9 stays goal")


@pytest.mark.parametrize(
    "option",
    [
        "cap=0", "cap=-1", "cap=many", "cap=101", "cap=", "budget=30", "budget=0s", "budget=9999h", "tokens=0",
        "tokens=lots", "isolate=maybe", 'check=""', 'check="never closed', "retries=3", "cap=1 cap=2", "in=",
    ],
)  # fmt: skip
def test_parse_trigger_when_option_impossible_then_asks_and_names_what_is_accepted(option: str) -> None:
    """An unknown key or an impossible value starts nothing and is answered with what is accepted."""
    decision = parse_trigger(f"matrix ralph {option} fix the tests")
    assert decision is not None
    assert decision.asks
    assert decision.workflow
    assert "cap=3" in decision.answer


def test_parse_trigger_when_role_then_options_are_goal() -> None:
    """Only workflows take options."""
    decision = parse_trigger("matrix executor cap=3 fix it")
    assert decision is not None
    assert (decision.goal, dict(decision.options)) == ("cap=3 fix it", {})


@pytest.mark.parametrize(
    "goal",
    [
        "keeps looping, why?",
        "is a strange name",
        "has a bug",
        "deleted my branch yesterday",
        "and ultrawork, what's the difference?",
        "what is it?",
        "step 0a wiring is advisory",
        "Lauren wants us to add their logo",
        "docs are out of date",
        "don't start yet",
        "?",
        ", stop",
        "mode",
        "vs autopilot",
        "safety data",
        "loops never end on my machine",
        "here, just fix the typo",
    ],
)
def test_workflow_when_talk_without_colon_then_asks(goal: str) -> None:
    """Talk about a workflow starts nothing; the answer names the one line that would."""
    decision = decide(f"matrix ralph {goal}")
    assert decision.outcome == "A"
    assert decision.asks
    assert "matrix ralph:" in decision.answer
    started = decide(f"matrix ralph: {goal}")
    assert not started.asks


@pytest.mark.parametrize(
    "goal",
    [
        "fix auth tests",
        "on the parser module until pytest is green",
        "to implement the settings page",
        "for the new onboarding flow",
        "please fix the login crash",
        "can you make the deploy idempotent?",
        "a CSV export endpoint with tests",
        "the five failing packages",
        "security: rotate the keys",
        "src/parser.py without the globals",
        "all components to TypeScript",
    ],
)
def test_workflow_when_goal_without_colon_then_starts(goal: str) -> None:
    """A goal that reads as one starts without a colon."""
    assert not is_workflow_talk(goal)
    assert not decide(f"matrix autopilot {goal}").asks


def test_workflow_when_no_goal_then_asks() -> None:
    """A workflow without a goal has nothing to run."""
    assert decide("matrix ultrawork").asks
    assert decide("matrix ultrawork:").asks


def test_route_when_lens_on_other_role_then_refused() -> None:
    """A lens exists only on a review."""
    with pytest.raises(ValueError, match="lens on review alone"):
        Route(role=Role.DEBUG, lens=Lens.API)


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("domain", [None, *Domain])
def test_route_name_when_parsed_as_header_then_same_route(role: Role, domain: Domain | None) -> None:
    """A route's name is a compact header that parses back."""
    for lens in (None, *Lens) if role is Role.REVIEW else (None,):
        route = Route(role=role, lens=lens, domain=domain)
        decision = parse_trigger(f"matrix {route.name} do it")
        assert decision is not None
        assert (decision.route, decision.goal) == (route.name, "do it")
        assert Route.parse(route.name) == route
