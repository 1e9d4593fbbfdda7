"""The run store as one SQLite file that many processes share."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from matrix_coder.core.errors import (
    RunUnknown,
    StoreError,
    StoreTooNew,
    StoreUntrusted,
    StoreUnwritable,
    WorkspaceBusy,
)
from matrix_coder.core.models import RunOutcome, RunStatus, StepReport, StepStatus, StepVerdict, Usage
from matrix_coder.core.registry import load_workflow
from matrix_coder.core.serde import dump
from matrix_coder.engine import views
from matrix_coder.engine.client import Client
from matrix_coder.engine.paths import marker
from matrix_coder.engine.spawn import WorkerLock, worker_is_alive
from matrix_coder.engine.store import SCHEMA_VERSION, Store
from matrix_coder.testing import ManualClock


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def store(home: Path) -> Store:
    return Store(home)


def fields(workspace: str = "/w/one", **changed: Any) -> dict[str, Any]:
    """The columns of a run as the client fills them in."""
    base = {
        "workflow": "ralph",
        "definition": load_workflow("ralph").source,
        "goal": "make the tests pass",
        "domain": "",
        "workspace": workspace,
        "checks": json.dumps([{"name": "check", "command": "pytest -q"}]),
        "limits": json.dumps({"cap": 5}),
    }
    return base | changed


def create(store: Store, workspace: str = "/w/one", session_id: str = "s1") -> int:
    return store.create_run(fields=fields(workspace), session_id=session_id)


def together(count: int, script: str, *words: str) -> list[str]:
    """The outputs of as many processes, all of which begin at the same moment. Each gets its number and the words."""
    code = f"import sys\nnumber, words = int(sys.argv[1]), sys.argv[2:]\n{script}"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(n), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(count)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    ended = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0] * count, ended
    return [out.strip() for out, _ in ended]


BEGIN = """
from pathlib import Path
from matrix_coder.engine.store import Store
print("ready", flush=True); input()
"""


# -- creating


def test_store_when_it_is_opened_first_then_made_for_the_owner_alone(home: Path) -> None:
    """Directory 0700, files 0600, WAL mode, whatever the process's mask allows."""
    before = os.umask(0)
    try:
        store = Store(home)
        create(store)
        connection = sqlite3.connect(store.path)
        connection.execute("select 1 from runs").fetchall()
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in store.path.parent.iterdir()}
        assert connection.execute("pragma journal_mode").fetchone() == ("wal",)
        connection.close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700
    assert "runs.db" in modes
    assert set(modes.values()) == {0o600}


def test_store_when_its_modes_were_loosened_then_they_are_tightened(store: Store, home: Path) -> None:
    """A store that others could read is closed again."""
    store.path.chmod(0o666)
    store.path.parent.chmod(0o777)
    Store(home)
    assert stat.S_IMODE(store.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(store.path.parent.stat().st_mode) == 0o700


def test_store_when_many_processes_open_it_first_then_all_of_them_can(home: Path) -> None:
    """Making the store is no race."""
    script = BEGIN + "store = Store(Path(words[0])); print(len(store.read('select * from meta')))"
    assert together(6, script, str(home)) == ["1"] * 6


def test_store_when_opened_again_then_what_was_written_is_there(store: Store, home: Path) -> None:
    """A run outlives the process that started it."""
    number = create(store)
    assert Store(home).run_row(number)["goal"] == "make the tests pass"


# -- one live run for each workspace


def test_create_when_two_processes_start_at_once_in_one_workspace_then_one_wins(store: Store, home: Path) -> None:
    """Exactly one gets the run; the other is told which one holds the workspace."""
    script = (
        BEGIN
        + f"fields = {fields()!r}\n"
        + """
from matrix_coder.core.errors import WorkspaceBusy
try:
    print("run", Store(Path(words[0])).create_run(fields=fields, session_id=f"s{number}"))
except WorkspaceBusy as busy:
    print("busy", busy)
"""
    )
    told = sorted(together(4, script, str(home)))
    assert [t.split()[0] for t in told] == ["busy", "busy", "busy", "run"]
    assert told[0].endswith("found r1 at work there; wait for it, or stop it with `matrix-coder cancel r1`")
    assert len(store.read("select * from runs")) == len(store.read("select * from sessions")) == 1


def test_create_when_the_workspace_is_held_then_nothing_is_left_behind(store: Store) -> None:
    """A refused start leaves no run, session or event."""
    create(store)
    with pytest.raises(WorkspaceBusy) as refused:
        create(store, session_id="s2")
    assert refused.value.exit_code == 2
    counts = [len(store.read(f"select * from {t}")) for t in ("runs", "sessions", "events")]
    assert counts == [1, 1, 1]


def test_create_when_the_run_has_ended_then_the_workspace_is_free_and_the_number_new(store: Store) -> None:
    """Only a live run holds its workspace; another workspace is always free; numbers are never used again."""
    first = create(store)
    assert create(store, "/w/two") == first + 1
    store.end_run(first, RunOutcome.CANCELLED)
    assert create(store) == first + 2


def test_create_when_no_session_started_it_then_it_belongs_to_none(store: Store) -> None:
    """A run from the command line is in no session's list."""
    number = create(store, session_id="")
    assert store.read("select * from sessions") == []
    assert [r.run_id for r in views.recent(store)] == [f"r{number}"]
    assert views.recent(store, session_id="s1") == []


# -- an ended run


def test_end_when_it_is_done_twice_then_the_first_outcome_stays(home: Path) -> None:
    """A run ends in exactly one outcome, at one time, with one event."""
    clock = ManualClock()
    store = Store(home, clock=clock)
    number = create(store)
    assert store.end_run(number, RunOutcome.VERIFIED, reason="proof") is True
    ended = dict(store.run_row(number))
    clock.advance(60.0)
    assert store.end_run(number, RunOutcome.FAILED, reason="late") is False
    store.update_run(number, status=RunStatus.RUNNING, reason="later", goal="other")
    assert dict(store.run_row(number)) == ended
    assert [e["kind"] for e in store.events(number)] == ["queued", "ended"]


def test_end_when_many_processes_end_it_then_one_of_them_did(store: Store, home: Path) -> None:
    """Cancel and success can come at the same moment; only one of them is the outcome."""
    number = create(store)
    script = (
        BEGIN
        + """
from matrix_coder.core.models import RunOutcome
outcome = list(RunOutcome)[number]
print(outcome if Store(Path(words[0])).end_run(1, outcome) else "-")
"""
    )
    told = together(4, script, str(home))
    (winner,) = [t for t in told if t != "-"]
    assert store.run_row(number)["outcome"] == winner
    assert [json.loads(e["data"])["outcome"] for e in store.events(number) if e["kind"] == "ended"] == [winner]


def test_result_when_the_run_is_live_or_unknown_then_an_error_that_says_so(store: Store) -> None:
    """There is no result before the end, and none of a run that nobody started."""
    number = create(store)
    with pytest.raises(ValueError, match="has not ended"):
        views.result(store, number)
    for look in (lambda: views.result(store, 99), lambda: store.run_row(0), lambda: store.control(99, "cancel")):
        with pytest.raises(RunUnknown, match="matrix-coder runs"):
            look()


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("r8", 8),
        ("8", 8),
        (" r8 ", 8),
        ("R8", 8),
        ("", 0),
        ("r", 0),
        ("rr8", 0),
        ("r-1", 0),
        ("٨", 0),
        ("9" * 30, 0),
        ("r8; --", 0),
    ],
)
def test_run_number_when_a_person_types_anything_then_a_number_or_none(text: str, number: int) -> None:
    """An id that is none is the run that nobody has."""
    assert views.run_number(text) == number


# -- steps


def step(store: Store, number: int, index: int = 1) -> sqlite3.Row:
    return store.open_step(number, index, step="executor", role="executor", iteration=1)


def test_step_when_it_was_cut_off_then_it_opens_as_the_next_attempt(store: Store) -> None:
    """A step without a result is tried again and counts its attempts; its start stays."""
    number = create(store)
    assert [step(store, number)["attempt"] for _ in range(3)] == [1, 2, 3]
    kinds = [e["kind"] for e in store.events(number)]
    assert kinds == ["queued", "step", "attempt", "attempt"]


def test_step_when_it_has_its_result_then_opening_it_again_changes_nothing(store: Store) -> None:
    """A finished step is never repeated."""
    number = create(store)
    step(store, number)
    report = StepReport(verdict=StepVerdict.PASS, summary="done")
    store.update_step(number, 1, status=StepStatus.DONE, result="{}", report=json.dumps(dump(report)))
    row = step(store, number)
    assert (row["attempt"], row["status"], row["result"]) == (1, "done", "{}")
    (shown,) = views.view(store, number).steps
    assert shown.report == report


# -- events and controls


def test_events_when_asked_after_one_then_the_later_ones_in_order(store: Store) -> None:
    """Nobody sees an event twice or out of order, and other runs' events are not among them."""
    number, other = create(store), create(store, "/w/two")
    for n in range(3):
        store.event(number, "tool", n=n, text="ü\n")
        store.event(other, "tool", n=100 + n)
    events = store.events(number)
    assert [e["id"] for e in events] == sorted(e["id"] for e in events)
    later = store.events(number, after=events[1]["id"])
    assert [json.loads(e["data"]) for e in later] == [{"n": 1, "text": "ü\n"}, {"n": 2, "text": "ü\n"}]
    assert store.events(number, after=events[-1]["id"]) == []


def test_events_when_many_processes_write_at_once_then_none_is_lost(store: Store, home: Path) -> None:
    """Writers wait for each other; every event is there once, each writer's in its own order."""
    number = create(store)
    script = (
        BEGIN
        + """
store = Store(Path(words[0]))
for n in range(25):
    store.event(1, "tool", writer=number, n=n)
    store.update_run(1, reason=f"{number}/{n}")
"""
    )
    together(4, script, str(home))
    told = [json.loads(e["data"]) for e in store.events(number) if e["kind"] == "tool"]
    assert len(told) == 100
    for writer in range(4):
        assert [t["n"] for t in told if t["writer"] == writer] == list(range(25))


def test_transaction_when_its_body_fails_then_nothing_of_it_stays(store: Store) -> None:
    """All or nothing."""
    number = create(store)
    with pytest.raises(RuntimeError), store.transaction() as db:
        db.execute("update runs set goal = 'other' where id = ?", (number,))
        raise RuntimeError
    assert store.run_row(number)["goal"] == "make the tests pass"


def test_cancel_when_it_was_asked_for_once_then_it_stays_asked_for(store: Store, home: Path) -> None:
    """A cancel is a fact in the store, seen by every process, and only by its run."""
    number, other = create(store), create(store, "/w/two")
    store.control(number, "steer", "left")
    assert not store.cancelled(number)
    store.control(number, "cancel", "enough")
    assert Store(home).cancelled(number)
    assert not store.cancelled(other)


# -- a store that can't be used


def test_store_when_a_newer_version_wrote_it_then_refused_and_untouched(store: Store, home: Path) -> None:
    """One line, exit code 2, and not a byte is changed."""
    with store.transaction() as db:
        db.execute("update meta set value = ? where key = 'schema_version'", (str(SCHEMA_VERSION + 1),))
    before = store.read("select * from sqlite_master"), store.read("select * from meta")
    with pytest.raises(StoreTooNew, match="upgrade matrix-coder") as refused:
        Client(home)
    assert refused.value.exit_code == 2
    after = store.read("select * from sqlite_master"), store.read("select * from meta")
    assert [tuple(r) for rows in before for r in rows] == [tuple(r) for rows in after for r in rows]


@pytest.mark.parametrize("version", ["", "one", "-1", "1.5", "²"])
def test_store_when_its_version_is_no_number_then_untrusted(store: Store, home: Path, version: str) -> None:
    """What no release ever wrote is not guessed at."""
    with store.transaction() as db:
        db.execute("update meta set value = ? where key = 'schema_version'", (version,))
    with pytest.raises(StoreUntrusted):
        Store(home)


@pytest.mark.parametrize("content", [b"no database" * 500, b"SQLite format 3\0" + b"\xff" * 4_080])
def test_store_when_the_file_is_no_database_then_untrusted_and_left_as_it_is(home: Path, content: bytes) -> None:
    """A foreign file in the store's place is named and not overwritten."""
    path = home / "matrix_coder/runs.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(StoreUntrusted, match="move the file away") as refused:
        Store(home)
    assert str(path) in str(refused.value)
    assert path.read_bytes() == content


def below_a_file(home: Path) -> Path:
    home.write_text("a file")
    return home / "below"


def a_file_itself(home: Path) -> Path:
    home.write_text("a file")
    return home


def a_dead_link(home: Path) -> Path:
    home.mkdir()
    (home / "matrix_coder").symlink_to(home / "nowhere/at/all")
    return home


def a_folder_for_the_file(home: Path) -> Path:
    (home / "matrix_coder/runs.db").mkdir(parents=True)
    return home


def of_the_kernel(home: Path) -> Path:
    return Path("/proc/matrix-home") if Path("/proc/self").exists() else below_a_file(home)


@pytest.mark.parametrize("where", [below_a_file, a_file_itself, a_dead_link, a_folder_for_the_file, of_the_kernel])
def test_store_when_the_home_cannot_be_written_then_one_line_and_exit_2(home: Path, where: Any) -> None:
    """Whoever runs it, root too: a place that can't hold a store is told in one line that says what to do."""
    with pytest.raises(StoreError, match="writable") as refused:
        Client(where(home))
    assert isinstance(refused.value, StoreUnwritable)
    assert refused.value.exit_code == 2
    assert "\n" not in str(refused.value)


def test_client_when_a_start_is_refused_then_nothing_is_left_behind(home: Path) -> None:
    """A look at runs that don't exist starts nothing and writes nothing but the empty store."""
    client = Client(home)
    with pytest.raises(RunUnknown):
        client.show("r1")
    with pytest.raises(RunUnknown):
        client.cancel("nonsense")
    assert client.runs() == []
    assert {p.name for p in (home / "matrix_coder").iterdir()} <= {"runs.db", "runs.db-wal", "runs.db-shm"}


# -- the worker's lock


def test_lock_when_a_process_holds_it_then_no_other_gets_it_until_it_dies(home: Path) -> None:
    """One worker for each store; the kernel frees the lock with the process, however that ends."""
    script = (
        "import sys, time; from pathlib import Path; from matrix_coder.engine.spawn import WorkerLock;"
        "lock = WorkerLock(Path(sys.argv[1])); print(lock.acquire(), flush=True); time.sleep(300)"
    )
    holder = subprocess.Popen([sys.executable, "-c", script, str(home)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "True\n"
    assert WorkerLock(home).acquire() is False
    assert worker_is_alive(home) is True
    holder.kill()
    holder.communicate()
    assert worker_is_alive(home) is False
    mine = WorkerLock(home)
    assert mine.acquire() is True
    mine.release()
    assert worker_is_alive(home) is False


def test_used_when_steps_and_checks_took_something_then_is_their_sum(store: Store) -> None:
    """Tokens, seconds and money of all steps, the checks' seconds besides; nothing for a run without steps."""
    number = create(store)
    assert store.used(number) == Usage()
    for index in (1, 2, 3):
        store.open_step(number, index, step="executor", role="executor", iteration=1)
    step = Usage(input_tokens=100, output_tokens=20, seconds=1.5, cost_usd=0.25, unpriced_tokens=30)
    for index in (1, 2):
        store.update_step(number, index, usage=json.dumps(dump(step)))
    store.add_check_seconds(number, 2.0)
    assert store.used(number) == step + step + Usage(seconds=2.0)
    with pytest.raises(RunUnknown):
        store.used(99)


def test_used_when_steps_end_one_after_the_other_then_each_is_counted_once_and_a_live_one_as_it_grows(
    store: Store,
) -> None:
    """However often it is asked, and whatever was counted before: the sum is that of the rows."""
    number = create(store)
    whole = Usage()
    for index in range(1, 6):
        store.open_step(number, index, step="executor", role="executor", iteration=1)
        for tokens in (10, 25):
            now = Usage(input_tokens=tokens * index, output_tokens=1, seconds=0.5)
            store.update_step(number, index, usage=json.dumps(dump(now)))
            assert store.used(number) == whole + now
        store.end_step(number, index, {}, result="{}", ended_at=1.0)
        whole += now
        assert store.used(number) == whole == Store(store.home).used(number)


def test_used_when_an_older_version_wrote_a_step_then_its_tokens_have_no_price(store: Store) -> None:
    """What was used before money was counted is never taken for free, neither in the sum nor in the step."""
    number = create(store)
    store.open_step(number, 1, step="executor", role="executor", iteration=1)
    store.update_step(number, 1, usage=json.dumps({"input_tokens": 100, "output_tokens": 20, "seconds": 1.5}))
    before = Usage(input_tokens=100, output_tokens=20, seconds=1.5, unpriced_tokens=120)
    assert store.used(number) == before
    assert views.view(store, number).usage == before


def test_store_when_a_process_is_killed_then_what_it_wrote_is_there(store: Store, home: Path) -> None:
    """What is not forced to the disk at once still outlives the process that wrote it."""
    number = create(store)
    script = (
        "import os, signal\nfrom pathlib import Path\nfrom matrix_coder.engine.store import Store\n"
        "store = Store(Path(sys.argv[1]))\n"
        "with store.kept_open():\n"
        "    store.open_step(1, 1, step='executor', role='executor', iteration=1)\n"
        "    store.event(1, 'seen')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", f"import sys\n{script}", str(home)], check=False)
    assert ended.returncode == -9
    assert [r["kind"] for r in store.events(number)][-1] == "seen"
    assert len(store.step_rows(number)) == 1


def test_kept_open_when_it_lasts_then_the_log_is_not_folded_away_by_others(store: Store) -> None:
    """A connection that closes beside a kept one leaves the log where it is; afterwards the last one takes it away."""
    log = store.path.with_name(f"{store.path.name}-wal")
    with store.kept_open():
        create(store)
        assert log.stat().st_size > 0
    assert not log.exists()


def test_kept_open_when_a_call_is_made_inside_another_then_both_hold(store: Store) -> None:
    """A transaction that reads through the store sees what was committed, and is not ended by that read."""
    number = create(store)
    with store.kept_open(), store.transaction() as db:
        db.execute("update runs set iteration = 3 where id = ?", (number,))
        assert store.run_row(number)["iteration"] == 0
    assert store.run_row(number)["iteration"] == 3


def test_kept_open_when_the_file_is_put_away_and_back_then_the_one_that_is_there_is_used(
    store: Store, tmp_path: Path
) -> None:
    """Nothing is written to a store that is gone; what is there again is used as it is."""
    number = create(store)
    with store.kept_open():
        with store.transaction():
            pass
        copy = tmp_path / "copy.db"
        with sqlite3.connect(store.path) as source, sqlite3.connect(copy) as target:
            source.backup(target)
        for file in store.path.parent.glob("runs.db*"):
            file.rename(tmp_path / file.name)
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            store.event(number, "lost")
        store.path.unlink()
        copy.rename(store.path)
        store.event(number, "seen")
    assert [r["kind"] for r in store.events(number)] == ["queued", "seen"]


def test_kept_open_when_a_call_fails_then_the_next_one_works(store: Store) -> None:
    """A transaction that broke leaves nothing locked behind."""
    number = create(store)
    with store.kept_open():
        with pytest.raises(ZeroDivisionError), store.transaction() as db:
            db.execute("update runs set iteration = 3 where id = ?", (number,))
            raise ZeroDivisionError
        store.event(number, "seen")
        assert store.run_row(number)["iteration"] == 0


def test_steps_before_when_a_run_is_long_then_only_the_last_own_ones_and_the_last_evidence(store: Store) -> None:
    """What a step is told of the ones before it: the last few, no units; the checks' last word, however long ago."""
    number = create(store)
    said = [{"name": "check", "command": "pytest -q", "exit_code": 1, "duration_s": 1.0, "tree": "t", "cases": {}}]
    store.update_run(number, baseline=json.dumps([said[0] | {"tree": "start"}]))
    for index in range(1, 9):
        name = "units/a" if index == 7 else "executor"
        store.open_step(number, index, step=name, role="executor", iteration=1)
    assert [e.tree for e in views.evidence_before(store, number, 8)] == ["start"]
    store.update_step(number, 2, evidence=json.dumps(said))
    store.update_step(number, 7, evidence=json.dumps([said[0] | {"tree": "a unit's"}]))
    assert [s.number for s in views.steps_before(store, number, 8, last=3)] == [4, 5, 6]
    assert [e.tree for e in views.evidence_before(store, number, 8)] == ["t"]
    assert [e.tree for e in views.evidence_before(store, number, 2)] == ["start"]


def test_store_when_it_was_made_before_a_table_then_opens_and_has_it(home: Path) -> None:
    """A store of an earlier release opens, keeps what it holds, and gets the table that it lacks."""
    before = Store(home)
    number = create(before)
    with before.transaction() as db:
        db.execute("drop table milestones")
    after = Store(home)
    assert after.run_row(number)["goal"] == "make the tests pass"
    assert after.read("select * from milestones") == []


def test_reopen_when_a_second_asks_for_it_then_no_later_step_is_done_again(store: Store) -> None:
    """Of two answers at once one takes the run on, and only the step that had asked is marked."""
    number = create(store)
    store.open_step(number, 1, step="executor", role="executor", iteration=1)
    store.end_step(number, 1, {}, result="{}", ended_at=1.0)
    assert store.end_run(number, RunOutcome.BLOCKED)
    assert store.reopen(number, redo=True)
    store.open_step(number, 2, step="executor", role="executor", iteration=1)
    assert not store.reopen(number, redo=True)
    assert [row["redo"] for row in store.step_rows(number)] == [1, 0]


def test_run_when_reopened_then_its_sessions_have_something_to_be_told(store: Store) -> None:
    """A run that goes on, from whatever surface, is watched for by its session again."""
    number = create(store)
    assert store.end_run(number, RunOutcome.BLOCKED)
    assert not marker(store.home, "s1").exists()
    assert store.reopen(number)
    assert marker(store.home, "s1").exists()


def test_kept_open_when_it_ends_while_other_threads_read_then_none_of_them_fails(store: Store) -> None:
    """A worker that is told to leave does not break the runs whose threads are at work in its store."""
    failed: list[Exception] = []
    over = threading.Event()

    def read() -> None:
        while not over.is_set():
            try:
                store.read("select * from meta")
            except AttributeError as error:
                failed.append(error)

    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=read) for _ in range(4)]
    try:
        for thread in threads:
            thread.start()
        for _ in range(4_000):
            with store.kept_open():
                pass
    finally:
        sys.setswitchinterval(usual)
        over.set()
        for thread in threads:
            thread.join()
    assert failed == []
