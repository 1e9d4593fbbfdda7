"""What cards say, and which moves bring a board to say it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix_coder.core.models import (
    Evidence,
    Finding,
    RunOutcome,
    RunStatus,
    RunView,
    Severity,
    StepReport,
    StepStatus,
    StepVerdict,
    StepView,
    Usage,
)
from matrix_coder.hermes.kanban_cards import specialist_card, specialist_title, step_card
from matrix_coder.hermes.kanban_plan import Seen, Verb, fresh, moves
from matrix_coder.hermes.kanban_run_card import run_card
from matrix_coder.hermes.kanban_text import CardEnd, CardState, fenced, one_line

TITLE = 64
HOSTILE = "``` \x1b[31mred\x1b[0m\x00 <script>alert(1)</script> \u202e ```` [x](javascript:1)\r\n# top\tend \ud800"


def evidence(passed: int, of: int = 15, **fields: Any) -> Evidence:
    cases = {f"t.py::test_{n}": "passed" if n < passed else "failed" for n in range(of)}
    base: dict[str, Any] = {"name": "pytest", "command": "pytest -q", "duration_s": 1.0, "tree": "t"}
    return Evidence(**(base | {"exit_code": int(passed < of), "cases": cases} | fields))


def step(status: StepStatus = StepStatus.DONE, **fields: Any) -> StepView:
    return StepView(**({"number": 2, "iteration": 1, "role": "verify", "status": status} | fields))


def run(*steps: StepView, **fields: Any) -> RunView:
    base: dict[str, Any] = {"run_id": "8", "workflow": "ralph", "goal": "make the tests pass", "workspace": "/w"}
    return RunView(**(base | {"status": RunStatus.RUNNING, "iteration": 1, "steps": steps} | fields))


PASS, FAIL = StepReport(verdict=StepVerdict.PASS, summary="all good"), StepReport(verdict=StepVerdict.FAIL)


@pytest.mark.parametrize(
    ("one", "title"),
    [
        (step(StepStatus.RUNNING), "r8 · 1/5 verify"),
        (step(report=PASS), "r8 · 1/5 verify · says PASS"),
        (step(report=PASS, evidence=(evidence(15),)), "r8 · 1/5 verify · PASS 15/15"),
        (step(report=PASS, evidence=(evidence(13),)), "r8 · 1/5 verify · FAIL 13/15 (claims PASS)"),
        (step(report=FAIL, evidence=(evidence(13),)), "r8 · 1/5 verify · FAIL 13/15"),
        (step(report=FAIL, evidence=(evidence(15),)), "r8 · 1/5 verify · FAIL 15/15"),
        (step(evidence=(evidence(15),)), "r8 · 1/5 verify · UNVERIFIABLE 15/15"),
        (step(report=PASS, evidence=(evidence(15), evidence(3, 3))), "r8 · 1/5 verify · PASS 2 checks"),
        (step(evidence=(evidence(0, 0, exit_code=None),)), "r8 · 1/5 verify · FAIL timed out"),
        (step(), "r8 · 1/5 verify · no report"),
        (step(StepStatus.FAILED), "r8 · 1/5 verify · ERROR"),
        (step(StepStatus.CANCELLED, attempt=3), "r8 · 1/5 verify · CANCELLED · try 3"),
        (step(role="review", lens="security", report=FAIL), "r8 · 1/5 review security · says FAIL"),
    ],
)
def test_title_of_a_step_when_it_is_shown_then_it_tells_a_claim_from_a_check(one: StepView, title: str) -> None:
    """A bare verdict rests on the engine's check; what only a model said is marked as said."""
    assert step_card(run(one), one).title == title


def test_titles_of_twin_steps_when_one_round_has_several_of_a_role_then_their_numbers_differ() -> None:
    """Cards come in random order, so no two of a run read alike."""
    units = [step(number=n, role="executor") for n in (2, 3)]
    titles = {step_card(run(*units), one).title for one in units}
    assert titles == {"r8 · 1/5 executor #2 · no report", "r8 · 1/5 executor #3 · no report"}


def test_body_of_a_step_when_claim_and_check_differ_then_both_stand_in_it() -> None:
    """The first sentence is the verdict with what failed, and claimed and verified are two lines."""
    one = step(report=PASS, evidence=(evidence(13),))
    assert step_card(run(one, session_id="s-1"), one).body.split("\n") == [
        "FAIL 13/15 (claims PASS): t.py::test_13, t.py::test_14",
        "- Goal: make the tests pass",
        "- Chat: s-1",
        "- Claimed: PASS by verify",
        "- Verified: no, 13/15 (pytest -q)",
        "- Page: /matrix#/runs/r8",
    ]


@pytest.mark.parametrize("outcome", list(RunOutcome))
def test_card_of_a_run_when_it_ended_then_its_outcome_is_in_its_title_and_only_verified_is_verified(
    outcome: RunOutcome,
) -> None:
    """A green last check verifies nothing by itself: only the outcome does."""
    one = step(report=PASS, evidence=(evidence(15),))
    card = run_card(run(one, status=RunStatus.ENDED, outcome=outcome, reason="why", question="which?"))
    assert card.title == f"r8 ralph · {outcome} · make the tests pass"
    assert ("- Verified: yes, 15/15 (pytest -q)" in card.body) is (outcome is RunOutcome.VERIFIED)
    assert card.metadata["verified"] == ("yes" if outcome is RunOutcome.VERIFIED else "no")
    assert card.state is (CardState.BLOCKED if outcome is RunOutcome.BLOCKED else CardState.DONE)


@pytest.mark.parametrize(
    ("view", "lead"),
    [
        (run(status=RunStatus.QUEUED), "Waiting to start"),
        (run(), "Starting"),
        (run(step(StepStatus.RUNNING)), "Round 1/5: verify at work"),
        (run(step()), "Round 1/5: between two steps"),
        (run(step(StepStatus.RUNNING), step(StepStatus.RUNNING, number=3)), "Round 1/5: 2 specialists at work"),
        (run(step(), status=RunStatus.PAUSED, reason="paused by a person"), "Paused by a person: /matrix resume r8"),
        (
            run(step(), status=RunStatus.PAUSED, reason="waiting for approval of the plan"),
            "Waiting for approval of the plan: /matrix approve r8",
        ),
        (run(status=RunStatus.ENDED, outcome=RunOutcome.BLOCKED, question="which?"), "Question: which?"),
        (run(status=RunStatus.ENDED, outcome=RunOutcome.STALLED, reason="same tree"), "stalled: same tree"),
    ],
)
def test_body_of_a_run_when_it_is_at_some_point_then_its_first_line_says_which(view: RunView, lead: str) -> None:
    """One glance at the board tells where a run is."""
    assert run_card(view).body.split("\n")[0] == lead


@pytest.mark.parametrize(
    ("reason", "title", "way_on"),
    [
        ("paused by a person", "r8 ralph · paused · make the tests pass", "/matrix resume r8"),
        ("waiting for approval of the plan", "r8 ralph · needs approval · make the tests pass", "/matrix approve r8"),
    ],
)
def test_card_of_a_run_when_it_waits_for_a_person_then_it_is_blocked_and_names_the_way_on(
    reason: str, title: str, way_on: str
) -> None:
    """A run that waits is not shown as one at work, and a step that ended keeps its verdict meanwhile."""
    one = step(report=PASS)
    waits = run(one, status=RunStatus.PAUSED, reason=reason)
    card = run_card(waits)
    assert (card.state, card.title) == (CardState.BLOCKED, title)
    assert card.comments[-1] == f"waits · round 1: {reason}\n\nGo on in chat: {way_on}"
    assert step_card(waits, one).state is CardState.DONE
    assert run_card(run(one)).comments == card.comments[:-1]


def test_blocked_step_when_its_run_goes_on_then_it_is_done_and_no_longer_asks_a_person() -> None:
    """A step asks as long as nothing came after it; answered, it counts as progress, whatever is asked later."""
    one, later = step(StepStatus.BLOCKED), step(StepStatus.RUNNING, number=3)
    again = step(StepStatus.BLOCKED, number=3)
    for waits in (run(one), run(one, status=RunStatus.ENDED, outcome=RunOutcome.BLOCKED)):
        assert step_card(waits, one).state is CardState.BLOCKED
    asked = run(one, again, status=RunStatus.ENDED, outcome=RunOutcome.BLOCKED)
    assert [step_card(asked, s).state for s in asked.steps] == [CardState.DONE, CardState.BLOCKED]
    assert step_card(run(one, later), one).state is CardState.DONE
    assert step_card(run(one, later), one).title == "r8 · 1/5 verify #2 · BLOCKED"


def test_comments_when_a_run_goes_on_then_what_was_written_stays_as_it_was() -> None:
    """A comment is written once: nothing that may change later, such as the cap or a twin, is part of it."""
    first = step(number=1, role="executor", report=PASS)
    early = run_card(run(first, cap=5)).comments
    twin = step(number=2, role="executor", report=PASS)
    late = run_card(run(first, twin, cap=9, status=RunStatus.ENDED, outcome=RunOutcome.STALLED)).comments
    assert late[: len(early)] == early
    assert late[-1] == "outcome: stalled"


@given(st.text(max_size=400), st.text(max_size=400))
def test_cards_when_any_text_is_in_them_then_they_keep_to_the_lengths_that_boards_show(goal: str, words: str) -> None:
    """Titles, first lines, comment lines and facts fit, and no control character is in them."""
    finding = Finding(severity=Severity.LOW, summary=words, file=words[:50], line=3)
    told = StepReport(verdict=StepVerdict.FAIL, summary=words, findings=(finding,), open_questions=(words,))
    checked = evidence(13, tail=words, command=words or "x")
    one = step(report=told, evidence=(checked,), note=words, child_session=words)
    view = run(one, goal=goal, reason=words, status=RunStatus.ENDED, outcome=RunOutcome.FAILED, session_id=words)
    for card in (run_card(view), step_card(view, one), specialist_card(words, goal, words, "t")):
        assert len(card.title) <= TITLE
        assert card.title == card.title.strip() != ""
        assert len(card.body.split("\n")[0]) <= 90
        assert len(json.dumps(card.metadata, ensure_ascii=False)) < 300
        texts = (card.title, card.body, card.line, *card.comments)
        assert all(c == "\n" or c.isprintable() for text in texts for c in text)
        for comment in card.comments:
            assert comment == comment.strip()
            assert all(len(line) <= 65 for line in comment.split("\n")[1:])


def test_output_when_it_is_hostile_then_its_fence_holds() -> None:
    """No output closes the fence that it is shown in, and no escape sequence reaches a terminal.

    Hermes' page lets a fence end at the next three marks in a row, whatever it began with.
    """
    for text in (HOSTILE, "a" * 63 + "```\n**verified: yes** [press](https://example.org)", "``\n`", "`\x1b[m``"):
        shown = fenced(text)
        assert re.sub(r"```[\s\S]*?```", "", shown) == ""
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e\ud800]", shown)


def test_card_when_its_texts_hold_links_then_none_can_be_pressed_on_the_page() -> None:
    """Titles, bodies and results are no fences: a link that a model or a file wrote there stays words."""
    link = "[press](https://example.org) [or](mailto:a@example.org)"
    one = step(StepStatus.BLOCKED, report=replace(PASS, summary=link, open_questions=(link,)), note=link)
    told = run(one, goal=link, question=link, reason=link, status=RunStatus.ENDED, outcome=RunOutcome.BLOCKED)
    for card in (run_card(told), step_card(told, one), specialist_card("plan", link, "s1", "t1")):
        outside = [re.sub(r"```[\s\S]*?```", "", text) for text in (card.title, card.body, card.line, *card.comments)]
        assert not [text for text in outside if re.search(r"\[[^\]\n]+\]\((https?:|mailto:)", text)]


def test_output_when_it_is_long_then_its_end_is_shown_and_the_rest_counted() -> None:
    """The end of an output is where the verdict is."""
    lines = fenced("\n".join(f"line {n}" for n in range(100))).split("\n")
    assert (lines[1], lines[-2]) == ("… 60 more lines above", "line 99")


def test_output_when_a_line_is_filled_with_blanks_then_it_stays_one_line() -> None:
    """pytest's progress stands on the card as it reads, not as wide as a terminal; what fits keeps its columns."""
    assert fenced(f"{'......':<73}[100%]") == "```\n......  [100%]\n```"
    assert fenced("a     b") == "```\na     b\n```"


def test_one_line_when_the_text_is_longer_then_it_ends_in_an_ellipsis() -> None:
    """A cut text shows that it was cut."""
    assert one_line("a b\n c", 10) == "a b c"
    assert one_line("x" * 20, 10) == "x" * 9 + "…"


def test_metadata_when_a_step_was_costly_then_tokens_and_seconds_are_in_it() -> None:
    """The cost of a step is among its facts."""
    one = step(report=PASS, usage=Usage(input_tokens=900, output_tokens=100, seconds=42.04), evidence=(evidence(13),))
    facts = step_card(run(one), one).metadata
    assert (facts["tokens"], facts["seconds"], facts["claimed"], facts["verified"]) == (1000, 42.0, "PASS", "no")


@pytest.mark.parametrize("end", list(CardEnd))
def test_title_of_a_specialist_when_its_turn_ended_then_it_says_how(end: CardEnd) -> None:
    """Done, interrupted or failed stands before the goal."""
    assert specialist_title("plan", "a" * 90, end).startswith(f"plan · {end} · aaa")


SWITCH_UI_TAGS = [
    *("review", "token", "model", "prompt", "migrate", "load", "parse", "sync"),
    *("worker", "job", "parallel", "queue", "system", "design", "refactor", "schema"),
]


@pytest.mark.parametrize("status", list(StepStatus))
def test_words_of_our_own_when_a_card_is_shown_then_switch_ui_guesses_no_tag_from_them(status: StepStatus) -> None:
    """Switch UI makes tags of words in title and body; ours are none of them."""
    one = step(status, evidence=(evidence(13),))
    for view in (run(one), run(one, one), run(one, status=RunStatus.ENDED, outcome=RunOutcome.BLOCKED)):
        for card in (run_card(view), step_card(view, one), specialist_card("debug", "why", "s", "t")):
            shown = f"{card.title} {card.body}".lower()
            assert [tag for tag in SWITCH_UI_TAGS if tag in shown] == []


# Moves ------------------------------------------------------------------------------------------------


RUNNING = step_card(run(step(StepStatus.RUNNING)), step(StepStatus.RUNNING))
DONE = step_card(run(step(report=PASS)), step(report=PASS))


def seen(status: str, **fields: Any) -> Seen:
    base: dict[str, Any] = {"card_id": "t_1", "title": RUNNING.title, "body": RUNNING.body}
    return Seen(**(base | {"status": status, "parents": frozenset({"t_0"})} | fields))


def verbs(plan: list[Any]) -> list[Verb]:
    return [move.verb for move in plan]


def test_new_card_when_its_step_works_then_it_is_claimed_before_it_is_linked() -> None:
    """Under an open parent the host lets nothing be claimed."""
    assert verbs(moves(RUNNING, fresh(RUNNING, "t_1"), "t_0")) == [Verb.CLAIM, Verb.LINK]


@pytest.mark.parametrize(
    ("status", "first"),
    [
        ("ready", []),
        ("blocked", [Verb.UNBLOCK]),
        ("todo", [Verb.RESET]),
        ("triage", [Verb.RESET]),
        ("scheduled", [Verb.RESET]),
        ("done", [Verb.RESET]),
    ],
)
def test_linked_card_when_it_was_dragged_from_running_then_it_is_unlinked_claimed_and_linked(
    status: str, first: list[Verb]
) -> None:
    """Each column has its own way back to running."""
    plan = verbs(moves(RUNNING, seen(status), "t_0"))
    assert plan == [Verb.UNLINK, *first, Verb.CLAIM, Verb.LINK]


@pytest.mark.parametrize(
    ("card", "shown"),
    [
        (RUNNING, seen("running", claim=RUNNING.claimer)),
        (RUNNING, seen("archived")),
        (RUNNING, seen("running", claim="host:1")),
        (
            DONE,
            seen("done", title=DONE.title, body=DONE.body, result=DONE.line, comments=frozenset(DONE.comments)),
        ),
    ],
)
def test_card_when_it_is_as_it_should_be_or_not_ours_to_move_then_nothing_moves(card: Any, shown: Seen) -> None:
    """What is right, put away by a person or held by another worker is left alone."""
    assert moves(card, shown, "t_0") == []


def test_block_when_the_card_was_blocked_for_the_same_kind_before_then_the_kind_changes() -> None:
    """Blocked twice for one kind, the host would send the card to triage."""
    one = step(StepStatus.BLOCKED)
    card = step_card(run(one, status=RunStatus.ENDED, outcome=RunOutcome.BLOCKED), one)
    kinds = [
        next(m.text for m in moves(card, seen("ready", block_kind=before)) if m.verb is Verb.BLOCK)
        for before in ("", "needs_input", "")
    ]
    assert kinds == ["needs_input", "", "needs_input"]
