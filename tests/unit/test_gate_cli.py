"""Routing from the terminal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from matrix_coder.cli import run_in_host
from matrix_coder.routing_cli import in_words, route_lines, route_text
from matrix_coder.routing_eval import Evaluation, evaluate, figures, text

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


BAD_LINES = {
    b"not json": "expected one JSON object; found Expecting value",
    b'{"text": 3}': "expected a string as 'text'; found a number",
    b"[1]": "expected one JSON object; found an array",
    b"{}": "expected a string as 'text'; found none",
    b'{"text": "fix src/app.py", "platform": 7}': "expected a string as 'platform'; found a number",
    b'{"text": "fix src/app.py", "session_id": []}': "expected a string as 'session_id'; found an array",
    b'{"text": "\xff"}': "expected UTF-8; found byte 10 that is not",
    b"[" * 100_000: "expected one JSON object; found ",
    b"1" * 5_000: "expected one JSON object; found ",
}


@pytest.mark.parametrize("line", BAD_LINES, ids=lambda x: x[:20].decode("latin-1"))
def test_route_lines_when_one_is_bad_then_its_error_names_it_and_the_others_are_answered(line: bytes) -> None:
    """A bad line gets an error with its number and what was expected; those before and after get their answers."""
    good = b'{"text": "fix src/app.py"}\n'
    told = list(route_lines([good, b"\n", line + b"\n", good]))
    assert [number for number, _ in told] == [1, 3, 4]
    error = str(told[1][1]["error"])
    assert error.startswith(f"line 3: {BAD_LINES[line]}")
    assert told[1][1]["line"] == 3
    assert [told[0][1]["outcome"], told[2][1]["outcome"]] == ["D", "D"]


def test_route_lines_when_they_say_whose_they_are_then_answered_so() -> None:
    """A line's session and platform count; its id comes back, with an error, too."""
    lines = [
        b'{"text": "fix src/app.py", "session_id": "cron_1"}',
        b'{"text": "fix src/app.py", "platform": "subagent"}',
        b'{"text": "hello", "id": "m1", "session_id": null}',
        b'{"text": 1, "id": 7}',
    ]
    told = [answer for _, answer in route_lines(lines)]
    assert [t.get("outcome", "error") for t in told] == ["skip", "skip", "B", "error"]
    assert [t.get("id") for t in told] == [None, None, "m1", 7]


def test_in_words_when_a_decision_is_shown_to_a_person_then_each_has_a_sentence() -> None:
    """Whoever does not know the letters reads what becomes of the turn."""
    told = {
        "hello": "nothing is added",
        "fix README typo": "a tip",
        "fix the login bug": "joins the turn",
        "matrix debug: why": "you named it: it takes this turn",
        "matrix ralph: make it pass": "this workflow starts",
        "matrix ralph": "asked back",
    }
    assert [t for t, words in told.items() if words not in in_words(t)] == []


def test_route_jsonl_when_lines_are_bad_then_all_are_answered_and_the_exit_code_is_two() -> None:
    """The command answers each line of its input on a line, whatever is in it, and says at the end which were bad."""
    lines = [b'{"text": "fix src/app.py"}', b"nonsense", b'{"text": "\\ud800", "id": "\\ud800"}', b"\xff", b"", b"[]"]
    code = "import sys; from matrix_coder.cli import run_in_host; sys.exit(run_in_host(['route', '--jsonl']))"
    done = subprocess.run([sys.executable, "-c", code], input=b"\n".join(lines), capture_output=True, check=False)
    assert done.returncode == 2
    told = [json.loads(x) for x in done.stdout.splitlines()]
    assert [t.get("line") for t in told] == [None, 2, None, 4, 6]
    assert json.loads(done.stderr)["error"]["found"] == "3 other lines: 2, 4, 6"


def test_route_lines_when_ten_thousand_then_all_are_answered() -> None:
    """A long stream is answered whole."""
    assert sum(1 for _ in route_lines([b'{"text": "why does load() fail?"}\n'] * 10_000)) == 10_000


def test_evaluate_when_corpus_then_tables_by_kind() -> None:
    """The evaluation has a line for all messages and one for each kind, and prints them so, misses last."""
    found = evaluate(CORPUS / "routing_dev.jsonl", misses=3)
    assert next(iter(found.kinds)) == "all"
    assert found.kinds["all"]["n"] == 413
    told = text(found).splitlines()
    assert told[1].split()[:2] == ["all", "413"]
    assert [line.split()[0] for line in told[1 : len(found.kinds) + 1]] == list(found.kinds)
    assert len(told) == 1 + len(found.kinds) + len(found.misses)


def test_figures_when_there_are_none_then_null_and_a_dash() -> None:
    """What was never asked has no figure: null in JSON, a dash in the table."""
    found = figures([])
    assert found == {
        "all": {"n": 0, "coding": 0, **dict.fromkeys(["P", "R", "F1", "FA%", "verdict%", "role%", "domain%", "route%"])}
    }
    assert text(Evaluation(kinds=found, misses=())).splitlines()[1].split() == ["all", "0", "0", *["-"] * 8]


def test_eval_when_json_then_the_figures_and_misses_as_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`eval --json` holds each figure as a number and each miss with its whole text, whatever its kind is called."""
    kind = "missed: a kind"
    row = {"verdict_ok": ["implement"], "role": ["executor"], "lens": None, "domain": None, "source_kind": kind}
    lines = [
        {**row, "id": "m1", "coding": True, "text": "fix the crash in src/app.py"},
        {**row, "id": "m2", "coding": True, "text": "good morning\n" * 30},
    ]
    file = tmp_path / "own.jsonl"
    file.write_text("".join(json.dumps(x) + "\n" for x in lines))
    assert run_in_host(["eval", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["kinds"].keys() == {"all", kind}
    assert (told["kinds"][kind]["n"], told["kinds"][kind]["P"], told["kinds"][kind]["R"]) == (2, 1.0, 0.5)
    assert told["misses"] == [{"id": "m2", "kind": kind, "what": "missed", "text": "good morning\n" * 30}]
