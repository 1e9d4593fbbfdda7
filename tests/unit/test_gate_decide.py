"""What the gate decides beside the explicit grammar: who speaks, opting out, the tip, and its reasons."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from matrix_coder.core.intent_gate import answers_tip, decide, explain, has_coding_intent

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
MENTIONS: dict[str, Any] = json.loads((CORPUS / "mention_corpus.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("platform", ["subagent", "cron", "curator"])
def test_decide_when_platform_is_no_person_then_skip(platform: str) -> None:
    """A delegated child, a cron job and the curator are never routed."""
    assert decide("matrix ralph: fix src/app.py", platform=platform).outcome == "skip"


@pytest.mark.parametrize(
    "text",
    [
        "[ASYNC DELEGATION COMPLETE — d_1] fixed src/app.py",
        "[ASYNC DELEGATION BATCH COMPLETE — b_2] all done",
        "[kanban] Task t_1 is done: fix src/app.py",
        "[IMPORTANT: You are running as a scheduled cron job.] fix src/app.py",
        "[Continuing toward your standing goal]\nGoal: fix src/app.py",
        "[System: Continue now. Execute the required tool calls]",
        "Review the conversation above and update the skill library if needed",
    ],
)
def test_decide_when_host_wrote_it_then_skip(text: str) -> None:
    """Texts that the host writes itself inject nothing."""
    assert decide(text).outcome == "skip"


@pytest.mark.parametrize(
    "text",
    [
        "fix src/app.py, handle it directly",
        "Handle This Directly: fix src/app.py",
        "just let hermes handle it, the failing test in tests/test_a.py",
        "have Hermes do that: bump setup.py",
        "no matrix coder please, fix src/app.py",
        "Let Hermes take care of it: src/app.py",
    ],
)
def test_decide_when_bail_phrase_then_none(text: str) -> None:
    """A phrase that hands the work to Hermes opts out, whatever else the message says."""
    assert decide(text).outcome == "B"


def test_decide_when_bail_phrase_is_negated_then_routed() -> None:
    """Forbidding the shortcut is no opt-out."""
    assert decide("don't let hermes do it, refactor src/app.py").outcome == "D"


@pytest.mark.parametrize("lead", ["hermes, ", "Hermes: ", "hey hermes, "])
def test_decide_when_addressed_as_hermes_then_rest_is_routed(lead: str) -> None:
    """An address at the start is no opt-out: what follows decides."""
    assert decide(lead + "fix the failing test in tests/test_auth.py").outcome == "D"
    assert decide(lead + "what's for dinner tonight?").outcome == "B"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("invoke Matrix Coder anyway", "invoke"),
        ("Invoke matrix coder anyway, please!", "invoke"),
        ("yes, invoke it", "invoke"),
        ("use matrix coder", "invoke"),
        ("let Hermes do it", "leave"),
        ("No, let Hermes do it.", "leave"),
        ("handle it directly", "leave"),
        ("what is matrix coder?", None),
        ("fix the login bug in auth.py", None),
        ("", None),
    ],
)
def test_answers_tip_when_answer_or_not_then_what_was_meant(text: str, answer: str | None) -> None:
    """The two answers to the tip are understood in plain variants; anything else is no answer."""
    assert answers_tip(text) == answer


@pytest.mark.parametrize(
    ("text", "direct"),
    [
        ("fix the spelling in utils.py", True),
        ("rename the deploy secret in ci.yml", False),
        ("rename foo to bar in the parser module and then also in every single test file we have", False),
        ("review the spelling in utils.py", False),
    ],
)
def test_decide_when_mechanical_then_direct_only_if_short_and_harmless(text: str, direct: bool) -> None:
    """DIRECT needs a mechanical edit, at most ten words, nothing sensitive, and executor or simplify."""
    assert (decide(text).outcome == "C") is direct


@pytest.mark.parametrize("text", [t for _, t in MENTIONS["neg_loop"]])
def test_decide_when_workflow_is_mentioned_then_nothing_starts(text: str) -> None:
    """A workflow's name inside a message never starts a run."""
    assert not decide(text).workflow


@pytest.mark.parametrize(("name", "text"), MENTIONS["pos_loop"])
def test_decide_when_matrix_stands_before_workflow_then_it_starts(name: str, text: str) -> None:
    """The same request starts once the trigger word stands before the workflow's name, and not without it."""
    assert not decide(text).workflow
    decision = decide("matrix " + text[text.lower().index(name) :])
    assert (decision.role, decision.workflow, decision.asks) == (name, True, False)


@pytest.mark.parametrize(("kind", "role", "text"), MENTIONS["gate"])
def test_decide_when_gate_prompt_then_coding_as_labelled(kind: str, role: str, text: str) -> None:
    """Plain coding requests are seen as such, and plain talk is left alone."""
    assert role
    assert decide(text).coding is (kind == "code")


def test_decide_when_repeated_then_equal() -> None:
    """The gate is a pure function."""
    text = "why does `load()` in src/a.py fail with KeyError?"
    assert decide(text) == decide(text)


def test_has_coding_intent_when_coding_then_signals_with_spans() -> None:
    """Each signal quotes the message at its span, and those that concern the whole message come last."""
    text = "fix the crash in src/parser.py when the file is empty"
    signals = has_coding_intent(text)
    assert signals
    quoting = [s for s in signals if s.span != (0, 0)]
    assert quoting == list(signals[: len(quoting)])
    assert all(text[slice(*s.span)] == s.text for s in quoting)
    assert "src/parser.py" in [s.text for s in quoting]
    assert has_coding_intent("good morning") is None


@pytest.mark.parametrize(
    ("text", "quoted", "rule"),
    [
        ("why does the import hang?", "why does", "a question that starts with why"),
        ("please add a retry to the client", "add", "an order to the agent"),
        ("fix the crash in src/app.py", "src/app.py", "a code file"),
        ("rename getUser to fetch_user", "getUser", "looks like an identifier"),
        ("I refactored the parser yesterday", "refactored", "talk about work already done"),
        ("is the compiler slow", "is the compiler", "a question about something technical"),
        ("the endpoint crashes", "endpoint", "a technology"),
    ],
)
def test_explain_when_a_word_votes_then_its_rule_is_in_plain_words(text: str, quoted: str, rule: str) -> None:
    """People read what kind of word voted, and see the word."""
    signals = explain(text)["signals"]
    assert isinstance(signals, list)
    assert (quoted, rule) in [(s["text"], s["rule"]) for s in signals]


@pytest.mark.parametrize("kind", ["routing_dev", "routing_own"])
def test_explain_when_corpus_then_no_feature_code_is_shown(kind: str) -> None:
    """Rules are words, never the scorer's own codes; those stand apart under `codes`."""
    lines = (CORPUS / f"{kind}.jsonl").read_text(encoding="utf-8").splitlines()
    for line in lines[::7]:
        told = explain(json.loads(line)["text"])
        signals, codes = told["signals"], told.get("codes", [])
        assert isinstance(signals, list)
        assert isinstance(codes, list)
        assert len(codes) in (0, len(signals))
        assert [s["rule"] for s in signals if not re.fullmatch(r"[A-Za-z][A-Za-z' ,-]+", s["rule"])] == []


def test_explain_when_coding_then_names_score_roles_and_mask() -> None:
    """An explanation carries the votes, the score, the runner-up role and what was set apart, as JSON."""
    text = "why does this fail?\n```\nTraceback (most recent call last):\nKeyError: 'a'\n```"
    told = explain(text)
    assert json.loads(json.dumps(told)) == told
    assert told["outcome"] == "D"
    assert told["signals"]
    assert told["runner_up"] != told["role"]
    assert told["masked"] == ["a fenced block", "a stack trace"]
    apart = told["set_apart"]
    assert isinstance(apart, list)
    assert [(text[slice(*m["span"])], m["why"]) for m in apart] == [(text[text.index("```") :], "a fenced block")]


@pytest.mark.parametrize(
    ("text", "quoted", "rule"),
    [
        ("plan a weekend trip", "trip", "daily life"),
        ("fix src/app.py, but handle it directly", "handle it directly", "bail phrase"),
        ("x " * 3_000 + "let Hermes do it", "let Hermes do it", "bail phrase"),
    ],
)
def test_decide_when_left_alone_then_the_reasons_are_kept(text: str, quoted: str, rule: str) -> None:
    """A message that is left alone tells why, as one that is taken does."""
    decision = decide(text)
    assert decision.outcome == "B"
    assert (quoted, rule) in [(s.text, s.rule) for s in decision.signals]
    assert all(text.strip()[slice(*s.span)] == s.text for s in decision.signals if s.span != (0, 0))


def test_explain_when_several_requests_then_later_ones_are_named() -> None:
    """Of more than one request the later ones are named."""
    told = explain("fix the parser, then write tests for it and update the README")
    assert told["later"] == ["write tests for it", "update the README"]
    assert explain("fix the parser")["later"] == []


def test_explain_when_bail_then_names_the_phrase() -> None:
    """The phrase that opted out is shown with its span."""
    told = explain("fix src/app.py but let hermes do it")
    signals = told["signals"]
    assert isinstance(signals, list)
    assert signals[0]["rule"] == "bail phrase"
    assert signals[0]["text"] == "let hermes do it"


def test_as_dict_when_any_outcome_then_json_with_promised_keys() -> None:
    """Each decision is plain JSON with the keys that others read."""
    keys = {"outcome", "verdict", "coding", "role", "lens", "domain", "route", "goal", "asks", "signals"}
    for text in ("matrix ralph cap=2: x", "fix src/a.py", "hello", "fix README typo", "[kanban] x"):
        told = json.loads(json.dumps(decide(text).as_dict()))
        assert keys <= set(told)
        assert told["coding"] is (told["verdict"] != "none")
