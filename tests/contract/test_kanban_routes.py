"""What the host's own Kanban routes say of a run in each of its states: all that Switch UI and its own page read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from boardbench import QUESTION, SESSION, BoardPlace, Fetch, fetching
from webbench import TOKEN

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the card of a run in some state must read like; `rows` are lines of its text."""

    column: str
    title: str
    lead: str
    rows: tuple[str, ...] = ("- Claimed: PASS by verify",)
    progress: tuple[int, int] | None = (4, 4)
    comments: int = 5
    last: str = ""
    blocked_for: str | None = None


RED, GREEN = "- Verified: no; last check 14/15", "- Verified: yes, 15/15 (pytest -q)"
RED_NOW = "- Verified: no, 13/15 (pytest -q)"
STATES = {
    "queued": Shown(
        column="running",
        title="ralph · add a page for refunds",
        lead="Waiting to start",
        rows=("- Claimed: nothing yet", "- Verified: not yet", "- Rounds: 0 of at most 5"),
        progress=None,
        comments=0,
    ),
    "running": Shown(
        column="running",
        title="ralph · make the login tests pass",
        lead="Round 2/5: executor at work",
        rows=("- Claimed: PASS by verify", RED_NOW, "- Rounds: 2 of at most 5"),
        progress=(2, 3),
        comments=2,
        last="#2 round 1 verify · FAIL 13/15 (claims PASS) · 60 s",
    ),
    "paused": Shown(
        column="blocked",
        title="ralph · paused · port the parser",
        lead="Paused by a person: /matrix resume {run}",
        rows=("- Claimed: PASS by verify", RED_NOW),
        progress=(2, 2),
        comments=3,
        last="waits · round 1: paused by a person\n\nGo on in chat: /matrix resume {run}",
        blocked_for="needs_input",
    ),
    "approval": Shown(
        column="blocked",
        title="ralph · needs approval · drop Python 3.10",
        lead="Waiting for approval of the executor: /matrix approve {run}",
        rows=("- Claimed: PASS by verify", RED_NOW),
        progress=(2, 2),
        comments=3,
        last="waits · round 1: waiting for approval of the executor\n\nGo on in chat: /matrix approve {run}",
        blocked_for="needs_input",
    ),
    "blocked": Shown(
        column="blocked",
        title="ralph · blocked · add a payment provider",
        lead=f"Question: {QUESTION}",
        rows=("- Claimed: BLOCKED by executor", "- Verified: no"),
        progress=(0, 1),
        comments=2,
        last=f"question · round 1\n\n```\n{QUESTION}\n```\n\nAnswer in chat: /matrix answer {{run}} <text>",
        blocked_for="needs_input",
    ),
    "verified": Shown(
        column="done",
        title="ralph · verified · make the login tests pass",
        lead="verified: `pytest -q` failed on the starting tree and passes now",
        rows=(GREEN, "- Rounds: 2 of at most 5", "- Checks: pytest -q"),
        last="outcome: verified\n\n```\n`pytest -q` failed on the starting tree and passes now\n```",
    ),
    "unverified": Shown(
        column="done",
        title="ralph · unverified · tidy the CSS of the cart",
        lead="unverified: nothing broke; no check covers the goal (all were green)",
        rows=("- Verified: no; last check 15/15",),
    ),
    "cap_reached": Shown(
        column="done",
        title="ralph · cap_reached · speed up the search",
        lead="cap_reached: 5 of 5 iterations used; at the last, `pytest -q` failed (3/9)",
        rows=("- Claimed: FAIL by verify", RED),
    ),
    "stalled": Shown(
        column="done",
        title="ralph · stalled · port the parser to the new grammar",
        lead="stalled: the same 4 tests failed twice on the same tree",
        rows=(RED,),
    ),
    "budget": Shown(
        column="done",
        title="ralph · budget · translate every page",
        lead="budget: 2,000,312 of 2,000,000 tokens used",
        rows=(RED,),
    ),
    "tampered": Shown(
        column="done",
        title="ralph · tampered · make CI green",
        lead="tampered: tests that ran at the start no longer run: test_cart::test_total",
        rows=(RED,),
    ),
    "cancelled": Shown(
        column="done",
        title="ralph · cancelled · rename the package",
        lead="cancelled: cancelled by a person",
        rows=("- Verified: no; last check 13/15",),
        progress=(3, 3),
        comments=4,
    ),
    "failed": Shown(
        column="done",
        title="ralph · failed · update the dependencies",
        lead="failed: the executor step could not be done: HTTP 401 from the model",
        rows=("- Verified: no; last check 13/15",),
        progress=(3, 3),
        comments=4,
    ),
}
LIVE = {"queued", "running"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoardPlace]:
    """One dashboard over a board with a run in each state."""
    made = BoardPlace(tmp_path_factory.mktemp("board"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def fetch(place: BoardPlace) -> Iterator[Fetch]:
    """Reads a route of the board's API."""
    with place.client() as client:
        yield fetching(client)


@pytest.fixture(scope="module")
def cards(fetch: Fetch) -> dict[str, Json]:
    """Each card of the board by its idempotency key, as the board's route gives it."""
    columns = fetch("board")["columns"]
    assert all(card["status"] == column["name"] for column in columns for card in column["tasks"])
    return {card["idempotency_key"]: card for column in columns for card in column["tasks"]}


def _run_card(place: BoardPlace, cards: dict[str, Json], state: str) -> tuple[str, Json]:
    run = f"r{place.runs[state]}"
    return run, cards[f"matrix:{run}:0"]


def _steps(place: BoardPlace, cards: dict[str, Json], state: str) -> list[Json]:
    start = f"matrix:r{place.runs[state]}:"
    return [cards[key] for key in sorted(cards) if key.startswith(start) and not key.endswith(":0")]


def test_states_when_they_are_listed_here_then_none_is_missing(place: BoardPlace) -> None:
    """Each state that a run can be in has its row in this module."""
    assert set(STATES) == set(place.runs)


@pytest.mark.parametrize("state", STATES)
def test_card_of_a_run_when_the_board_is_read_then_every_shown_field_is_right(
    place: BoardPlace, cards: dict[str, Json], state: str
) -> None:
    """Column, title, text, lane, filter, order, counts, progress and result of a run's card, in each state."""
    shown = STATES[state]
    run, card = _run_card(place, cards, state)
    lead = shown.lead.format(run=run)
    assert (card["status"], card["title"]) == (shown.column, f"{run} {shown.title}")
    first, *rest = card["body"].split("\n")
    assert first == lead
    assert {*shown.rows, f"- Chat: {SESSION}", f"- Page: /matrix#/runs/{run}"} <= set(rest)
    fixed = {
        "assignee": "matrix-coder",
        "created_by": "matrix-coder",
        "tenant": f"matrix-{run}",
        "priority": 1,
        "session_id": SESSION,
        "workspace_kind": "dir",
        "workspace_path": f"/srv/projects/{state}",
        "block_kind": shown.blocked_for,
        "result": lead if shown.column == "done" else None,
        "latest_summary": None if shown.column == "running" else lead,
        "link_counts": {"parents": 0, "children": shown.progress[1] if shown.progress else 0},
        "progress": dict(zip(("done", "total"), shown.progress, strict=True)) if shown.progress else None,
        "comment_count": shown.comments,
        "claim_lock": f"matrix_coder:{run}" if state in LIVE else None,
        "goal_mode": False,
        "consecutive_failures": 0,
        # At two, the host would hand the card to a model.
        "block_recurrences": int(shown.column == "blocked"),
    }
    assert {name: card[name] for name in fixed} == fixed
    # None: no heartbeat goes stale, no process is looked for, no skill is loaded, no failure is counted.
    unused = ("last_heartbeat_at", "worker_pid", "skills", "last_failure_error", "branch_name", "model_override")
    assert [card[name] for name in unused] == [None] * len(unused)
    assert (card["completed_at"] is not None) is (shown.column == "done")
    assert (card["current_run_id"] is not None) is (state in LIVE)
    assert card["created_at"] > 0
    assert card["age"]["created_age_seconds"] >= 0
    assert "diagnostics" not in card
    assert "warnings" not in card


@pytest.mark.parametrize("state", STATES)
def test_card_of_a_run_when_it_is_opened_then_comments_links_and_attempts_are_right(
    place: BoardPlace, cards: dict[str, Json], fetch: Fetch, state: str
) -> None:
    """The drawer of a run: a comment for each step and one for what came of it, its steps, its rows under Runs."""
    shown = STATES[state]
    run, card = _run_card(place, cards, state)
    opened = fetch(f"tasks/{card['id']}")
    assert {name: opened["task"][name] for name in ("title", "body", "status")} == {
        name: card[name] for name in ("title", "body", "status")
    }
    comments = opened["comments"]
    assert len(comments) == shown.comments
    assert {c["author"] for c in comments} <= {"matrix-coder"}
    if shown.last:
        assert comments[-1]["body"] == shown.last.format(run=run)
    elif shown.comments:
        outcome, _, reason = shown.lead.partition(": ")
        assert comments[-1]["body"].startswith(f"outcome: {outcome}\n\n```\n{reason[:20]}")
    steps = {s["id"]: s for s in _steps(place, cards, state)}
    assert opened["links"] == {"parents": [], "children": sorted(steps)}
    results = {r["id"]: (r["title"], r["status"], r["result"]) for r in opened["child_results"]}
    assert results == {key: (s["title"], s["status"], s["result"]) for key, s in steps.items()}
    assert opened["attachments"] == []
    row = opened["runs"][-1]
    outcome = {"running": None, "blocked": "blocked", "done": "completed"}[shown.column]
    assert (row["profile"], row["outcome"], row["error"]) == ("matrix-coder", outcome, None)
    assert row["summary"] == (None if shown.column == "running" else shown.lead.format(run=run))
    assert (row["ended_at"] is None) is (shown.column == "running")
    if shown.column == "done":
        facts = row["metadata"]
        assert (facts["outcome"], facts["verified"]) == (state, "yes" if state == "verified" else "no")
        assert all(isinstance(value, str | int | float | bool) for value in facts.values())
        assert len(json.dumps(facts, ensure_ascii=False)) < 300
    kinds = [event["kind"] for event in opened["events"]]
    assert kinds[:2] == ["created", "claimed"]
    assert {"blocked": "blocked", "done": "completed", "running": "claimed"}[shown.column] in kinds


TITLES = {
    "queued": [],
    "running": ["1/5 executor · says PASS", "1/5 verify · FAIL 13/15 (claims PASS)", "2/5 executor · try 2"],
    "paused": ["1/5 executor · says PASS", "1/5 verify · FAIL 13/15 (claims PASS)"],
    "blocked": ["1/5 executor · BLOCKED"],
    "verified": [
        "1/5 executor · says PASS",
        "1/5 verify · FAIL 13/15 (claims PASS)",
        "2/5 executor · says PASS",
        "2/5 verify · PASS 15/15",
    ],
    "stalled": [
        "1/5 executor · says PASS",
        "1/5 verify · FAIL 13/15 (claims PASS)",
        "2/5 executor · says PASS",
        "2/5 verify · FAIL 14/15",
    ],
    "cancelled": ["1/5 executor · says PASS", "1/5 verify · FAIL 13/15 (claims PASS)", "2/5 executor · CANCELLED"],
    "failed": ["1/5 executor · says PASS", "1/5 verify · FAIL 13/15 (claims PASS)", "2/5 executor · ERROR"],
}


@pytest.mark.parametrize("state", TITLES)
def test_step_cards_when_the_board_is_read_then_each_tells_a_claim_from_a_check_under_its_run(
    place: BoardPlace, cards: dict[str, Json], fetch: Fetch, state: str
) -> None:
    """Steps done, blocked, failed, cancelled and at work: verdict in title, text, result and under Runs."""
    run, parent = _run_card(place, cards, state)
    steps = _steps(place, cards, state)
    assert [s["title"] for s in steps] == [f"{run} · {title}" for title in TITLES[state]]
    for step in steps:
        live, asks = step["title"].endswith("try 2"), step["title"].endswith("BLOCKED")
        assert step["status"] == ("running" if live else "blocked" if asks else "done")
        assert (step["assignee"], step["tenant"], step["priority"]) == ("matrix-coder", f"matrix-{run}", 0)
        assert step["link_counts"] == {"parents": 1, "children": 0}
        assert "diagnostics" not in step
        opened = fetch(f"tasks/{step['id']}")
        assert opened["links"] == {"parents": [parent["id"]], "children": []}
        row = opened["runs"][-1]
        assert row["outcome"] == (None if live else "blocked" if asks else "completed")
        assert step["result"] == (None if live or asks else step["body"].split("\n")[0])
        assert {"created", "claimed", "linked"} <= {event["kind"] for event in opened["events"]}


def test_checked_step_when_it_is_opened_then_its_evidence_is_there_in_full(
    place: BoardPlace, cards: dict[str, Json], fetch: Fetch
) -> None:
    """A verify step shows claim and check as two comments and two lines, facts, and the whole output as a file."""
    _, step, _ = _steps(place, cards, "running")
    opened = fetch(f"tasks/{step['id']}")
    claimed, verified = (c["body"] for c in opened["comments"])
    assert claimed == "claimed: PASS by verify\n\n```\nAll green.\n```"
    assert verified == "verified: FAIL 13/15 · pytest -q · 3.2 s\n\n```\n2 failed, 13 passed in 3.1s\n```"
    assert step["body"].split("\n")[3:5] == ["- Claimed: PASS by verify", "- Verified: no, 13/15 (pytest -q)"]
    facts = opened["runs"][-1]["metadata"]
    wanted = {"claimed": "PASS", "verified": "no", "check": "pytest -q", "exit_code": 1, "tests": "13/15", "attempt": 1}
    assert wanted.items() <= facts.items()
    (file,) = opened["attachments"]
    assert (file["filename"], file["content_type"], file["size"]) == (
        f"r{place.runs['running']}-2-try1-check1.txt",
        "text/plain",
        34_000,
    )
    with place.client() as client:
        answer = client.get(f"/api/plugins/kanban/attachments/{file['id']}")
    assert (answer.status_code, len(answer.content)) == (200, 34_000)


def test_step_when_its_first_attempt_was_cut_off_then_both_are_told_apart_under_runs(
    place: BoardPlace, cards: dict[str, Json], fetch: Fetch
) -> None:
    """Attempts at a step are rows under Runs of one card, and its title names the one at work."""
    *_, step = _steps(place, cards, "running")
    rows = fetch(f"tasks/{step['id']}")["runs"]
    assert [r["outcome"] for r in rows] == ["reclaimed", None]
    run = f"r{place.runs['running']}"
    assert (rows[0]["claim_lock"], rows[1]["claim_lock"]) == (None, f"matrix_coder:{run}:3:2")
    assert step["body"].startswith("Round 2/5: executor at work, try 2\n")


def test_board_when_it_is_filtered_by_a_run_then_only_its_cards_come_and_the_run_first(
    place: BoardPlace, fetch: Fetch
) -> None:
    """The filter by tenant gives one run, in each column the run's card before its steps."""
    run = f"r{place.runs['verified']}"
    board = fetch(f"board?tenant=matrix-{run}")
    done = next(c["tasks"] for c in board["columns"] if c["name"] == "done")
    assert [c["name"] for c in board["columns"] if c["tasks"]] == ["done"]
    assert len(done) == 5
    assert done[0]["title"].startswith(f"{run} ralph · verified")
    assert {f"matrix-r{n}" for n in place.runs.values()} <= set(board["tenants"])
    assert board["assignees"] == ["matrix-coder"]
    assert board["latest_event_id"] > 0


def test_columns_when_runs_are_in_every_state_then_none_of_our_cards_is_anywhere_else(fetch: Fetch) -> None:
    """Nothing of ours is in triage, todo, scheduled, ready or review, from where the host would take it."""
    names = {c["name"]: len(c["tasks"]) for c in fetch("board?include_archived=true")["columns"]}
    assert {name for name, count in names.items() if count} == {"running", "blocked", "done"}


def test_routes_beside_the_board_when_switch_ui_reads_them_then_they_count_our_cards(
    place: BoardPlace, cards: dict[str, Json], fetch: Fetch
) -> None:
    """Totals, lanes, boards, the log of a card that has none, channels, and the two routes of the dashboard itself."""
    counts = {s: sum(c["status"] == s for c in cards.values()) for s in ("blocked", "done", "running")}
    stats = fetch("stats")
    assert (stats["by_status"], stats["by_assignee"]) == (counts, {"matrix-coder": counts})
    assert stats["oldest_ready_age_seconds"] is None
    lanes = {lane["name"]: lane for lane in fetch("assignees")["assignees"]}
    assert lanes["matrix-coder"] == {"name": "matrix-coder", "on_disk": False, "counts": counts}
    boards = fetch("boards")
    (board,) = boards["boards"]
    assert (boards["current"], board["is_current"], board["counts"], board["total"]) == (
        "default",
        True,
        counts,
        len(cards),
    )
    _, card = _run_card(place, cards, "running")
    log = fetch(f"tasks/{card['id']}/log?tail=100")
    assert (log["exists"], log["content"], log["size_bytes"], log["truncated"]) == (False, "", 0, False)
    assert fetch("home-channels") == {"home_channels": []}
    assert fetch("diagnostics")["diagnostics"] == []
    assert fetch("workers/active")["workers"] == []
    with place.client() as client:
        assert client.get("/api/status").json()["version"]
        assert client.get("/api/config").status_code == 200


def test_routes_when_no_token_is_given_then_nothing_of_a_run_is_told(place: BoardPlace, cards: dict[str, Json]) -> None:
    """The board is behind the dashboard's own authentication, its stream too."""
    _, card = _run_card(place, cards, "running")
    with place.client(token="") as client:
        for path in ("board", f"tasks/{card['id']}", "stats", "boards"):
            assert client.get(f"/api/plugins/kanban/{path}").status_code == 401
    with pytest.raises((InvalidStatus, ConnectionClosed)), connect(_stream(place, since=0, token="none")) as stream:
        stream.recv(timeout=30)


def test_stream_when_it_is_read_from_the_start_then_each_card_has_its_whole_history(
    place: BoardPlace, cards: dict[str, Json], fetch: Fetch
) -> None:
    """What Switch UI and the page follow live: created, claimed and how it ended, of every card, in order."""
    last = fetch("board")["latest_event_id"]
    events: list[Json] = []
    with connect(_stream(place, since=0)) as stream:
        while not events or events[-1]["id"] < last:
            told = json.loads(stream.recv(timeout=30))
            events += told["events"]
            assert told["cursor"] == events[-1]["id"]
    assert [e["id"] for e in events] == sorted({e["id"] for e in events})
    kinds: dict[str, list[str]] = {}
    for event in events:
        kinds.setdefault(event["task_id"], []).append(event["kind"])
    assert set(kinds) == {card["id"] for card in cards.values()}
    for card in cards.values():
        assert kinds[card["id"]][:2] == ["created", "claimed"]
        assert kinds[card["id"]].count("completed") == (card["status"] == "done")
        assert ("blocked" in kinds[card["id"]]) is (card["status"] == "blocked")


def _stream(place: BoardPlace, *, since: int, token: str = TOKEN) -> str:
    return f"ws://127.0.0.1:{place.dashboard.port}/api/plugins/kanban/events?since={since}&token={token}"


def test_commands_when_they_list_and_show_the_board_then_they_say_the_same(
    place: BoardPlace, cards: dict[str, Json]
) -> None:
    """`hermes kanban list` has each run with its state, and `show` the text, comments and steps of one."""
    lines = place.home.hermes("kanban", "list").out.splitlines()
    for state in STATES:
        _, card = _run_card(place, cards, state)
        (line,) = (line for line in lines if card["id"] in line)
        assert f" {card['status']} " in line
        assert line.endswith(card["title"])
    _, card = _run_card(place, cards, "approval")
    shown = place.home.hermes("kanban", "show", card["id"]).out
    assert card["body"].split("\n")[0] in shown
    assert "waits · round 1: waiting for approval of the executor" in shown
    assert all(step["id"] in shown for step in _steps(place, cards, "approval"))
