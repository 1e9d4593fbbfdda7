"""The dashboard's API, asked over HTTP at a real `hermes dashboard`."""

from __future__ import annotations

import json
import sqlite3
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from conftest import CALC, TEST_CALC, make_repo
from matrix_coder.core.intent_gate import decide
from matrix_coder.core.models import Evidence, RunOutcome, StepReport, StepVerdict
from matrix_coder.core.names import Workflow
from matrix_coder.engine.client import Client, Limits
from matrix_coder.engine.paths import run_dir, state_dir
from matrix_coder.engine.store import Store
from matrix_coder.engine.workspace import Trees
from matrix_coder.hermes.decisions import DecisionLog
from matrix_coder.testing import HermesHome
from matrix_coder.web.api import router
from webbench import API, OUTCOMES, Dashboard, Seeds, end_worker, many, seed_outcomes

NOWHERE = "http://127.0.0.1:9/v1"
HUGE = "9" * 30
# What one reader or another takes for the end of a line or of an event.
BREAKS = '\n\ndata: {"id": 9}\r\r\u2028\u2029\x85\x0b\x0c\x1e'
SETTINGS = ("plugins", "entries", "matrix_coder", "settings")


class Place:
    """A dashboard with seeded runs."""

    def __init__(self, root: Path) -> None:
        self.home = HermesHome(root, NOWHERE)
        self.repo = make_repo(root / "repo", {"calc.py": CALC, "test_calc.py": TEST_CALC})
        self.seeds = Seeds(self.home.path)
        seed_outcomes(self.seeds)
        shop = make_repo(root / "shop", {"a.txt": "1\n"})
        self.fanned = f"r{self.seeds.fanned(shop, goal='show the prices')}"
        edits = [{"notes.md": "# tried\n"}, {"calc.py": CALC.replace("a - b", "a + b"), "docs/a file.md": "# a\n"}]
        self.mended = f"r{self.seeds.mended(self.repo, edits, goal='make the tests pass')}"
        self.dashboard = Dashboard(self.home)
        self.http = self.dashboard.client()

    def get(self, path: str, **query: Any) -> Any:
        answer = self.http.get(path, params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def close(self) -> None:
        self.http.close()
        assert self.dashboard.close() != -9
        end_worker(self.home.path)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("api"))
    yield made
    made.close()


def problem(answer: httpx.Response) -> tuple[int, str]:
    """Status and code of an error, which always says what to do next."""
    told = answer.json()
    assert set(told) == {"code", "message", "next"}
    assert told["message"]
    assert told["next"]
    return answer.status_code, told["code"]


ROUTES = [(sorted(r.methods)[0], r.path) for r in router.routes if isinstance(r, APIRoute)]


def test_routes_when_counted_then_all_are_below_the_version() -> None:
    """Every address carries the API's version, so that a later one can stand beside it."""
    assert len(ROUTES) >= 14
    assert all(path.startswith("/v1/") for _, path in ROUTES)


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_any_route_when_asked_without_the_session_token_then_refused(place: Place, method: str, path: str) -> None:
    """Nothing is served without the host's own authentication."""
    concrete = path.removeprefix("/v1").format(run_id=place.mended, step=1, index=0)
    with place.dashboard.client(token="") as stranger, place.dashboard.client(token="wrong") as guesser:
        for client in (stranger, guesser):
            answer = client.request(method, concrete, json={} if method == "POST" else None)
            assert answer.status_code == 401, answer.text
            assert "make the tests pass" not in answer.text


def test_runs_when_listed_then_newest_first_with_outcome_iteration_and_cost(place: Place) -> None:
    """The list says of each run how it ended, how far it got and what it used."""
    page = place.get("/runs")
    first = page["runs"][0]
    assert first["run_id"] == place.mended
    assert (first["outcome"], first["iteration"], first["cap"], first["steps"]) == ("verified", 2, 5, 4)
    assert (first["input_tokens"], first["output_tokens"]) == (4 * 9_200, 4 * 1_340)
    assert page["total"] == len(OUTCOMES) + 2
    assert page["counts"] == {str(o): 1 for o, _, _ in OUTCOMES} | {"verified": 2, "failed": 2}
    assert {r["workflow"] for r in page["runs"]} == set(Workflow)
    assert page["next_before"] is None


def test_runs_when_paged_then_each_comes_once(place: Place) -> None:
    """Pages follow one another without a gap or a repetition."""
    seen: list[str] = []
    query: dict[str, int] = {"limit": 4}
    while True:
        page = place.get("/runs", **query)
        seen += [r["run_id"] for r in page["runs"]]
        if page["next_before"] is None:
            break
        query["before"] = page["next_before"]
    assert seen == [f"r{n}" for n in range(len(OUTCOMES) + 2, 0, -1)]


@pytest.mark.parametrize(
    ("query", "goals"),
    [
        ({"state": "tampered"}, ["make CI green"]),
        ({"text": "PAYMENT"}, ["add a payment provider"]),
        ({"text": "r2"}, ["tidy the CSS of the cart"]),
        ({"state": "live"}, []),
        ({"text": "100%_nothing"}, []),
    ],
)
def test_runs_when_filtered_then_only_those(place: Place, query: dict[str, str], goals: list[str]) -> None:
    """The list can be narrowed by state and by words, which are taken as they are."""
    page = place.get("/runs", **query)
    assert [r["goal"] for r in page["runs"]] == goals
    assert page["total"] == len(goals)


def test_run_when_asked_for_then_claims_and_proof_are_two_things(place: Place) -> None:
    """Each step shows what its specialist claimed beside what the engine's checks said, on which tree."""
    run = place.get(f"/runs/{place.mended}")
    shown = [
        (s["role"], s["report"]["verdict"], [(e["passed"], e["counts"]) for e in s["evidence"]]) for s in run["steps"]
    ]
    assert shown == [
        ("executor", "PASS", []),
        ("verify", "FAIL", [(False, "1/2")]),
        ("executor", "PASS", []),
        ("verify", "PASS", [(True, "2/2")]),
    ]
    assert run["baseline"][0]["failing"] == ["test_calc::test_add"]
    assert run["evidence"][0]["passed"]
    assert run["steps"][1]["report"]["findings"][0] == {
        "severity": "BLOCKER",
        "summary": "add() still subtracts its arguments.",
        "file": "calc.py",
        "line": 5,
    }
    assert [(b["name"], b["used"], b["limit"]) for b in run["budgets"]][:2] == [
        ("iterations", 2, 5),
        ("tokens", 4 * 10_540, 2_000_000),
    ]
    assert sorted(run["changed"]) == ["calc.py", "docs/a file.md", "notes.md"]
    assert [c["name"] for c in run["commands"]] == ["undo"]


def test_run_when_it_has_cost_then_told_for_the_run_and_each_step_with_what_has_no_price(place: Place) -> None:
    """Money is there in the list, the run and its steps; tokens without a price are counted apart; a limit is a bar."""
    run = place.get(f"/runs/{place.fanned}")
    row = next(r for r in place.get("/runs")["runs"] if r["run_id"] == place.fanned)
    for told_of in (run["run"], row):
        assert told_of["cost_usd"] == pytest.approx(2 * 0.0477 + 3 * 0.0213)
        assert (told_of["unpriced_tokens"], told_of["money_usd"]) == (4_700, 2.0)
    assert run["steps"][0]["cost_usd"] == 0.0477
    assert [s["unpriced_tokens"] for s in run["steps"]] == [0, 0, 0, 4_700, 0, 0, 0]
    (money,) = [b for b in run["budgets"] if b["name"] == "money"]
    assert (money["used"], money["limit"]) == (pytest.approx(0.1593), 2.0)
    assert [b["name"] for b in place.get(f"/runs/{place.mended}")["budgets"]] == ["iterations", "tokens", "seconds"]


def test_units_when_a_step_is_made_of_them_then_each_tells_its_state_files_and_way_on(place: Place) -> None:
    """Units come after their step: planned, what they came to, why, where their work is kept, what takes it later."""
    run = place.get(f"/runs/{place.fanned}")
    assert [u["name"] for u in run["steps"][0]["report"]["units"]] == ["api", "web", "docs", "survey"]
    units = {s["unit"]["name"]: s["unit"] | {"diff": s["has_diff"]} for s in run["steps"] if s["unit"]}
    assert {n: u["state"] for n, u in units.items()} == {
        "api": "merged",
        "web": "failed",
        "docs": "empty",
        "survey": "done",
    }
    web = units["web"]
    assert (web["files"], web["owns"], web["goal"]) == (["web.py"], ["web.py"], "Show the prices.")
    assert web["why"].startswith("red in its own checkout")
    assert Path(web["checkout"]).is_dir()
    assert web["command"] == f"matrix-coder merge {place.fanned} web"
    assert (units["api"]["command"], units["survey"]["topic"]) == ("", "where prices are shown today")
    assert [units[n]["diff"] for n in units] == [True, True, False, False]
    for step, name in ((3, "api.py"), (4, "web.py")):
        (file,) = place.get(f"/runs/{place.fanned}/steps/{step}/diff")["files"]
        assert (file["path"], file["change"]) == (name, "added")
    offered = {c["name"]: c["arguments"] for c in run["commands"]}
    assert offered["merge"][0]["choices"] == ["web"]


def test_merge_and_drop_when_a_unit_is_kept_then_the_worker_does_the_one_and_the_other_is_done_at_once(
    place: Place,
) -> None:
    """A merge is accepted, done by the worker and told in the run's reason; a dropped unit is offered no more."""
    number = place.seeds.fanned(make_repo(place.home.root / "kept", {"a.txt": "1\n"}), goal="in units")
    path = f"/runs/r{number}"
    offered = {c["name"]: bool(c["confirm"]) for c in place.get(path)["commands"]}
    assert (offered["merge"], offered["drop"]) == (False, True)
    asked = {"arguments": {"unit": "web"}}
    answer = place.http.post(f"{path}/commands", json={"name": "merge", **asked})
    assert answer.status_code == 202
    assert (answer.json()["message"][:23], answer.json()["run"]["outcome"]) == ("web is being merged, af", None)
    Client(place.home.path).wait(f"r{number}", timeout_s=60)
    run = place.get(path)
    # Its checkout holds nothing of the workspace, as this test made it.
    assert run["run"]["reason"].startswith(
        "web was not merged: it changed files that are not its own: a.txt; it had ended"
    )
    dropped = place.http.post(f"{path}/commands", json={"name": "drop", **asked})
    assert (dropped.status_code, dropped.json()["message"][:17]) == (200, "Dropped for good:")
    assert {"merge", "drop"}.isdisjoint(c["name"] for c in place.get(path)["commands"])
    end_worker(place.home.path)
    forget(place, number)


def test_output_when_read_backwards_then_it_is_whole(place: Place) -> None:
    """A long output comes in bounded parts from its end to its start, and the parts are the file."""
    path = f"/runs/{place.mended}/steps/2/evidence/0/output"
    text, end, parts = "", None, 0
    while end != 0:
        part = place.get(path, limit=200, **({} if end is None else {"end": end}))
        assert len(part["text"].encode()) <= 200
        text, end, parts = part["text"] + text, part["start"], parts + 1
    assert parts > 2
    assert len(text.encode()) == part["size"]
    assert "assert -1 == 5" in text
    assert text.endswith("\n")


def test_output_when_one_line_is_longer_than_a_part_then_still_read_to_its_start(place: Place) -> None:
    """A line without an end can't hold the reader in place."""
    number = int(place.mended[1:])
    log = run_dir(place.home.path, place.mended) / "checks" / "step-4" / "check-1.log"
    kept = log.read_text()
    log.write_text("x" * 1_000 + "\nend\n")
    try:
        path = f"/runs/r{number}/steps/4/evidence/0/output"
        first = place.get(path, limit=100)
        before = place.get(path, limit=100, end=first["start"])
        assert (first["text"], before["text"], before["end"]) == ("end\n", "x" * 99 + "\n", 1_001)
    finally:
        log.write_text(kept)


def test_output_when_the_store_names_a_file_elsewhere_then_not_read(place: Place, tmp_path: Path) -> None:
    """Only files of the run's own directory are served, whatever a row of the store says."""
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret of somebody else")
    planted = Evidence(
        name="check-1",
        command="true",
        exit_code=0,
        duration_s=1,
        tree="ab",
        tail="the end that was kept",
        output_path=str(secret),
    )
    number = place.seeds.new(goal="planted", workspace=tmp_path / "planted")
    place.seeds.step(number, 1, "verify", 1, evidence=[planted])
    place.seeds.store.end_run(number, RunOutcome.FAILED)
    try:
        part = place.get(f"/runs/r{number}/steps/1/evidence/0/output")
        assert part["text"] == "the end that was kept"
    finally:
        forget(place, number)


def forget(place: Place, number: int) -> None:
    """Take a run out of the store again."""
    with place.seeds.store.transaction() as db:
        for table in ("events", "steps", "controls", "sessions", "cards"):
            db.execute(f"delete from {table} where run_id = ?", (number,))
        db.execute("delete from runs where id = ?", (number,))


def test_evidence_when_asked_for_then_its_cases_come_failing_first(place: Place) -> None:
    """A check shows each of its cases, what fails before the rest."""
    found = place.get(f"/runs/{place.mended}/steps/0/evidence/0")
    assert [(c["id"], c["result"]) for c in found["cases"]] == [
        ("test_calc::test_add", "failed"),
        ("test_calc::test_double", "passed"),
    ]


def test_diff_when_asked_for_then_file_by_file_with_counts(place: Place) -> None:
    """A run's diff and a step's diff name their files, with the lines of each."""
    whole = place.get(f"/runs/{place.mended}/diff")
    assert [(f["path"], f["change"], f["added"], f["removed"]) for f in whole["files"]] == [
        ("calc.py", "changed", 1, 1),
        ("docs/a file.md", "added", 1, 0),
        ("notes.md", "added", 1, 0),
    ]
    assert "-    return a - b\n+    return a + b\n" in whole["files"][0]["patch"]
    step = place.get(f"/runs/{place.mended}/steps/1/diff")
    assert [f["path"] for f in step["files"]] == ["notes.md"]
    assert place.get(f"/runs/{place.mended}/steps/2/diff")["files"] == []
    assert place.get(f"/runs/{place.mended}/diff/2") == whole["files"][2]


def test_diff_when_names_and_lines_are_strange_then_told_as_they_are(place: Place, tmp_path: Path) -> None:
    """Names with quotes, tabs and other scripts, and lines that look like headers, do not confuse the diff."""
    names = ['say "hi".txt', "tab\there.txt", "naïve/файл.py", "a b/ b/c.txt", "gone.txt", "empty.txt"]
    repo = make_repo(tmp_path / "strange", {"gone.txt": "-- old\n++ old\n", "kept.txt": "1\n"})
    number = place.seeds.new(goal="strange names", workspace=repo)
    trees = Trees(repo, run_dir(place.home.path, f"r{number}"))
    start = trees.record()
    for name in names[:-2]:
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n")
    (repo / "gone.txt").unlink()
    (repo / "empty.txt").write_text("")
    place.seeds.store.update_run(number, start_tree=start)
    place.seeds.step(number, 1, "executor", 1, trees=(start, trees.record()))
    place.seeds.store.end_run(number, RunOutcome.FAILED)
    try:
        diff = place.get(f"/runs/r{number}/diff")
        assert sorted(f["path"] for f in diff["files"]) == sorted(names)
        by_name = {f["path"]: f for f in diff["files"]}
        assert (by_name["gone.txt"]["change"], by_name["gone.txt"]["removed"]) == ("deleted", 2)
        assert (by_name["empty.txt"]["change"], by_name["empty.txt"]["added"]) == ("added", 0)
        assert all(by_name[n]["added"] == 4 for n in names[:-2])
    finally:
        forget(place, number)


def test_diff_when_a_file_is_large_then_its_patch_is_asked_for_alone(place: Place, tmp_path: Path) -> None:
    """A list of a large diff stays small; each large patch has an address of its own."""
    repo = make_repo(tmp_path / "large", {"one.txt": "1\n"})
    number = place.seeds.new(goal="a large diff", workspace=repo)
    trees = Trees(repo, run_dir(place.home.path, f"r{number}"))
    start = trees.record()
    (repo / "big.txt").write_text("".join(f"line {i}\n" for i in range(60_000)))
    place.seeds.store.update_run(number, start_tree=start)
    place.seeds.step(number, 1, "executor", 1, trees=(start, trees.record()))
    place.seeds.store.end_run(number, RunOutcome.FAILED)
    try:
        answer = place.http.get(f"/runs/r{number}/steps/1/diff")
        assert len(answer.content) < 10_000
        (file,) = answer.json()["files"]
        assert (file["patch"], file["added"]) == (None, 60_000)
        assert place.get(f"/runs/r{number}/steps/1/diff/0")["patch"].count("\n+line ") == 60_000
    finally:
        forget(place, number)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/runs/r999", 404, "run_unknown"),
        ("/runs/nonsense/diff", 404, "run_unknown"),
        ("/runs/r1/report", 404, "not_here"),
        ("/runs/r1/diff", 404, "not_here"),
        ("/runs/r1/steps/77/diff", 404, "not_here"),
        ("/runs/r1/steps/1/diff", 404, "not_here"),
        ("/runs/r1/steps/2/evidence/9", 404, "not_here"),
        ("/runs/r1/steps/2/evidence/-1/output", 404, "not_here"),
        ("/runs?limit=0", 422, "request"),
        ("/runs?before=x", 422, "request"),
        (f"/runs?before={HUGE}", 422, "request"),
        (f"/runs/r1/steps/{HUGE}/diff", 422, "request"),
        (f"/runs/r1/steps/-{HUGE}/evidence/0", 422, "request"),
        (f"/runs/r1/steps/{HUGE}/evidence/0/output", 422, "request"),
        (f"/runs/r1/steps/2/evidence/0/output?end={HUGE}", 422, "request"),
        (f"/events?after={HUGE}", 422, "request"),
        ("/runs/r999/events", 404, "run_unknown"),
        ("/runs/r\u0661/events", 404, "run_unknown"),
    ],
)
def test_errors_when_something_is_not_there_then_json_with_the_next_step(
    place: Place, path: str, status: int, code: str
) -> None:
    """An error has a stable code, says what was expected and found, and what to do next."""
    assert problem(place.http.get(path)) == (status, code)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"name": "pause"}, 400, "input"),
        ({"name": "steer"}, 400, "input"),
        ({"name": "raise", "arguments": {"cap": "many"}}, 400, "input"),
        ({"name": "raise"}, 400, "input"),
        ({"name": "raise", "arguments": {"cap": "nan"}}, 400, "input"),
        ({"name": "raise", "arguments": {"tokens": "inf"}}, 400, "input"),
        ({"name": "raise", "arguments": {"money": 5}}, 400, "input"),
        ({"name": "undo", "arguments": {"step": 1.7}}, 400, "input"),
        ({"name": "undo", "arguments": {"step": "-inf"}}, 400, "input"),
        ({"name": "undo", "arguments": {"step": 99}}, 400, "input"),
        ({"name": "merge"}, 400, "input"),
        ({"name": "merge", "arguments": {"unit": "no such unit"}}, 400, "input"),
        ({"name": "take"}, 400, "input"),
        ({"name": "resume"}, 400, "input"),
        ({"name": "approve"}, 400, "input"),
        ({"name": "answer", "arguments": {"text": "yes"}}, 400, "input"),
        ({"name": "explode"}, 404, "command_unknown"),
        ({"name": "cancel", "arguments": {"force": "yes"}}, 400, "input"),
        ({"name": "cancel", "more": 1}, 422, "request"),
        ({}, 422, "request"),
    ],
)
def test_commands_when_they_can_not_be_carried_out_then_told_why(
    place: Place, body: dict[str, Any], status: int, code: str
) -> None:
    """A command outside the table changes nothing and is answered with what there is."""
    answer = place.http.post(f"/runs/{place.mended}/commands", json=body)
    assert problem(answer) == (status, code)


def test_cancel_when_the_run_has_ended_then_it_stays_as_it_ended(place: Place) -> None:
    """An ended run can't be cancelled into something else."""
    answer = place.http.post(f"/runs/{place.mended}/commands", json={"name": "cancel"}).json()
    assert answer["message"] == f"{place.mended} had ended already: verified"
    assert answer["run"]["outcome"] == "verified"


def test_cancel_when_the_run_is_live_then_it_ends_as_cancelled_and_the_stream_tells(place: Place) -> None:
    """The command reaches the worker, which ends the run; the open stream says so."""
    repo = make_repo(place.home.root / "live", {"a.txt": "1\n"})
    number = place.seeds.new(goal="to be cancelled", workspace=repo, check="true")
    offered = {c["name"]: bool(c["confirm"]) for c in place.get(f"/runs/r{number}")["commands"]}
    assert offered == {"steer": False, "pause": False, "raise": False, "cancel": True}
    kinds: list[str] = []
    with place.http.stream("GET", f"/runs/r{number}/events") as events:
        answer = place.http.post(f"/runs/r{number}/commands", json={"name": "cancel"})
        assert answer.json()["message"] == f"r{number} is being stopped, with everything it started."
        for event in told(events):
            kinds.append(event["kind"])
            if event["kind"] == "ended":
                assert event["data"]["outcome"] == "cancelled"
                break
    assert kinds[:2] == ["queued", "cancel"]
    assert place.get(f"/runs/r{number}")["run"]["outcome"] == "cancelled"
    end_worker(place.home.path)
    forget(place, number)


def test_steer_and_raise_when_the_run_is_live_then_the_worker_will_find_them(place: Place) -> None:
    """Commands with arguments reach the store as the terminal's do: a word for the next step, and larger limits."""
    number = place.seeds.new(goal="to be steered", workspace=place.home.root / "steered", limits=Limits(money_usd=1.5))
    try:
        commands = f"/runs/r{number}/commands"
        steered = place.http.post(commands, json={"name": "steer", "arguments": {"text": "mind the tests"}})
        assert steered.json()["message"] == f"The next step of r{number} will know it."
        raised = place.http.post(commands, json={"name": "raise", "arguments": {"cap": 9, "minutes": "240"}})
        assert raised.json()["run"]["cap"] == 9
        budgets = {b["name"]: b["limit"] for b in place.get(f"/runs/r{number}")["budgets"]}
        assert budgets == {"iterations": 9, "tokens": 2_000_000, "seconds": 240 * 60, "money": 1.5}
        more = place.http.post(commands, json={"name": "raise", "arguments": {"money": "4.25"}})
        assert more.json()["run"]["money_usd"] == 4.25
        less = place.http.post(commands, json={"name": "raise", "arguments": {"cap": 2}})
        assert problem(less) == (400, "input")
        paused = place.http.post(commands, json={"name": "pause"})
        assert paused.json()["message"] == f"r{number} waits before its next step."
        rows = place.seeds.store.read("select kind, text from controls where run_id = ? order by id", number)
        assert [r["kind"] for r in rows] == ["steer", "raise", "raise", "pause"]
        assert rows[0]["text"] == "mind the tests"
    finally:
        place.seeds.store.end_run(number, RunOutcome.CANCELLED)
        forget(place, number)


def test_live_run_when_it_is_raised_or_told_what_can_not_be_then_refused_as_at_a_start(place: Place) -> None:
    """A limit that no start could have, and a text that is none, are refused in words, whatever number they hold."""
    number = place.seeds.new(goal="go on", workspace="/srv/live")
    place.seeds.store.update_run(number, status="running", started_at=1.0)
    path = f"/runs/r{number}/commands"
    for limit, value in (("cap", 1e300), ("cap", 101), ("cap", 7.5), ("tokens", 1e300), ("minutes", 1e308)):
        asked = {"name": "raise", "arguments": {limit: value}}
        assert problem(place.http.post(path, json=asked)) == (400, "input")
    torn = json.dumps({"name": "steer", "arguments": {"text": "half a \ud83d"}})
    told = place.http.post(path, content=torn, headers={"Content-Type": "application/json"})
    assert problem(told) == (400, "input")
    place.seeds.store.end_run(number, RunOutcome.CANCELLED, reason="by a person")


def test_undo_when_asked_for_then_the_files_are_as_before_the_run(place: Place, tmp_path: Path) -> None:
    """The button puts back what the run changed."""
    repo = make_repo(tmp_path / "undone", {"a.txt": "before\n"})
    number = place.seeds.new(goal="to be undone", workspace=repo)
    trees = Trees(repo, run_dir(place.home.path, f"r{number}"))
    start = trees.record()
    (repo / "a.txt").write_text("after\n")
    (repo / "b.txt").write_text("new\n")
    after = trees.record()
    place.seeds.store.update_run(number, start_tree=start)
    place.seeds.step(number, 1, "executor", 1, trees=(start, after))
    place.seeds.store.end_run(number, RunOutcome.FAILED, final_tree=after)
    try:
        answer = place.http.post(f"/runs/r{number}/commands", json={"name": "undo"})
        assert answer.json()["message"] == f"2 files are as before r{number}."
        assert (repo / "a.txt").read_text() == "before\n"
        assert not (repo / "b.txt").exists()
    finally:
        forget(place, number)


def told(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    """The events of a stream."""
    assert answer.headers["content-type"].startswith("text/event-stream")
    for line in answer.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line[6:])


def test_stream_when_taken_up_again_then_nothing_is_missed_or_repeated(place: Place) -> None:
    """A reader that comes back with the last id that it saw gets exactly what came after."""
    every = [dict(r) for r in place.seeds.store.events(int(place.mended[1:]))]
    ids: list[int] = []
    for _ in every:
        with place.http.stream(
            "GET", f"/runs/{place.mended}/events", params={"after": ids[-1] if ids else 0}
        ) as events:
            ids.append(next(told(events))["id"])
    assert ids == [e["id"] for e in every]


def test_stream_when_events_are_committed_then_they_arrive_in_order(place: Place) -> None:
    """A stream of all runs hands over what another process commits while it is open, whatever texts it holds."""
    after = place.get("/runs")["last_event"]
    with place.http.stream("GET", "/events", params={"after": after}) as events:
        source = told(events)
        for i in range(20):
            place.seeds.store.event(1, "tool", name="terminal", preview=f"call {i}{BREAKS}")
            got = next(source)
            assert (got["run_id"], got["kind"], got["data"]["preview"]) == ("r1", "tool", f"call {i}{BREAKS}")


def test_route_when_a_message_is_sent_then_decision_and_signals_and_nothing_starts(place: Place) -> None:
    """The routing page gets the decision with its reasons; no run begins."""
    before = place.get("/runs")["total"]
    told_implicit = place.http.post("/route", json={"text": "review the auth endpoint"}).json()
    assert (told_implicit["outcome"], told_implicit["route"]) == ("D", "review:security@backend-api")
    assert told_implicit["signals"]
    header = place.http.post("/route", json={"text": "matrix ralph cap=3: make the tests pass"}).json()
    assert (header["outcome"], header["role"], header["workflow"]) == ("A", "ralph", True)
    assert header["options"] == {"cap": 3}
    assert place.http.post("/route", json={"text": ""}).json()["outcome"] == "B"
    assert problem(place.http.post("/route", json={"text": "x" * 100_001})) == (422, "request")
    assert place.get("/runs")["total"] == before


def test_decisions_when_chats_made_some_then_told_session_by_session(place: Place) -> None:
    """The routing page gets what chats decided, with the signals: the newest session first, any other by its id."""
    assert place.get("/decisions")["sessions"] == []
    log = DecisionLog(place.home.path)
    for session, text in (("s one", "review the auth endpoint"), ("s/two", "hello"), ("s/two", "fix README typo")):
        log.add(session, text, decide(text))
    newest = place.get("/decisions")
    assert (newest["session_id"], newest["remembers"]) == ("s/two", True)
    assert [s["session_id"] for s in newest["sessions"]] == ["s/two", "s one"]
    assert [(d["message"], d["decision"]["outcome"]) for d in newest["decisions"]] == [
        ("fix README typo", "C"),
        ("hello", "B"),
    ]
    (one,) = place.get("/decisions", session="s one")["decisions"]
    assert one["decision"]["route"] == "review:security@backend-api"
    assert one["decision"]["signals"]
    assert place.get("/decisions", session="nobody")["decisions"] == []
    next(iter(log.folder.iterdir())).write_text('{"session_id": 1, "at": "x", "message": 2, "cut": 3, "decision": {}}')
    assert len(place.get("/decisions")["sessions"]) == 1


def test_settings_when_some_are_set_then_each_says_where_it_comes_from(place: Place) -> None:
    """Effective values are shown with their source, and read anew each time."""
    rows = {s["name"]: s for s in place.get("/settings")["settings"]}
    assert (rows["limits.cap"]["value"], rows["limits.cap"]["source"]) == ("5", "built-in default")
    assert (rows["limits.money"]["value"], rows["routing.remember"]["value"]) == ("0", "true")
    assert [name for name, row in rows.items() if not row["what"]] == []
    nest: Any = {"limits": {"cap": 9}, "kanban": {"mirror": "off"}}
    for key in reversed(SETTINGS):
        nest = {key: nest}
    place.home.configure(nest)
    told_now = place.get("/settings")
    rows = {s["name"]: s for s in told_now["settings"]}
    assert (rows["limits.cap"]["value"], rows["limits.cap"]["source"]) == ("9", told_now["file"])
    assert (rows["kanban.mirror"]["value"], rows["limits.minutes"]["source"]) == ("off", "built-in default")
    assert told_now["problem"] is None


def test_settings_when_the_file_is_wrong_then_the_problem_is_shown(place: Place) -> None:
    """A value that can't be used is named, with the file to mend."""
    nest: Any = {"limits": {"cap": 0}}
    for key in reversed(SETTINGS):
        nest = {key: nest}
    place.home.configure(nest)
    try:
        answer = place.get("/settings")
        assert "limits.cap" in answer["problem"]["message"]
        assert "mend" in answer["problem"]["next"]
    finally:
        place.home.configure({"plugins": {"entries": {"matrix_coder": {"settings": {"limits": {"cap": 5}}}}}})


def test_page_files_when_asked_for_then_script_and_style_are_served_and_sources_are_not(place: Place) -> None:
    """The host finds the page through its link, and hands out what a browser needs and nothing else."""
    base = f"{place.dashboard.url}/dashboard-plugins/matrix_coder"
    assert httpx.get(f"{base}/dist/index.js").status_code == 200
    assert httpx.get(f"{base}/dist/style.css").status_code == 200
    assert httpx.get(f"{base}/plugin_api.py").status_code == 404
    token = {"X-Hermes-Session-Token": place.http.headers["X-Hermes-Session-Token"]}
    pages = httpx.get(f"{place.dashboard.url}/api/dashboard/plugins", headers=token).json()
    (page,) = [p for p in pages if p["name"] == "matrix_coder"]
    assert (page["tab"]["path"], page["has_api"]) == ("/matrix", True)


def test_openapi_when_read_then_every_answer_has_a_shape(place: Place) -> None:
    """The API describes itself: each route and what it answers, errors included."""
    schema = httpx.get(f"{place.dashboard.url}/openapi.json").json()
    ours = {p: d for p, d in schema["paths"].items() if p.startswith(API)}
    assert len(ours) == len({path for _, path in ROUTES})
    for path, methods in ours.items():
        for told_method in methods.values():
            assert told_method["responses"]["404"]["content"]["application/json"]["schema"]["$ref"].endswith("Problem")
            if not path.endswith("/events"):
                answers = told_method["responses"]
                good = answers["201" if "201" in answers else "200"]["content"]["application/json"]["schema"]
                assert good["$ref"].startswith("#/components/schemas/")


def test_run_when_it_has_500_steps_then_told_whole(place: Place) -> None:
    """A long run comes whole, without the outputs and the cases of its checks."""
    number = place.seeds.new(goal="a long run", workspace=place.home.root / "long")
    evidence = Evidence(
        name="check-1",
        command="pytest -q",
        exit_code=1,
        duration_s=2,
        tree="ab" * 20,
        cases={f"t::case_{i}": "failed" if i < 40 else "passed" for i in range(300)},
        tail="x" * 4_000,
    )
    report = StepReport(verdict=StepVerdict.FAIL, summary="still red")
    place.seeds.step(number, 1, "verify", 1, report=report, evidence=[evidence])
    place.seeds.repeat(number, 500)
    place.seeds.store.end_run(number, RunOutcome.CAP_REACHED)
    try:
        answer = place.http.get(f"/runs/r{number}")
        steps = answer.json()["steps"]
        assert len(steps) == 500
        assert (steps[0]["evidence"][0]["cases"], len(steps[0]["evidence"][0]["failing"])) == (
            {"failed": 40, "passed": 260},
            20,
        )
        assert len(answer.content) < 2_000_000
    finally:
        forget(place, number)


def test_dashboard_when_no_run_was_ever_started_then_an_empty_list_and_no_store(tmp_path: Path) -> None:
    """Looking makes nothing: without a store the list is empty and a run is unknown; a stream waits. It can be
    stopped while a stream is open."""
    home = HermesHome(tmp_path, NOWHERE)
    dashboard = Dashboard(home)
    with dashboard.client() as http:
        assert http.get("/runs").json()["runs"] == []
        assert problem(http.get("/runs/r1")) == (404, "run_unknown")
        assert not (state_dir(home.path) / "runs.db").exists()
        with http.stream("GET", "/events") as events:
            number = Seeds(home.path).ended(RunOutcome.VERIFIED, "the first")
            source = told(events)
            assert next(source)["run_id"] == f"r{number}"
            assert dashboard.close() != -9
            assert {e["run_id"] for e in source} <= {f"r{number}"}


def test_store_when_a_newer_version_wrote_it_then_refused_with_the_way_out(tmp_path: Path) -> None:
    """A store that this version can't read is an answer, not a fault."""
    home = HermesHome(tmp_path, NOWHERE)
    store = Store(home.path)
    with sqlite3.connect(store.path) as db:
        db.execute("update meta set value = '999' where key = 'schema_version'")
    db.close()
    dashboard = Dashboard(home)
    try:
        with dashboard.client() as http:
            assert problem(http.get("/runs")) == (503, "store_too_new")
            assert problem(http.get("/runs/r1")) == (503, "store_too_new")
    finally:
        dashboard.close()


def test_directory_plugin_when_the_package_is_not_installed_then_the_api_is_served(tmp_path: Path) -> None:
    """The page's API works for a directory plugin as well, which the host loads under a name of its own."""
    site = tmp_path / "site"
    site.mkdir()
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if entry.suffix != ".pth" and not entry.name.lower().startswith(("matrix_coder", "_editable_impl_matrix")):
            (site / entry.name).symlink_to(entry)
    home = HermesHome(tmp_path / "root", NOWHERE)
    many(Seeds(home.path), 3)
    base = str(getattr(sys, "_base_executable", sys.executable))
    dashboard = Dashboard(home, program=[base, "-m", "hermes_cli.main"], env={"PYTHONPATH": str(site)})
    try:
        with dashboard.client() as http:
            assert [r["run_id"] for r in http.get("/runs").json()["runs"]] == ["r3", "r2", "r1"]
            assert http.post("/route", json={"text": "fix README typo"}).json()["outcome"] == "C"
    finally:
        dashboard.close()
