"""A team's own words."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from matrix_coder.core.errors import InputError
from matrix_coder.core.intent_gate import decide
from matrix_coder.core.lexicon import base_lexicon, lexicon
from matrix_coder.core.words import TeamWords, parse_words, use_words
from matrix_coder.hermes.words import apply_words, connect_words, load_words, words_file

GOOD = """
terms = ["Zephyr", "flux capacitor", "宝箱"]
ordinary = ["release party", "sales pipeline"]
two_sense = ["quill"]
[domains]
frontend = ["Orbit UI"]
"""


@pytest.fixture(autouse=True)
def _own_lexicon_again() -> Iterator[None]:
    yield
    use_words(None)


def _write(home: Path, text: str | bytes) -> None:
    path = words_file(home)
    path.parent.mkdir(parents=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)


@pytest.mark.parametrize(
    "text",
    [
        "is the zephyr slow",
        "debug the Zephyr",
        "why does our flux capacitor time out?",
        "review the flux capacitors",
        "review the Orbit UI",
        "refactor the quill",
    ],
)
def test_decide_when_team_names_a_term_then_coding(text: str) -> None:
    """A team's term counts as any unmistakable term does, in any case and in the plural."""
    before = decide(text).coding
    use_words(parse_words(GOOD))
    assert decide(text).coding
    use_words(None)
    assert decide(text).coding is before


def test_decide_when_team_names_a_domain_then_routed_there() -> None:
    """A technology that the team ties to a domain leads there."""
    use_words(parse_words(GOOD))
    assert decide("review the Orbit UI").domain == "frontend"


def test_decide_when_phrase_is_ordinary_then_its_words_do_not_count() -> None:
    """A phrase that never counts takes the technical word inside it along."""
    text = "fix the sales pipeline"
    assert decide(text).coding
    use_words(parse_words(GOOD))
    assert not decide(text).coding


def test_use_words_when_taken_away_then_the_own_lexicon_is_back() -> None:
    """The package's own lexicon is never changed."""
    use_words(parse_words(GOOD))
    assert "zephyr" in lexicon().words
    use_words(None)
    assert lexicon() is base_lexicon()
    assert "zephyr" not in lexicon().words


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("terms = [", "expected TOML"),
        ('term = ["x1"]', "found 'term'"),
        ('terms = "zephyr"', "expected a list of words in terms; found str"),
        ("terms = [3]", "expected text in terms; found 3"),
        ('terms = ["x"]', "expected 2 to 80 characters with a letter in terms"),
        ('terms = ["!!!"]', "expected 2 to 80 characters with a letter in terms"),
        (f'terms = ["{"x" * 90}"]', "expected 2 to 80 characters"),
        ('terms = ["the"]', "found 'the', a word of all talk"),
        ('terms = ["orbit"]\nordinary = ["Orbit"]', "found 'orbit' twice"),
        ('domains = ["x"]', "expected a table in domains; found list"),
        ('[domains]\nmoon = ["orbit"]', "found 'moon'"),
        (f"terms = {[f'word{i}' for i in range(501)]}", "expected at most 500 entries in terms; found 501"),
        ("#" * 64_001, "expected at most 64,000 characters"),
        ("a = " + "[" * 5_000, "expected TOML"),
    ],
)
def test_parse_words_when_broken_then_one_clear_line(text: str, told: str) -> None:
    """What is wrong is said in one line: expected, found, what to do."""
    with pytest.raises(InputError) as caught:
        parse_words(text)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_parse_words_when_empty_then_nothing_is_added() -> None:
    """An empty file adds nothing."""
    assert parse_words("") == TeamWords()
    use_words(parse_words(""))
    assert lexicon() is base_lexicon()


@pytest.mark.parametrize("text", ["terms = [", b"terms = ['\xff']", '[domains]\nmoon = ["orbit"]'])
def test_connect_words_when_file_is_broken_then_left_out_with_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str | bytes
) -> None:
    """A broken file costs its words and one logged line, never a turn."""
    _write(tmp_path, text)
    with caplog.at_level(logging.WARNING, logger="matrix_coder"):
        connect_words(tmp_path)
    assert len(caplog.records) == 1
    assert caplog.records[0].getMessage() == f"matrix_coder: {apply_words(tmp_path)}"
    assert str(words_file(tmp_path)) in caplog.records[0].getMessage()
    assert decide("fix src/app.py").outcome == "D"


def test_apply_words_when_there_is_a_file_then_used_and_without_one_nothing(tmp_path: Path) -> None:
    """The file under HERMES_HOME is used; none is no fault."""
    assert load_words(tmp_path) is None
    assert apply_words(tmp_path) == ""
    _write(tmp_path, GOOD)
    assert apply_words(tmp_path) == ""
    assert decide("is the zephyr slow").coding


def _command(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from matrix_coder.cli import main; main()", *words],
        capture_output=True,
        text=True,
        env=os.environ | {"HERMES_HOME": str(home)},
        check=False,
    )


def test_words_check_when_run_then_reports_and_route_goes_on(tmp_path: Path) -> None:
    """The check tells of a good file, of a broken one with exit code 2, and routing works with either."""
    assert "nothing to check" in _command(tmp_path, "words", "check").stdout
    _write(tmp_path, GOOD)
    assert "7 entries, in use" in _command(tmp_path, "words", "check").stdout
    assert _command(tmp_path, "route", "is the zephyr slow").stdout.startswith("D")
    words_file(tmp_path).write_text("terms = [", encoding="utf-8")
    broken = _command(tmp_path, "words", "check")
    assert (broken.returncode, broken.stdout) == (2, "")
    assert broken.stderr.startswith("matrix-coder: expected TOML")
    routed = _command(tmp_path, "route", "fix src/app.py")
    assert routed.stdout.startswith("D")
    assert routed.stderr.count("words file is left out") == 1


def test_intake_when_connected_then_a_chat_routes_with_the_team_s_words(tmp_path: Path) -> None:
    """The first turn of a chat reads the file of its own HERMES_HOME."""
    _write(tmp_path, GOOD)
    code = (
        "from matrix_coder.hermes.hooks import connected; from matrix_coder.core.intent_gate import decide;"
        "connected(); print(decide('is the zephyr slow').outcome)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"HERMES_HOME": str(tmp_path)},
        check=False,
    )
    assert (done.stdout.strip(), done.returncode) == ("D", 0), done.stderr
