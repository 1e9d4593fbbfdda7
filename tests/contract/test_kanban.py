"""The mirror on the host's real Kanban board: its functions, its dispatcher, its page's edits, its command."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

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
)
from matrix_coder.hermes.kanban import CardRecord, KanbanMirror, SyncReport
from matrix_coder.hermes.kanban_file import keep_in_use
from matrix_coder.hermes.kanban_thread import MirrorThread, SpecialistThread

CLEAN = SyncReport()
HERMES = Path(sys.executable).with_name("hermes")


class MemoryBook:
    """The mapping of cards, kept in memory."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[int, CardRecord]] = {}

    def cards_of(self, run_id: str) -> dict[int, CardRecord]:
        return dict(self.kept.get(run_id, {}))

    def record(self, run_id: str, cards: Mapping[int, CardRecord]) -> None:
        self.kept.setdefault(run_id, {}).update(cards)


class Board:
    """The real board of a temporary Hermes home, seen and edited as other programs do it."""

    def __init__(self, home: Path) -> None:
        from hermes_cli import kanban_db

        self.home, self.kb = home, kanban_db
        with kanban_db.connect_closing():
            pass

    def rows(self, sql: str, *values: object) -> list[dict[str, Any]]:
        with contextlib.closing(sqlite3.connect(self.home / "kanban.db")) as db:
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute(sql, values)]

    def write(self, sql: str, *values: object) -> None:
        with contextlib.closing(sqlite3.connect(self.home / "kanban.db")) as db:
            db.execute(sql, values)
            db.commit()

    def card(self, key: str) -> dict[str, Any]:
        (row,) = self.rows("select * from tasks where idempotency_key = ?", key)
        return row

    def statuses(self) -> dict[str, str]:
        rows = self.rows("select idempotency_key, status from tasks order by idempotency_key")
        return {row["idempotency_key"]: row["status"] for row in rows}

    def comments(self, key: str) -> list[str]:
        card = self.card(key)["id"]
        return [r["body"] for r in self.rows("select body from task_comments where task_id = ? order by id", card)]

    def drag(self, key: str, status: str) -> None:
        """What the host's page does when a person drags the card to a column."""
        from plugins.kanban.dashboard import plugin_api

        plugin_api.update_task(self.card(key)["id"], plugin_api.UpdateTaskBody(status=status), board=None)

    def hermes(self, *words: str) -> str:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "HERMES_HOME": str(self.home)}
        done = subprocess.run([HERMES, *words], env=env, capture_output=True, text=True, check=True)
        return done.stdout


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    for name in [n for n in os.environ if n.startswith("HERMES_KANBAN")]:
        monkeypatch.delenv(name)
    home = tmp_path / "hermes"
    home.mkdir()
    monkeypatch.setenv("HERMES_HOME", str(home))
    return Board(home)


@pytest.fixture
def mirror() -> KanbanMirror:
    return KanbanMirror(MemoryBook())


def evidence(passed: int, of: int = 15, **fields: Any) -> Evidence:
    cases = {f"test_calc.py::test_{n}": "passed" if n < passed else "failed" for n in range(of)}
    base: dict[str, Any] = {"name": "pytest", "command": "pytest -q", "duration_s": 3.2, "tree": "a" * 40}
    tail = f"FAILED test_calc.py::test_14 - assert -1 == 5\n{passed} passed, {of - passed} failed in 3.1s"
    return Evidence(**(base | {"exit_code": int(passed < of), "cases": cases, "tail": tail} | fields))


def report(verdict: StepVerdict = StepVerdict.PASS, summary: str = "mended add()", **fields: Any) -> StepReport:
    return StepReport(verdict=verdict, summary=summary, **fields)


def step(number: int, role: str, status: StepStatus = StepStatus.DONE, **fields: Any) -> StepView:
    told = {} if status is StepStatus.RUNNING else {"report": report(), "ended_at": time.time() + 4}
    iteration = (number + 1) // 2
    base: dict[str, Any] = {"iteration": iteration, "started_at": time.time(), "child_session": f"s{number}"}
    return StepView(number=number, role=role, status=status, **(base | told | fields))


def run(*steps: StepView, **fields: Any) -> RunView:
    base: dict[str, Any] = {
        "run_id": "r8",
        "workflow": "ralph",
        "goal": "make the tests pass",
        "workspace": "/tmp",
        "session_id": "20261130_101010_abcdef",
        "checks": ("pytest -q",),
        "status": RunStatus.RUNNING,
        "iteration": max((s.iteration for s in steps), default=0),
        "created_at": time.time(),
    }
    return RunView(steps=steps, **(base | fields))


def ended(outcome: RunOutcome, *steps: StepView, **fields: Any) -> RunView:
    return run(*steps, status=RunStatus.ENDED, outcome=outcome, ended_at=time.time(), **fields)


def ralph() -> Iterator[RunView]:
    """The whole life of a run of two rounds, state by state."""
    executor = step(1, "executor")
    red = step(2, "verify", evidence=(evidence(13),))
    again = step(3, "executor")
    green = step(4, "verify", report=report(summary="all 15 pass"), evidence=(evidence(15),))
    done = (executor, red, again, green)
    yield run(status=RunStatus.QUEUED)
    for n, one in enumerate(done):
        yield run(*done[:n], step(one.number, one.role, StepStatus.RUNNING))
        yield run(*done[: n + 1])
    yield ended(RunOutcome.VERIFIED, *done, reason="pytest -q: 13/15 before, 15/15 now")


# The life of a run ------------------------------------------------------------------------------------


def test_life_of_a_ralph_run_when_synced_at_each_state_then_hermes_kanban_tells_it(
    board: Board, mirror: KanbanMirror
) -> None:
    """A ralph run of two rounds reads back from the host's own commands as it happened."""
    for state in ralph():
        assert mirror.sync(state).problems == ()
        live = {s.number for s in state.steps if s.status is StepStatus.RUNNING}
        shown = {key for key, status in board.statuses().items() if status == "running"}
        assert shown - {"matrix:r8:0"} == {f"matrix:r8:{n}" for n in live}
        assert mirror.sync(state) == CLEAN
    lines = board.hermes("kanban", "list")
    for title in (
        "r8 ralph · verified · make the tests pass",
        "r8 · 1/5 executor · says PASS",
        "r8 · 1/5 verify · FAIL 13/15 (claims PASS)",
        "r8 · 2/5 executor · says PASS",
        "r8 · 2/5 verify · PASS 15/15",
    ):
        assert sum(title in line and " done " in line and "[matrix-r8]" in line for line in lines.splitlines()) == 1
    shown = board.hermes("kanban", "show", board.card("matrix:r8:0")["id"])
    assert "Verified: yes, 15/15 (pytest -q)" in shown
    assert "#2 round 1 verify · FAIL 13/15 (claims PASS) · 4 s" in shown
    assert all(board.card(f"matrix:r8:{n}")["id"] in shown for n in range(1, 5))
    assert "Diagnostics" not in shown
    red = board.hermes("kanban", "show", board.card("matrix:r8:2")["id"])
    assert "claimed: PASS by verify" in red
    assert "verified: FAIL 13/15 · pytest -q · 3.2 s" in red
    assert "Claimed: PASS by verify\n- Verified: no, 13/15 (pytest -q)" in red


def test_board_of_a_run_when_read_by_the_dashboard_then_progress_and_facts_are_there(
    board: Board, mirror: KanbanMirror
) -> None:
    """The host's page counts the steps that ended and shows flat facts under each."""
    from plugins.kanban.dashboard import plugin_api

    *_, before_last, _last = ralph()
    mirror.sync(before_last)
    columns = plugin_api.get_board(
        tenant="matrix-r8", include_archived=False, board=None, workflow_template_id=None, current_step_key=None
    )["columns"]
    cards = {c["title"]: c for column in columns for c in column["tasks"]}
    assert cards["r8 ralph · make the tests pass"]["progress"] == {"done": 4, "total": 4}
    assert cards["r8 ralph · make the tests pass"]["status"] == "running"
    verify = plugin_api.get_task(
        cards["r8 · 2/5 verify · PASS 15/15"]["id"], board=None, run_state_type=None, run_state_name=None
    )
    facts = verify["runs"][0]["metadata"]
    assert {"claimed": "PASS", "verified": "yes", "check": "pytest -q", "tests": "15/15"}.items() <= facts.items()
    assert (facts["exit_code"], facts["child_session"]) == (0, "s4")


def test_step_card_when_its_step_starts_then_it_is_open_under_the_run_before_any_result(
    board: Board, mirror: KanbanMirror
) -> None:
    """A step that works is in the running column, linked to its run, claimed by us for days, without a pid."""
    mirror.sync(run(step(1, "executor", StepStatus.RUNNING)))
    card = board.card("matrix:r8:1")
    assert (card["status"], card["assignee"], card["worker_pid"]) == ("running", "matrix-coder", None)
    assert card["claim_lock"] == "matrix_coder:r8:1:1"
    assert card["claim_expires"] > time.time() + 7 * 86_400
    assert board.rows("select * from task_links") == [
        {"parent_id": board.card("matrix:r8:0")["id"], "child_id": card["id"]}
    ]


@pytest.mark.parametrize(
    ("outcome", "last", "label"),
    [
        (RunOutcome.CANCELLED, StepStatus.CANCELLED, "CANCELLED"),
        (RunOutcome.FAILED, StepStatus.FAILED, "ERROR"),
        (RunOutcome.CAP_REACHED, StepStatus.DONE, "says PASS"),
    ],
)
def test_cards_when_a_run_ends_without_a_pass_then_they_are_closed_and_say_so(
    board: Board, mirror: KanbanMirror, outcome: RunOutcome, last: StepStatus, label: str
) -> None:
    """The board has one closed column: the outcome stands in the title, never only in the column."""
    mirror.sync(run(step(1, "executor", StepStatus.RUNNING)))
    mirror.sync(ended(outcome, step(1, "executor", last, note="the provider answered 401"), reason="why"))
    assert set(board.statuses().values()) == {"done"}
    assert board.card("matrix:r8:0")["title"] == f"r8 ralph · {outcome} · make the tests pass"
    assert board.card("matrix:r8:1")["title"] == f"r8 · 1/5 executor · {label}"
    assert board.card("matrix:r8:0")["result"] == f"{outcome}: why"


def test_step_left_running_when_its_run_ended_then_its_card_is_closed_as_unfinished(
    board: Board, mirror: KanbanMirror
) -> None:
    """No card stays in the running column after its run."""
    mirror.sync(ended(RunOutcome.CANCELLED, step(1, "executor", StepStatus.RUNNING)))
    assert board.card("matrix:r8:1")["status"] == "done"
    assert board.card("matrix:r8:1")["result"] == "Did not finish: the run ended first"


def test_blocked_run_when_synced_then_its_question_is_on_both_cards(board: Board, mirror: KanbanMirror) -> None:
    """Only what waits for a person is in the blocked column, and the card says what is asked and how to answer."""
    question = "Which of the two databases may I drop?"
    asked = step(1, "plan", StepStatus.BLOCKED, report=report(StepVerdict.BLOCKED, open_questions=(question,)))
    mirror.sync(run(step(1, "plan", StepStatus.RUNNING)))
    mirror.sync(ended(RunOutcome.BLOCKED, asked, question=question))
    assert board.statuses() == {"matrix:r8:0": "blocked", "matrix:r8:1": "blocked"}
    for key in ("matrix:r8:0", "matrix:r8:1"):
        assert board.card(key)["body"].startswith(f"Question: {question}\n")
    assert "/matrix answer r8 <text>" in board.comments("matrix:r8:0")[-1]
    shown = board.hermes("kanban", "show", board.card("matrix:r8:0")["id"])
    assert f"→ Question: {question}" in shown


def test_blocked_run_when_answered_and_blocked_again_and_again_then_it_never_goes_to_triage(
    board: Board, mirror: KanbanMirror
) -> None:
    """A card in triage would be handed to a model by the host: blocking a run four times keeps it ours."""
    steps: tuple[StepView, ...] = ()
    for number in range(1, 5):
        question = f"question {number}?"
        mirror.sync(run(*steps, step(number, "plan", StepStatus.RUNNING)))
        assert board.statuses()["matrix:r8:0"] == "running"
        steps = (*steps, step(number, "plan", StepStatus.BLOCKED))
        assert mirror.sync(ended(RunOutcome.BLOCKED, *steps, question=question)).problems == ()
        assert board.statuses()["matrix:r8:0"] == "blocked"
    mirror.sync(ended(RunOutcome.VERIFIED, *steps))
    assert set(board.statuses().values()) == {"done"}


def test_second_attempt_when_the_first_died_then_the_card_keeps_both_apart(board: Board, mirror: KanbanMirror) -> None:
    """Attempts of one step are runs of one card, and the title says which one this is."""
    mirror.sync(run(step(1, "executor", StepStatus.RUNNING)))
    mirror.sync(run(step(1, "executor", StepStatus.RUNNING, attempt=2)))
    assert board.card("matrix:r8:1")["title"] == "r8 · 1/5 executor · try 2"
    assert board.card("matrix:r8:1")["status"] == "running"
    mirror.sync(run(step(1, "executor", attempt=2)))
    assert board.card("matrix:r8:1")["title"] == "r8 · 1/5 executor · says PASS · try 2"
    runs = board.rows("select outcome from task_runs where task_id = ? order by id", board.card("matrix:r8:1")["id"])
    assert [r["outcome"] for r in runs] == ["reclaimed", "completed"]
    assert len(board.rows("select * from task_links")) == 1


def test_whole_output_of_a_check_when_it_is_longer_than_its_comment_then_it_hangs_on_the_card(
    board: Board, mirror: KanbanMirror, tmp_path: Path
) -> None:
    """What a comment can't show is one click away, once."""
    output = tmp_path / "out.txt"
    output.write_text("line\n" * 5_000)
    checked = step(2, "verify", evidence=(evidence(13, output_path=str(output)),))
    mirror.sync(run(step(1, "executor"), checked))
    assert mirror.sync(run(step(1, "executor"), checked)) == CLEAN
    (file,) = board.rows("select * from task_attachments")
    assert (file["filename"], Path(file["stored_path"]).read_text()) == ("r8-2-try1-check1.txt", output.read_text())


# Outages ----------------------------------------------------------------------------------------------


def test_run_when_the_board_was_away_for_all_of_it_then_one_sync_shows_it_whole(
    board: Board, mirror: KanbanMirror
) -> None:
    """A board that comes late gets every card, closed, with its evidence, and nothing twice."""
    *_, last = ralph()
    assert mirror.sync(last) == SyncReport(created=5)
    assert mirror.sync(last) == CLEAN
    assert set(board.statuses().values()) == {"done"}
    assert len(board.comments("matrix:r8:2")) == 2


def test_sync_when_the_database_is_locked_then_it_gives_up_soon_and_catches_up_later(
    board: Board, mirror: KanbanMirror
) -> None:
    """A stuck writer costs a sync seconds, not the host's twelve minutes, and no card."""
    state = run(step(1, "executor", StepStatus.RUNNING))
    with contextlib.closing(sqlite3.connect(board.home / "kanban.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        started = time.monotonic()
        (problem,) = mirror.sync(state).problems
        took = time.monotonic() - started
        other.execute("rollback")
    assert "locked" in problem
    assert took < 30, "far from the 720 s that the host would wait"
    assert mirror.sync(state) == SyncReport(created=2)
    assert "HERMES_KANBAN_BUSY_TIMEOUT_MS" not in os.environ


def test_sync_when_the_board_is_garbage_then_it_reports_and_raises_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mirror: KanbanMirror
) -> None:
    """A damaged file is a problem of the board, not of the run."""
    home = tmp_path / "damaged"
    home.mkdir()
    (home / "kanban.db").write_bytes(b"not a database" * 500)
    monkeypatch.setenv("HERMES_HOME", str(home))
    assert len(mirror.sync(run()).problems) == 1


def test_sync_when_the_named_board_is_missing_then_the_problem_says_how_to_make_it(board: Board) -> None:
    """The person's own board is used once it is there; nothing lands on another meanwhile."""
    mirror = KanbanMirror(MemoryBook(), board="matrix")
    (problem,) = mirror.sync(run()).problems
    assert "hermes kanban boards create matrix" in problem
    board.kb.create_board("matrix")
    assert mirror.sync(run()) == SyncReport(created=1)
    assert board.statuses() == {}


def test_run_when_the_person_switches_boards_then_its_cards_stay_where_they_began(
    board: Board, mirror: KanbanMirror
) -> None:
    """A run lives on the board that was current when it started."""
    mirror.sync(run())
    board.kb.create_board("other")
    board.kb.set_current_board("other")
    mirror.sync(run(step(1, "executor", StepStatus.RUNNING)))
    assert len(board.statuses()) == 2


DYING = """
import os, sys, time
sys.path.insert(0, {tests!r})
from test_kanban import MemoryBook, KanbanMirror, run, step, StepStatus
class Dying(MemoryBook):
    calls = 0
    def record(self, run_id, cards):
        self.calls += 1
        if self.calls > {die_at}:
            os._exit(9)
        super().record(run_id, cards)
KanbanMirror(Dying()).sync(run(step(1, "executor"), step(2, "verify", StepStatus.RUNNING)))
"""


@pytest.mark.parametrize("die_at", [0, 1])
def test_process_when_killed_between_create_and_record_then_the_next_makes_no_second_card(
    board: Board, mirror: KanbanMirror, die_at: int
) -> None:
    """The card is found again by its key, although nobody remembers it."""
    code = DYING.format(tests=str(Path(__file__).parent), die_at=die_at)
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    state = run(step(1, "executor"), step(2, "verify", StepStatus.RUNNING))
    assert mirror.sync(state).problems == ()
    assert board.statuses() == {"matrix:r8:0": "running", "matrix:r8:1": "done", "matrix:r8:2": "running"}
    assert mirror.sync(state) == CLEAN


def test_card_when_the_board_lost_it_then_it_comes_back_with_its_comments_and_link(
    board: Board, mirror: KanbanMirror
) -> None:
    """What the host loses or a person deletes is put back, from the truth in our own store."""
    *_, last = ralph()
    mirror.sync(last)
    for key in ("matrix:r8:0", "matrix:r8:2"):
        with board.kb.connect_closing() as conn:
            board.kb.delete_task(conn, board.card(key)["id"])
    report = mirror.sync(last)
    assert (report.created, report.problems) == (0, ())
    assert set(board.statuses().values()) == {"done"}
    assert len(board.statuses()) == 5
    assert len(board.comments("matrix:r8:2")) == 2
    parent = board.card("matrix:r8:0")["id"]
    assert len(board.rows("select * from task_links where parent_id = ?", parent)) == 4


def test_parts_of_cards_when_the_board_lost_them_then_one_sync_mends_all(board: Board, mirror: KanbanMirror) -> None:
    """A lost `done`, a lost comment and a lost link are each found by reading back."""
    *_, last = ralph()
    mirror.sync(last)
    board.write("update tasks set status = 'running', result = null where idempotency_key = 'matrix:r8:1'")
    board.write("delete from task_comments where body like 'verified: FAIL%'")
    board.write("delete from task_links where child_id = ?", board.card("matrix:r8:3")["id"])
    assert mirror.sync(last) == SyncReport(repaired=3)
    assert mirror.sync(last) == CLEAN
    assert board.card("matrix:r8:1")["status"] == "done"


def test_run_number_when_an_older_store_had_it_then_the_old_cards_are_left_alone(board: Board) -> None:
    """A new store counts from one again: its runs get cards of their own."""
    *_, last = ralph()
    KanbanMirror(MemoryBook()).sync(last)
    board.write("update tasks set created_at = created_at - 86400")
    mirror = KanbanMirror(MemoryBook())
    new = run(step(1, "executor", StepStatus.RUNNING))
    assert mirror.sync(new) == SyncReport(created=2)
    assert mirror.sync(new) == CLEAN
    assert list(board.statuses().values()).count("running") == 2
    assert len(board.statuses()) == 7


TRAFFIC = """
import sys, time
from hermes_cli import kanban_db as kb
while True:
    try:
        with kb.connect_closing() as conn:
            kb.list_tasks(conn)
            kb.add_comment(conn, kb.create_task(conn, title="foreign", assignee="other"), "other", "x" * 200)
    except Exception as error:
        print(error, file=sys.stderr)
    time.sleep(0.005)
"""


def test_150_quick_cards_when_another_process_writes_all_the_time_then_each_is_complete(
    board: Board, mirror: KanbanMirror
) -> None:
    """Of 50 runs of two steps, written as they happen beside a busy foreign writer, no card lacks anything."""
    other = subprocess.Popen([sys.executable, "-c", TRAFFIC], stderr=subprocess.DEVNULL)
    try:
        while not board.rows("select 1 from tasks"):
            time.sleep(0.01)
        for number in range(50):
            one, two = step(1, "executor"), step(2, "verify", evidence=(evidence(15),))
            working = step(1, "executor", StepStatus.RUNNING)
            for state in (run(working), run(one), ended(RunOutcome.VERIFIED, one, two, reason="15/15")):
                assert mirror.sync(replace(state, run_id=f"r{number}")).problems == ()
    finally:
        other.kill()
        other.wait()
    cards = board.rows("select id, status, result from tasks where idempotency_key is not null")
    assert [c for c in cards if c["status"] != "done" or not c["result"]] == []
    assert len(cards) == 150
    ours = "select count(*) as n from task_comments where author = 'matrix-coder'"
    assert board.rows(ours) == [{"n": 50 * (1 + 2 + 3)}]
    assert board.rows("select count(*) as n from task_links") == [{"n": 100}]


CLOSER = """
import contextlib, os, sqlite3, sys
with contextlib.closing(sqlite3.connect(os.environ["HERMES_HOME"] + "/kanban.db")) as db:
    print(db.execute("select count(*) from tasks").fetchone()[0])
"""


def test_log_of_the_board_when_another_process_closes_last_then_a_held_file_keeps_it(board: Board) -> None:
    """The host drops SQLite's locks with each write; ours holds, so that no other process deletes the log in use."""
    log = board.home / "kanban.db-wal"
    with board.kb.connect_closing() as conn:
        board.kb.list_tasks(conn)
        keep_in_use(board.home / "kanban.db")
        for number in range(5):
            board.kb.create_task(conn, title=f"card {number}")
            before = log.stat().st_ino
            seen = subprocess.run([sys.executable, "-c", CLOSER], capture_output=True, text=True, check=True)
            assert (int(seen.stdout), log.stat().st_ino) == (number + 1, before)


def test_log_of_the_board_when_hundreds_of_writes_went_through_it_then_it_stays_small(
    board: Board, mirror: KanbanMirror
) -> None:
    """Holding the file keeps nobody from checkpointing: the log starts over again and again."""
    steps = tuple(step(n, "executor") for n in range(1, 81))
    assert mirror.sync(run(*steps)) == SyncReport(created=81)
    assert (board.home / "kanban.db-wal").stat().st_size < 2_000_000


# Others on the board ----------------------------------------------------------------------------------


def test_cards_when_the_dispatcher_passes_ten_times_then_none_is_touched_or_spawned(
    board: Board, mirror: KanbanMirror
) -> None:
    """Neither a default assignee nor auto-decompose makes the host work on our cards, in whatever state."""
    (board.home / "config.yaml").write_text("kanban: {default_assignee: default, auto_decompose: true}\n")
    asked = step(1, "plan", StepStatus.BLOCKED)
    mirror.sync(ended(RunOutcome.BLOCKED, asked, question="which?"))
    mirror.sync(replace(run(step(1, "executor"), step(2, "verify", StepStatus.RUNNING)), run_id="r9"))
    card_id = mirror.open_specialist_card("review security", "look at the login", "s1")
    before = board.rows("select * from tasks order by id")
    spawned: list[object] = []
    for _ in range(10):
        with board.kb.connect_closing() as conn:
            found = board.kb.dispatch_once(conn, spawn_fn=lambda *a: spawned.append(a), default_assignee="default")
        assert (found.spawned, found.reclaimed, found.promoted, found.crashed) == ([], 0, 0, [])
    board.hermes("kanban", "dispatch")
    from hermes_cli import kanban_decompose

    assert kanban_decompose.list_triage_ids() == []
    assert spawned == []
    assert board.rows("select * from tasks order by id") == before
    assert card_id in {row["id"] for row in before}


def test_running_card_when_the_host_calls_it_stale_then_the_next_sync_takes_it_back(
    board: Board, mirror: KanbanMirror
) -> None:
    """The host frees cards without a heartbeat after four hours; ours send none and come back."""
    state = run(step(1, "executor", StepStatus.RUNNING))
    mirror.sync(state)
    board.write("update task_runs set started_at = started_at - 20000")
    with board.kb.connect_closing() as conn:
        assert len(board.kb.dispatch_once(conn, spawn_fn=lambda *a: None, stale_timeout_seconds=14_400).stale) == 2
    assert mirror.sync(state) == SyncReport(repaired=2)
    assert set(board.statuses().values()) == {"running"}
    assert len(board.rows("select * from task_links")) == 1


@pytest.mark.parametrize("key", ["matrix:r8:0", "matrix:r8:1"])
@pytest.mark.parametrize("column", ["done", "todo", "blocked", "scheduled", "triage"])
def test_running_card_when_a_person_drags_it_away_then_it_is_taken_back_and_says_why(
    board: Board, mirror: KanbanMirror, key: str, column: str
) -> None:
    """The board shows what is: a dragged card comes back, once told why, and the run never fails for it."""
    state = run(step(1, "executor", StepStatus.RUNNING))
    mirror.sync(state)
    board.drag(key, column)
    assert mirror.sync(state).problems == ()
    assert set(board.statuses().values()) == {"running"}
    assert board.comments(key) == [f"moved to {column} here, but the work goes on: the card is back in running"]
    assert mirror.sync(state) == CLEAN
    assert len(board.rows("select * from task_links")) == 1
    mirror.sync(ended(RunOutcome.VERIFIED, step(1, "executor")))
    assert set(board.statuses().values()) == {"done"}


@pytest.mark.parametrize("column", ["todo", "ready", "triage"])
def test_closed_card_when_a_person_drags_it_away_then_it_is_closed_again(
    board: Board, mirror: KanbanMirror, column: str
) -> None:
    """A finished step stays finished, with its verdict, wherever it is dragged."""
    *_, last = ralph()
    mirror.sync(last)
    before = board.card("matrix:r8:2")["result"]
    board.drag("matrix:r8:2", column)
    assert mirror.sync(last).problems == ()
    assert (board.card("matrix:r8:2")["status"], board.card("matrix:r8:2")["result"]) == ("done", before)


@pytest.mark.parametrize("key", ["matrix:r8:0", "matrix:r8:1"])
def test_card_when_a_person_archives_it_then_it_stays_away_and_no_new_one_comes(
    board: Board, mirror: KanbanMirror, key: str
) -> None:
    """Archiving is how a person puts a card away, and the only change that is kept."""
    state = run(step(1, "executor", StepStatus.RUNNING))
    mirror.sync(state)
    board.drag(key, "archived")
    for later in (state, run(step(1, "executor")), ended(RunOutcome.VERIFIED, step(1, "executor"))):
        assert mirror.sync(later).problems == ()
    assert board.statuses()[key] == "archived"
    assert len(board.statuses()) == 2
    assert set(board.statuses().values()) == {"archived", "done"}
    with board.kb.connect_closing() as conn:
        board.kb.delete_archived_task(conn, board.card(key)["id"])
    mirror.sync(ended(RunOutcome.VERIFIED, step(1, "executor")))
    assert len(board.statuses()) == 1


def test_run_whose_card_is_archived_when_it_goes_on_then_it_opens_no_more_step_cards(
    board: Board, mirror: KanbanMirror
) -> None:
    """Who puts a run's card away wants to see no more of that run."""
    mirror.sync(run(step(1, "executor", StepStatus.RUNNING)))
    board.drag("matrix:r8:0", "archived")
    assert mirror.sync(run(step(1, "executor"), step(2, "verify", StepStatus.RUNNING))).problems == ()
    assert board.statuses() == {"matrix:r8:0": "archived", "matrix:r8:1": "done"}


def test_card_when_a_person_rewrites_it_and_comments_then_the_text_returns_and_the_comment_stays(
    board: Board, mirror: KanbanMirror
) -> None:
    """Our words are put back; a person's words are theirs."""
    state = run(step(1, "executor", StepStatus.RUNNING))
    mirror.sync(state)
    card = board.card("matrix:r8:1")
    board.write("update tasks set title = 'mine', body = 'now', priority = 7 where id = ?", card["id"])
    with board.kb.connect_closing() as conn:
        board.kb.add_comment(conn, card["id"], "SwitchUI", "please hurry")
    assert mirror.sync(state) == SyncReport(repaired=1)
    after = board.card("matrix:r8:1")
    assert (after["title"], after["body"], after["priority"]) == (card["title"], card["body"], 0)
    assert board.comments("matrix:r8:1") == ["please hurry"]


def test_card_when_a_person_gives_it_to_a_profile_then_it_comes_back_to_our_lane(
    board: Board, mirror: KanbanMirror
) -> None:
    """A card that was freed and given to another profile is ours again before anyone works on it."""
    state = run(step(1, "executor", StepStatus.RUNNING))
    mirror.sync(state)
    with board.kb.connect_closing() as conn:
        board.kb.reassign_task(conn, board.card("matrix:r8:1")["id"], "default", reclaim_first=True)
    assert board.card("matrix:r8:1")["assignee"] == "default"
    assert mirror.sync(state).problems == ()
    card = board.card("matrix:r8:1")
    assert (card["assignee"], card["status"]) == ("matrix-coder", "running")


def test_card_when_another_worker_holds_it_then_it_is_left_alone_and_reported(
    board: Board, mirror: KanbanMirror
) -> None:
    """We never pull a card from under a worker that is not ours."""
    mirror.sync(run())
    with board.kb.connect_closing() as conn:
        card = board.card("matrix:r8:0")["id"]
        board.kb.reassign_task(conn, card, "default", reclaim_first=True)
        board.kb.claim_task(conn, card, claimer="host:1")
    (problem,) = mirror.sync(ended(RunOutcome.VERIFIED)).problems
    assert "another worker" in problem
    assert board.card("matrix:r8:0")["claim_lock"] == "host:1"


# Single specialists -----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["done", "interrupted", "failed"])
def test_specialist_card_when_its_turn_ends_then_it_is_closed_with_what_happened(
    board: Board, mirror: KanbanMirror, how: str
) -> None:
    """One turn, one card, closed as done, interrupted or failed."""
    card_id = mirror.open_specialist_card("review security", "look at the login", "s1", turn="t1")
    assert card_id is not None
    assert mirror.open_specialist_card("review security", "look at the login", "s1", turn="t1") == card_id
    assert mirror.open_specialist_card("review security", "look at the login", "s2", turn="t1") != card_id
    assert board.rows("select status, title from tasks where id = ?", card_id) == [
        {"status": "running", "title": "review security · look at the login"}
    ]
    line = "2 findings"
    assert mirror.close_specialist_card(card_id, how, route="review security", goal="look at the login", line=line)
    assert board.rows("select status, title, result from tasks where id = ?", card_id) == [
        {"status": "done", "title": f"review security · {how} · look at the login", "result": f"{how}: 2 findings"}
    ]


def test_specialist_card_when_its_session_goes_on_without_closing_it_then_it_is_closed_as_interrupted(
    board: Board, mirror: KanbanMirror
) -> None:
    """A turn that no hook ended leaves no card open behind it; nor does a session that died."""
    left = mirror.open_specialist_card("debug", "why", "s1")
    foreign = mirror.open_specialist_card("plan", "how", "s2")
    later = KanbanMirror(MemoryBook(), clock=lambda: time.time() + 90_000)
    mirror.open_specialist_card("executor", "then", "s1")
    rows = {r["id"]: r["status"] for r in board.rows("select id, status from tasks")}
    assert (rows[left], rows[foreign]) == ("done", "running")
    later.open_specialist_card("executor", "much later", "s3")
    rows = {r["id"]: r["status"] for r in board.rows("select id, status from tasks")}
    assert rows[foreign] == "done"


def test_specialist_card_when_the_board_is_locked_then_there_is_none_and_nothing_raises(
    board: Board, mirror: KanbanMirror
) -> None:
    """A chat turn never fails for its card."""
    with contextlib.closing(sqlite3.connect(board.home / "kanban.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        assert mirror.open_specialist_card("debug", "why", "s1") is None
        assert mirror.close_specialist_card("t_00000000", "done") is False
        other.execute("rollback")


def test_specialist_thread_when_turns_come_and_go_then_each_has_its_closed_card(
    board: Board, mirror: KanbanMirror
) -> None:
    """Hooks hand over and go on; the cards are there when the thread has ended."""
    thread = SpecialistThread(mirror)
    for turn in ("t1", "t2"):
        thread.open(turn, "debug", "why", "s1")
        thread.close(turn, "done", route="debug", goal="why", line="a typo")
    thread.close("never opened", "failed")
    assert thread.stop(60)
    rows = board.rows("select title, status, result from tasks")
    assert rows == [{"title": "debug · done · why", "status": "done", "result": "done: a typo"}] * 2


# The thread -------------------------------------------------------------------------------------------


class Reports:
    """What a mirror thread said, and a way to wait for it."""

    def __init__(self) -> None:
        self.said: list[SyncReport] = []
        self._more = threading.Condition()

    def __call__(self, run_id: str, report: SyncReport) -> None:
        with self._more:
            self.said.append(report)
            self._more.notify_all()

    def wait_for(self, what: Any) -> None:
        with self._more:
            assert self._more.wait_for(lambda: any(what(r) for r in self.said), timeout=60)


def test_thread_when_notified_many_times_then_the_board_shows_the_last_state_at_stop(
    board: Board, mirror: KanbanMirror
) -> None:
    """A thousand notices are a few syncs, and what was told last is on the board when the thread ends."""
    states, said = list(ralph()), Reports()
    now = [states[0]]
    thread = MirrorThread(mirror, lambda _: now[0], on_report=said)
    for n in range(1_000):
        now[0] = states[min(n // 100, len(states) - 1)]
        thread.notify("r8")
    now[0] = states[-1]
    thread.notify("r8")
    assert thread.stop(60)
    assert set(board.statuses().values()) == {"done"}
    assert len(said.said) < 100


def test_thread_when_the_board_is_locked_then_notify_returns_and_the_card_comes_later(
    board: Board, mirror: KanbanMirror
) -> None:
    """The caller never waits for a board; the thread tries again until it is written."""
    said = Reports()
    thread = MirrorThread(mirror, lambda _: run(), first_wait_s=0.05, on_report=said)
    with contextlib.closing(sqlite3.connect(board.home / "kanban.db", isolation_level=None)) as other:
        other.execute("begin immediate")
        thread.notify("r8")
        said.wait_for(lambda r: r.problems)
        for _ in range(1_000):
            thread.notify("r8")
        assert board.statuses() == {}
        other.execute("rollback")
    said.wait_for(lambda r: r.created)
    assert thread.stop(60)
    assert board.statuses() == {"matrix:r8:0": "running"}


def test_thread_when_a_live_card_is_dragged_then_it_comes_back_without_a_notice(
    board: Board, mirror: KanbanMirror
) -> None:
    """A run that goes on is looked at again from time to time."""
    said = Reports()
    thread = MirrorThread(mirror, lambda _: run(), refresh_s=0.05, on_report=said)
    thread.notify("r8")
    said.wait_for(lambda r: r.created)
    board.drag("matrix:r8:0", "done")
    said.wait_for(lambda r: r.repaired)
    assert thread.stop(60)
    assert board.statuses() == {"matrix:r8:0": "running"}


def test_thread_when_a_run_changes_all_the_time_then_its_older_cards_are_still_looked_after(
    board: Board, mirror: KanbanMirror
) -> None:
    """Notices keep nobody from the whole look: a card of an earlier round that was dragged away comes back."""
    said = Reports()
    steps = (step(1, "executor"), step(2, "verify"), step(3, "executor", StepStatus.RUNNING))
    thread = MirrorThread(mirror, lambda _: run(*steps), refresh_s=0.2, on_report=said)
    thread.notify("r8")
    said.wait_for(lambda r: r.created)
    board.drag("matrix:r8:1", "todo")
    deadline = time.monotonic() + 60
    while board.card("matrix:r8:1")["status"] != "done" and time.monotonic() < deadline:
        thread.notify("r8")
        time.sleep(0.01)
    assert thread.stop(60)
    assert board.card("matrix:r8:1")["status"] == "done"


def test_thread_when_told_of_an_ended_run_that_is_shown_then_it_leaves_the_board_alone(board: Board) -> None:
    """The next worker is told of every run: those that are shown cost nothing, and what a person deleted stays away."""
    *_, last = ralph()
    book, said = MemoryBook(), Reports()
    assert KanbanMirror(book).sync(last).problems == ()
    with board.kb.connect_closing() as conn:
        board.kb.delete_task(conn, board.card("matrix:r8:2")["id"])
    thread = MirrorThread(KanbanMirror(book), lambda _: last, on_report=said)
    thread.notify("r8")
    assert thread.stop(60)
    assert said.said == [CLEAN]
    assert len(board.statuses()) == 4


def test_cards_when_somebody_reads_all_the_time_then_none_is_ever_seen_ready_or_unclaimed(
    board: Board, mirror: KanbanMirror
) -> None:
    """A dispatcher that passes at any moment finds none of our cards where it would take it: moves come together."""
    seen: list[int] = []
    over = threading.Event()

    def watch() -> None:
        sql = "select count(*) from tasks where status not in ('running', 'done', 'blocked')"
        with contextlib.closing(sqlite3.connect(board.home / "kanban.db")) as db:
            while not over.is_set():
                seen.append(db.execute(sql).fetchone()[0])

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        for number in range(10):
            for state in ralph():
                assert mirror.sync(replace(state, run_id=f"r{number}")).problems == ()
    finally:
        over.set()
        watcher.join()
    assert len(board.statuses()) == 50
    assert set(seen) == {0}


def test_findings_when_a_review_reports_them_then_its_comment_lists_them(board: Board, mirror: KanbanMirror) -> None:
    """Severity, place and words of each finding are on the step's card."""
    finding = Finding(severity=Severity.HIGH, summary="SQL from user input", file="db.py", line=12)
    mirror.sync(run(step(1, "review", lens="security", report=report(StepVerdict.FAIL, findings=(finding,)))))
    (comment,) = board.comments("matrix:r8:1")
    assert comment.startswith("claimed: FAIL by review security\n\n```\n")
    assert "HIGH db.py:12 SQL from user input" in comment
