"""What the command line loads, and how it ends."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from matrix_coder.cli import EXIT_CODES, run_in_host
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


def test_errors_when_the_word_json_is_no_option_then_are_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """What stands behind `--` is text, not a wish for JSON."""
    assert run_in_host(["steer", "nope", "--", "--json"]) == 2
    assert capsys.readouterr().err.startswith("matrix-coder: expected the id of a run")
