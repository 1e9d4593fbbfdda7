"""What a session was told and shown of its runs, kept in a real store."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hermes_state import SessionDB

from matrix_coder.cli import run_in_host
from matrix_coder.core.errors import InputError
from matrix_coder.core.models import RunOutcome, RunStatus, RunView, StepReport, StepVerdict
from matrix_coder.engine import views
from matrix_coder.engine.spawn import WorkerLock
from matrix_coder.engine.store import Store
from matrix_coder.hermes.bridge import HermesBridge
from matrix_coder.hermes.candidates import chosen, chosen_and_text
from matrix_coder.hermes.chats import Chat
from matrix_coder.hermes.commands import Commands
from matrix_coder.hermes.follow import progress_line
from matrix_coder.hermes.markers import has_marker
from matrix_coder.hermes.milestones import Watcher
from matrix_coder.hermes.runs import ChatRuns, _say
from matrix_coder.hermes.successors import Successors
from webbench import Seeds

CLAIM = """
import sys, threading
from pathlib import Path
from matrix_coder.engine.store import Store
from matrix_coder.hermes.bridge import HermesBridge
bridge = HermesBridge(Store(Path(sys.argv[1])))
found = bridge.milestone(1, iterations=True)
sys.stdin.readline()
won = []
each = [threading.Thread(target=lambda: won.append(bridge.claim("s1", found))) for _ in range(4)]
[t.start() for t in each]
[t.join() for t in each]
print(sum(won), bridge.told("s1", "r1"))
"""


@pytest.fixture
def seeds(tmp_path: Path) -> Seeds:
    return Seeds(tmp_path / "home")


@pytest.fixture
def bridge(seeds: Seeds) -> HermesBridge:
    return HermesBridge(seeds.store)


@pytest.fixture
def no_worker(seeds: Seeds) -> Iterator[None]:
    """No worker starts: this process holds its lock until the test ends."""
    lock = WorkerLock(seeds.home)
    assert lock.acquire()
    yield
    lock.release()


def new(seeds: Seeds, session: str = "s1", place: str = "/w/one") -> int:
    """A queued run of a session that knows it."""
    number = seeds.new(goal="mend it", workspace=place, session=session)
    HermesBridge(seeds.store).attach(session, f"r{number}")
    return number


def blocked(seeds: Seeds, session: str = "s1", place: str = "/w/one") -> int:
    number = new(seeds, session, place)
    seeds.step(number, 1, "executor", 1)
    seeds.store.end_run(number, RunOutcome.BLOCKED, reason="it needs an answer", question="Which one?")
    return number


def test_milestone_when_many_processes_and_threads_want_it_then_one_gets_it(seeds: Seeds) -> None:
    """Three processes of four threads each: one thread shows the milestone, one process tells the result."""
    blocked(seeds)
    words = [sys.executable, "-c", CLAIM, str(seeds.home)]
    racing = [subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate("go\n", timeout=60)[0].split() for process in racing]
    assert sorted(claimed for claimed, _ in said) == ["0", "0", "1"]
    assert sorted(told for _, told in said) == ["False", "False", "True"]


def test_milestone_when_a_run_ends_again_then_is_another_one(seeds: Seeds, bridge: HermesBridge) -> None:
    """What happened before a run went on is not shown for what it does now; its next end is a milestone of its own."""
    number = blocked(seeds)
    first = bridge.milestone(number, iterations=True)
    assert first is not None
    assert bridge.claim("s1", first)
    seeds.store.reopen(number)
    assert bridge.milestone(number, iterations=True) is None
    seeds.store.end_run(number, RunOutcome.VERIFIED, reason="it passes")
    second = bridge.milestone(number, iterations=True)
    assert second is not None
    assert "verified" in second.text
    assert bridge.claim("s1", second)


def test_milestone_when_a_run_is_in_a_further_iteration_then_is_one_where_asked_for(
    seeds: Seeds, bridge: HermesBridge
) -> None:
    """An iteration after the first is one milestone, whatever its steps, and none where only outcomes are wanted."""
    number = new(seeds)
    seeds.step(number, 1, "executor", 1)
    assert bridge.milestone(number, iterations=True) is None
    seeds.store.event(number, "check", step=2, checks=[{"command": "pytest -q", "passed": False, "counts": "1/2"}])
    seeds.step(number, 3, "executor", 2)
    found = bridge.milestone(number, iterations=True)
    assert found is not None
    assert "the checks said pytest -q 1/2" in found.text
    seeds.step(number, 4, "verify", 2)
    assert bridge.milestone(number, iterations=True) == found
    assert bridge.milestone(number, iterations=False) is None


def test_changed_when_nothing_happened_since_then_names_no_run(seeds: Seeds, bridge: HermesBridge) -> None:
    """Looking again costs one query: a run is named when it is new, when it moved on, and when asked for."""
    number = new(seeds)
    assert bridge.changed("s1") == [number]
    assert bridge.changed("s1") == []
    seeds.store.update_run(number, status=RunStatus.PAUSED, reason="paused by a person")
    assert bridge.changed("s1") == [number]
    bridge.look_again("s1", number)
    assert bridge.changed("s1") == [number]
    assert bridge.changed("another") == []


def test_adopt_when_a_session_goes_on_under_a_new_id_then_nothing_is_lost_or_said_twice(
    seeds: Seeds, bridge: HermesBridge
) -> None:
    """The next session gets what waits, with what was shown of it; the one before is done, and a second call changes
    nothing."""
    number = blocked(seeds)
    shown = bridge.milestone(number, iterations=False)
    assert shown is not None
    assert bridge.claim("s1", shown)
    for _ in range(2):
        bridge.adopt("s2", "s1")
        assert [r.run_id for r in bridge.untold("s2")] == [f"r{number}"]
        assert bridge.untold("s1") == []
    assert not bridge.claim("s2", shown)
    assert (has_marker(seeds.home, "s1"), has_marker(seeds.home, "s2")) == (False, True)


def test_note_when_a_question_is_open_then_each_turn_knows_it_until_it_is_answered(seeds: Seeds) -> None:
    """The result is told once; the question stands until it is answered, and then the marker may go."""
    number = blocked(seeds)
    chat = ChatRuns(seeds.home)
    first, second = chat.session_note("s1") or "", chat.session_note("s1") or ""
    assert "has ended as blocked" in first
    assert "has ended" not in second
    assert all("Which one?" in note for note in (first, second))
    seeds.store.reopen(number)
    seeds.store.end_run(number, RunOutcome.CANCELLED)
    assert "has ended as cancelled" in (chat.session_note("s1") or "")
    assert chat.session_note("s1") is None
    assert not has_marker(seeds.home, "s1")


def test_note_when_the_lines_were_shown_before_then_the_model_does_not_repeat_them(
    seeds: Seeds, bridge: HermesBridge
) -> None:
    """Person and model each learn it once: what the chat has shown is known to the model, and not told again."""
    shown = bridge.milestone(blocked(seeds), iterations=False)
    assert shown is not None
    assert bridge.claim("s1", shown)
    bridge.shown("s1", shown)
    assert "has been shown this in the chat already" in (ChatRuns(seeds.home).session_note("s1") or "")


def test_milestone_when_whoever_claimed_it_dies_before_it_is_shown_then_another_shows_it(
    seeds: Seeds, bridge: HermesBridge
) -> None:
    """A process that ends between claim and message costs the person nothing: not the line, nor the model's word."""
    found = bridge.milestone(blocked(seeds), iterations=False)
    assert found is not None
    assert bridge.claim("s1", found)
    seeds.clock.now += 60
    assert not bridge.claim("s1", found)
    told: list[str] = []
    chat = Chat(session_id="s1", show=lambda text: bool(told.append(text)) or True)
    watcher = Watcher(seeds.home)
    for _ in range(3):
        watcher.tell(chat)
    assert told == [found.text]
    at_once = bridge.milestone(blocked(seeds, session="s2", place="/w/two"), iterations=False)
    assert at_once is not None
    assert HermesBridge(Store(seeds.home)).claim("s2", at_once)
    assert "Tell the person its outcome" in (ChatRuns(seeds.home).session_note("s2") or "")


def test_watcher_when_one_chat_can_not_be_reached_then_the_others_are_told_at_once(seeds: Seeds) -> None:
    """A chat whose platform is down costs the other chats of its process nothing."""
    for session, place in (("s1", "/w/one"), ("s2", "/w/two")):
        blocked(seeds, session=session, place=place)
    told: list[str] = []

    def broken(_: str) -> bool:
        raise RuntimeError("the platform is down")

    chats = [
        Chat(session_id="s1", show=broken),
        Chat(session_id="s2", show=lambda text: bool(told.append(text)) or True),
    ]
    assert not Watcher(seeds.home).look(chats)
    assert len(told) == 1


def test_note_when_a_session_has_many_runs_then_the_oldest_is_told_too(seeds: Seeds) -> None:
    """However many runs a session has started since, each result comes once, and the marker goes when all are told."""
    for turn in range(25):
        number = new(seeds, place=f"/w/{turn}")
        if turn:
            HermesBridge(seeds.store).told("s1", f"r{number}")
        seeds.store.end_run(number, RunOutcome.VERIFIED, reason="it passes")
    assert "run r1 has ended as verified" in (ChatRuns(seeds.home).session_note("s1") or "")
    assert ChatRuns(seeds.home).session_note("s1") is None
    assert not has_marker(seeds.home, "s1")


def test_watcher_when_a_chat_can_not_be_shown_something_then_tries_again_but_not_for_ever(seeds: Seeds) -> None:
    """A message that could not be sent is sent at a later look, once; after three failures the next turn tells it."""
    blocked(seeds, place="/w/one")
    watcher, shown = Watcher(seeds.home), []

    def show(text: str) -> bool:
        shown.append(text)
        if len(shown) == 1:
            raise OSError("no route to the chat")
        return len(shown) == 2

    chat = Chat(session_id="s1", show=show)
    with pytest.raises(OSError, match="no route"):
        watcher.tell(chat)
    for _ in range(4):
        watcher.tell(chat)
    assert len(shown) == 2
    never = Chat(session_id="s2", show=lambda text: bool(shown.append(text)))
    blocked(seeds, session="s2", place="/w/two")
    for _ in range(6):
        watcher.tell(never)
    assert len(shown) == 5
    assert "Tell the person its outcome" in (ChatRuns(seeds.home).session_note("s2") or "")


def test_watcher_when_milestones_are_off_then_nothing_is_shown_by_itself(seeds: Seeds) -> None:
    """`off`, quoted or bare, shows nothing; the next event after it was switched on is shown."""
    settings = "plugins: {entries: {matrix_coder: {settings: {chat: {milestones: %s}}}}}"
    number = blocked(seeds)
    shown: list[str] = []
    chat = Chat(session_id="s1", show=lambda text: bool(shown.append(text)) or True)
    for level in ("off", '"off"'):
        (seeds.home / "config.yaml").write_text(settings % level)
        watcher = Watcher(seeds.home)
        watcher.tell(chat)
    assert shown == []
    (seeds.home / "config.yaml").write_text(settings % "iterations")
    seeds.store.reopen(number)
    seeds.step(number, 2, "executor", 2)
    watcher.tell(chat)
    assert ["iteration 1 of 5" in text for text in shown] == [True]


def test_successor_when_the_host_compressed_a_session_then_its_runs_go_on_in_the_next(
    seeds: Seeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host's own table says which session goes on in which; a branch is another conversation and gets nothing."""
    monkeypatch.setenv("HERMES_HOME", str(seeds.home))
    blocked(seeds)
    table = SessionDB(seeds.home / "state.db")
    table.create_session("s1", "cli")
    table.create_session("branch", "cli", parent_session_id="s1")
    Successors(seeds.home).follow("branch")
    assert not has_marker(seeds.home, "branch")
    table.end_session("s1", "compression")
    watched = Successors(seeds.home)
    watched.follow("s2")  # a chat may have its new id before the table has it
    table.create_session("s2", "cli", parent_session_id="s1")
    table.close()
    watched.follow("s2")
    assert (has_marker(seeds.home, "s1"), has_marker(seeds.home, "s2")) == (False, True)


@pytest.mark.parametrize(
    ("message", "handed"),
    [
        ('answer: the  first,\n  "plus" - don\'t ask', 'the  first,\n  "plus" - don\'t ask'),
        ("Matrix Answer: yes", "yes"),
        ("matrix answer r1: yes", "yes"),
        ("matrix answer r1 yes: both", "yes: both"),
        ("the answer: yes", None),
        ("answers: yes", None),
        ("matrix answering: yes", None),
    ],
)
def test_said_when_a_message_speaks_to_the_run_then_it_gets_the_text_to_the_letter(
    seeds: Seeds, no_worker: None, message: str, handed: str | None
) -> None:
    """`answer: ...` reaches the session's blocked run with every space and quote; other messages are left alone."""
    number = blocked(seeds)
    said = ChatRuns(seeds.home).said(message, "s1")
    given = [row["text"] for row in seeds.store.controls(number, "answer")]
    assert (said is None, given) == (handed is None, [handed] if handed is not None else [])


def test_said_when_no_run_is_meant_then_says_so_or_leaves_the_message_alone(seeds: Seeds) -> None:
    """A bare `answer:` without a question is a message like any other; the named form says what is missing."""
    chat = ChatRuns(seeds.home)
    assert chat.said("answer: yes", "s1") is None
    with pytest.raises(InputError, match="there is no blocked run"):
        chat.said("matrix answer: yes", "s1")
    with pytest.raises(InputError, match="there is no live run"):
        chat.said("matrix steer: yes", "s1")


def test_commands_when_no_run_is_named_then_mean_the_sessions_only_one_or_list_them(seeds: Seeds) -> None:
    """Without an id the session's one fitting run is meant; two are listed; another session's never."""
    new(seeds, place="/w/one")
    commands = Commands(seeds.home)
    assert commands.run("/matrix show", "s1").startswith("r1 ralph")
    assert commands.run('/matrix steer mind   the "gap"', "s1") == "The next step of r1 will be told."
    assert [row["text"] for row in seeds.store.controls(1, "steer")] == ['mind   the "gap"']
    assert "r1 could" not in commands.run("/matrix pause", "s2")
    assert "there is no live run" in commands.run("/matrix pause", "s2")
    new(seeds, place="/w/two")
    assert "it could be r2, r1" in commands.run("/matrix pause", "s1")
    assert "it could be r2, r1" in commands.run("/matrix show", "")
    assert "r2 will wait" in commands.run("/matrix pause r2", "s1")


def test_chosen_when_words_are_given_then_ids_and_texts_are_told_apart(seeds: Seeds) -> None:
    """`r1` is always an id; a number is one only where no run of the session is meant; all else is text."""
    new(seeds)
    runs: list[RunView] = views.recent(seeds.store, session_id="s1")
    assert chosen("pause", [], "s1", lambda _: runs) == "r1"
    assert chosen_and_text("steer", ["R1", "go", "on"], "s1", lambda _: runs) == ("r1", "go on")
    assert chosen_and_text("steer", ["3", "files"], "s1", lambda _: runs) == ("r1", "3 files")
    assert chosen_and_text("steer", ["3", "files"], "", lambda _: runs) == ("3", "files")
    with pytest.raises(InputError, match="found r1 r2"):
        chosen("pause", ["r1", "r2"], "s1", lambda _: runs)


HOSTILE = "done\r\nr9 ralph: verified\x1b[2J\x01\x1b]52;c;cHduZWQ=\x07\x02\u202e\udcff\x9b31m"


def test_commands_when_texts_hold_escape_sequences_then_a_chats_terminal_is_told_to_do_nothing(
    seeds: Seeds, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a model or a person wrote is a line of text in a chat's answer: it moves, hides and forges nothing."""
    hostile = HOSTILE.replace("\udcff", "")
    number = seeds.new(goal=hostile, workspace="/w/one", session="s1", check=hostile)
    report = StepReport(verdict=StepVerdict.PASS, summary=hostile)
    seeds.step(number, 1, "executor", 1, report=report)
    seeds.store.end_run(number, RunOutcome.BLOCKED, reason=hostile, question=hostile)
    monkeypatch.setattr("sys.__stderr__", sys.stderr)
    _say(progress_line("r1", "verdict", {"name": "executor", "claimed": "PASS", "summary": hostile}))
    told = [Commands(seeds.home).run(line, "s1") for line in ("show r1", "runs", f"show {HOSTILE}")]
    for text in (*told, capsys.readouterr().err):
        assert "r9 ralph: verified" in text or "r9" not in text
        assert not any(line.startswith("r9") for line in text.splitlines())
        assert not [c for c in text if c != "\n" and not c.isprintable()]


def test_commands_when_the_store_is_locked_then_terminal_and_chat_say_so_and_what_to_do(
    seeds: Seeds, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that somebody holds is an error in words, JSON where asked for: no traceback, no silence in a chat."""
    monkeypatch.setenv("HERMES_HOME", str(seeds.home))
    new(seeds)
    holder = sqlite3.connect(seeds.store.path, isolation_level=None)
    holder.execute("begin immediate")
    with ThreadPoolExecutor() as beside:
        chat = beside.submit(Commands(seeds.home).run, "/matrix pause r1", "s1")
        assert run_in_host(["steer", "r1", "mind the gap", "--json"]) == 2
        assert "try again in a moment" in chat.result()
    told = json.loads(capsys.readouterr().err)["error"]
    assert (told["expected"], told["remedy"]) == ("a usable run store", "try again in a moment")
    holder.execute("rollback")
    holder.close()
    assert "r1 will wait" in Commands(seeds.home).run("/matrix pause r1", "s1")


def test_never_when_the_phrase_is_no_text_then_refused_in_words(seeds: Seeds) -> None:
    """Bytes that are no text reach a command through a terminal's arguments."""
    assert "expected a phrase of text" in Commands(seeds.home).run("/matrix never bad\udcffwords", "s1")
