"""The kept routing decisions: bounded, private, and never in a turn's way."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from matrix_coder.core.intent_gate import decide
from matrix_coder.core.turns import Turn
from matrix_coder.hermes import decisions
from matrix_coder.hermes.decisions import KEPT, MOST_SESSIONS, MOST_TEXT, DecisionLog, remember
from matrix_coder.testing import ManualClock

ASK = "review the auth endpoint"


def log_of(home: Path) -> DecisionLog:
    return DecisionLog(home, clock=ManualClock(1_000.0))


def setting(home: Path, remembers: bool) -> None:
    nest = {"plugins": {"entries": {"matrix_coder": {"settings": {"routing": {"remember": remembers}}}}}}
    (home / "config.yaml").write_text(json.dumps(nest))


def test_decision_when_kept_then_read_back_with_message_route_and_signals(tmp_path: Path) -> None:
    """What was decided on a message is told with its reasons, newest first, session by session."""
    log = log_of(tmp_path)
    log.add("s1", ASK, decide(ASK))
    log.add("s1", "hello", decide("hello"))
    log.add("s2", "fix README typo", decide("fix README typo"))
    newest, first = log_of(tmp_path).of("s1")
    assert (newest.message, newest.decision["outcome"], first.at) == ("hello", "B", 1_000.0)
    assert first.decision["route"] == "review:security@backend-api"
    assert [s["text"] for s in first.decision["signals"]][:1]
    assert {k.session_id for k in log.sessions()} == {"s1", "s2"}


def test_files_when_written_then_for_the_owner_alone(tmp_path: Path) -> None:
    """Nobody else on the machine reads what a person wrote."""
    log = log_of(tmp_path)
    log.add("s/../1", ASK, decide(ASK))
    (file,) = log.folder.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(log.folder.stat().st_mode) == 0o700


def test_log_when_long_texts_and_many_turns_come_then_bounded(tmp_path: Path) -> None:
    """A session keeps its last decisions, each with the beginning of its text, in a file of bounded size."""
    log = log_of(tmp_path)
    text = "please review the 🔒 auth endpoint `" + "漢" * 5_000 + "` \ud800"
    for turn in range(60):
        log.add("s1", f"{turn} {text}", decide(text))
    kept = log.of("s1")
    assert len(kept) == KEPT
    assert [k.message.split()[0] for k in kept] == [str(n) for n in range(59, 59 - KEPT, -1)]
    assert all(len(k.message) == MOST_TEXT and k.cut for k in kept)
    (file,) = log.folder.iterdir()
    assert file.stat().st_size < 200_000


def test_log_when_many_sessions_come_then_the_oldest_are_forgotten(tmp_path: Path) -> None:
    """The number of sessions is bounded, too."""
    log = log_of(tmp_path)
    decision = decide("hello")
    for n in range(MOST_SESSIONS + 30):
        log.add(f"s{n}", "hello", decision)
    assert len(list(log.folder.iterdir())) == MOST_SESSIONS
    assert log.of(f"s{MOST_SESSIONS + 29}")


def test_log_when_the_setting_says_no_then_nothing_is_kept_and_the_rest_removed(tmp_path: Path) -> None:
    """`routing.remember: false` works from the next turn on, without a restart, and so does `true`."""
    log = log_of(tmp_path)
    log.add("s1", ASK, decide(ASK))
    setting(tmp_path, remembers=False)
    log.add("s1", ASK, decide(ASK))
    assert not log.folder.exists()
    (tmp_path / "config.yaml").unlink()
    setting(tmp_path, remembers=True)
    log.add("s1", ASK, decide(ASK))
    assert len(log.of("s1")) == 1


def test_turn_when_its_decision_can_not_be_written_then_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full or read-only place costs the record, never the turn; a turn without a decision writes nothing."""
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    turn = Turn(session_id="s1", turn_id="t1")
    remember(turn, ASK)
    remember(None, ASK)
    assert not (tmp_path / "matrix_coder").exists()
    (tmp_path / "matrix_coder").mkdir()
    (tmp_path / "matrix_coder" / "decisions").write_text("in the way")
    turn.decision = decide(ASK)
    remember(turn, ASK)
    assert (tmp_path / "matrix_coder" / "decisions").read_text() == "in the way"
    assert decisions.DecisionLog(tmp_path).of("s1") == []


def test_log_when_lines_are_torn_then_the_others_are_read(tmp_path: Path) -> None:
    """A line that a crash cut off hides no other."""
    log = log_of(tmp_path)
    log.add("s1", ASK, decide(ASK))
    (file,) = log.folder.iterdir()
    with file.open("ab") as stream:
        stream.write(b'{"session_id": "s1", "at"\n[]\n{"more": 1}\n')
    assert [k.message for k in log.of("s1")] == [ASK]
