"""What the command line loads, and how it ends."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from matrix_coder.cli import EXIT_CODES, amounts, cli, run_in_host
from matrix_coder.cli.app import EXIT_LEFT, EXIT_WAITS

HEAVY = ("matrix_coder.engine.client", "matrix_coder.engine.store", "dbos", "rich", "fastapi", "pydantic", "sqlite3")


def test_route_when_asked_then_loads_no_engine() -> None:
    """Routing from the terminal pays for the lexicon alone: no engine, no store, no table drawing."""
    code = (
        "import sys; from matrix_coder.cli import run_in_host; run_in_host(['route', 'hi']); "
        f"print([m for m in {HEAVY} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_exit_codes_when_listed_then_each_means_one_thing() -> None:
    """No outcome shares its code with another, with unusable input, a waiting run or Ctrl-C."""
    codes = [*EXIT_CODES.values(), 2, EXIT_WAITS, EXIT_LEFT]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["route", "--json"], "none"),
        (["show", "--json", "nope"], "'nope'"),
        (
            ["run", "ralph", "x", "--minutes", "soon", "--json"],
            "Invalid value for '--minutes': 'soon' is neither minutes nor a time such as 90s, 30m or 2h",
        ),
        (
            ["run", "ralph", "x", "--minutes", "nan", "--json"],
            "Invalid value for '--minutes': 'nan' is neither minutes nor a time such as 90s, 30m or 2h",
        ),
        (
            ["run", "ralph", "x", "--minutes", "9h9", "--json"],
            "Invalid value for '--minutes': '9h9' is neither minutes nor a time such as 90s, 30m or 2h",
        ),
        (
            ["run", "ralph", "x", "--minutes", "0", "--json"],
            "Invalid value for '--minutes': 0 is not in the range 0.1<=x<=10080 minutes",
        ),
        (
            ["run", "ralph", "x", "--tokens", "many", "--json"],
            "Invalid value for '--tokens': 'many' is not a number of tokens such as 200000, 200k or 2m",
        ),
        (
            ["run", "ralph", "x", "--money", "inf", "--json"],
            "Invalid value for '--money': 'inf' is not an amount of dollars such as 5, 2.50 or $5",
        ),
        (["no-such", "--json"], "No such command 'no-such'"),
        (["runs", "--limit", "0", "--json"], "Invalid value for '--limit': 0 is not in the range 1<=x<=1000"),
    ],
)
def test_errors_when_json_is_asked_for_then_are_json(
    words: list[str], found: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever is wrong with the input, a program that asked for JSON reads JSON: code, expected, found, remedy."""
    assert run_in_host(words) == 2
    error = json.loads(capsys.readouterr().err)["error"]
    assert set(error) == {"code", "expected", "found", "remedy"}
    assert error["found"] == found


def test_amounts_when_written_as_in_a_chat_or_as_numbers_then_are_the_same() -> None:
    """`30m` and `30`, `200k` and `200000`, `$5` and `5.00`: neither place has to be remembered."""
    assert [amounts.minutes(t) for t in ("30", "30m", "0.5", "90s", "2h")] == [30, 30, 0.5, 1.5, 120]
    assert [amounts.tokens(t) for t in ("200000", "200k", "2m")] == [200_000, 200_000, 2_000_000]
    assert [amounts.dollars(t) for t in ("5", "$5", "2.50")] == [5, 5, 2.5]


def test_help_when_asked_then_every_command_stands_in_a_section_with_its_whole_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No command is missing from the list, and none is told of by half a sentence."""
    assert run_in_host(["--help"]) == 0
    told = capsys.readouterr().out
    listed = re.findall(r"^  ([a-z][a-z-]+)  ", told, re.MULTILINE)
    assert sorted(listed) == sorted(name for name, command in cli.commands.items() if not command.hidden)
    assert "..." not in told.partition("Routing:")[2]


def test_errors_when_a_text_is_not_quoted_then_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    """A newcomer's first mistake is told with its remedy."""
    assert run_in_host(["route", "fix", "the", "bug"]) == 2
    assert "a text of several words stands in quotes; try: hermes matrix route --help" in capsys.readouterr().err


def test_errors_when_the_word_json_is_no_option_then_are_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """What stands behind `--` is text, not a wish for JSON."""
    assert run_in_host(["steer", "nope", "--", "--json"]) == 2
    assert capsys.readouterr().err.startswith("matrix-coder: expected the id of a run")
