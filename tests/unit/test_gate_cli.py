"""Routing from the terminal."""

from __future__ import annotations

import io
import json
from pathlib import Path

from matrix_coder.routing_cli import route_jsonl, route_text
from matrix_coder.routing_eval import evaluate

CORPUS = Path(__file__).resolve().parents[1] / "corpus"


def test_route_text_when_plain_then_one_line_names_the_route() -> None:
    """The plain answer is one line with outcome, verdict and route."""
    assert route_text("matrix review:api@frontend look").split() == ["A", "matrix", "review:api@frontend"]


def test_route_text_when_json_then_decision() -> None:
    """The JSON answer is the decision."""
    told = json.loads(route_text("fix src/app.py", as_json=True))
    assert (told["outcome"], told["role"]) == ("D", "executor")


def test_route_text_when_explain_then_votes_are_listed() -> None:
    """The explanation lists each vote with its weight, its span, the words it quotes and what they are."""
    told = route_text("fix the crash in src/app.py, then update `docs/a.md`", explain=True)
    assert "runner-up role" in told
    assert "'src/app.py': a code file" in told
    assert "set apart as text in backticks: '`docs/a.md`'" in told
    assert "more than one request: the first about code decides; later: 'update" in told
    assert json.loads(route_text("fix the crash in src/app.py", as_json=True, explain=True))["signals"]


def test_route_text_when_colour_then_telling_words_are_marked() -> None:
    """In a terminal the message is shown with its votes in colour, and control characters of it do nothing."""
    told = route_text("fix src/app.py \x1b[2J now", explain=True, colour=True)
    assert "\x1b[1;32msrc/app.py" in told
    assert "\x1b[2J" not in told
    assert "\x1b" not in route_text("fix src/app.py", explain=True)


def test_route_jsonl_when_stream_then_one_answer_a_line() -> None:
    """Every line gets one answer; a malformed one gets an error and does not stop the stream."""
    lines = [
        '{"text": "fix src/app.py"}',
        "not json",
        '{"text": 3}',
        "[1]",
        '{"text": "fix src/app.py", "session_id": "cron_1"}',
        '{"text": "fix src/app.py", "platform": "subagent"}',
        '{"text": "fix src/app.py", "platform": 7}',
        '{"text": "hello", "id": "m1"}',
    ]
    out = io.StringIO()
    assert route_jsonl(io.StringIO("\n".join(lines) + "\n\n"), out) == 8
    told = [json.loads(x) for x in out.getvalue().splitlines()]
    assert [t.get("outcome", "error") for t in told] == ["D", "error", "error", "error", "skip", "skip", "error", "B"]
    assert all("error" in t for t in (told[1], told[2], told[3], told[6]))
    assert told[7]["id"] == "m1"


def test_route_jsonl_when_ten_thousand_lines_then_all_are_answered() -> None:
    """A long stream is answered whole."""
    out = io.StringIO()
    assert route_jsonl(io.StringIO('{"text": "why does load() fail?"}\n' * 10_000), out) == 10_000
    assert out.getvalue().count("\n") == 10_000


def test_evaluate_when_corpus_then_tables_by_kind() -> None:
    """The evaluation prints a line for all messages and one for each kind."""
    told = evaluate(CORPUS / "routing_dev.jsonl", misses=3)
    assert told.splitlines()[1].split()[:2] == ["all", "413"]
    assert "github_title" in told
