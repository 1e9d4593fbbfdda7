"""The commands of the dashboard's API, carried out by a real worker on real runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import CALC, TEST_CALC, make_repo
from contract.runbench import MEND, says, scripts
from matrix_coder.testing import HermesHome, Rule, ScriptedModel
from webbench import Dashboard, end_worker

GOOD, BAD, WORSE = (f"def value() -> int:\n    return {n}\n" for n in (1, 0, 2))


class Place:
    """A dashboard over a home whose worker works with a scripted model."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.begun, self.go_on = root / "begun", root / "go-on"
        held = {"tool": "terminal", "args": {"command": "true"}, "touch": str(self.begun), "until": str(self.go_on)}
        self.model = ScriptedModel(
            [
                Rule(match=r"step \d+: plan\b", steps=says("PASS", units=[unit("a"), unit("b")])),
                Rule(match=r"step \d+: units/a\b", steps=says("PASS", write("a.py", GOOD))),
                Rule(match=r"step \d+: units/b\b", steps=says("FAIL", write("b.py", WORSE))),
                *scripts(
                    executor=[
                        says("BLOCKED", summary="Which sum is it?", open_questions=["Which sum is it?"]),
                        says("PASS", held),
                        says("PASS", MEND),
                    ],
                    aggregate=[says("PASS")],
                    verify=[says("FAIL"), says("PASS")],
                ),
            ]
        ).start()
        self.home = HermesHome(root, self.model.base_url)
        self.dashboard = Dashboard(self.home)
        self.http = self.dashboard.client()

    def run(self, run_id: str) -> Any:
        return self.http.get(f"/runs/{run_id}").json()

    def give(self, run_id: str, name: str, status: int = 200, **arguments: Any) -> Any:
        """Give a command; the answer."""
        answer = self.http.post(f"/runs/{run_id}/commands", json={"name": name, "arguments": arguments})
        assert answer.status_code == status, answer.text
        return answer.json()

    def until(self, what: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 90
        while not what():
            assert time.monotonic() < deadline, "not seen in 90 s"
            time.sleep(0.1)

    def ended(self, run_id: str) -> str:
        """The outcome of a run, once it is there."""
        self.until(lambda: self.run(run_id)["run"]["outcome"] is not None)
        return str(self.run(run_id)["run"]["outcome"])

    def close(self) -> None:
        self.go_on.touch()
        self.http.close()
        self.dashboard.close()
        end_worker(self.home.path)
        self.model.close()


def unit(name: str) -> dict[str, Any]:
    return {"name": name, "role": "executor", "goal": f"mend {name}", "files": [f"{name}.py"]}


def write(path: str, content: str) -> dict[str, Any]:
    return {"tool": "write_file", "args": {"path": path, "content": content}}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("commands"))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _environment(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that this process starts is that of the home."""
    for name, value in place.home.environment().items():
        monkeypatch.setenv(name, value)


def test_run_when_led_over_http_then_answer_steer_pause_resume_raise_and_undo_reach_it(place: Place) -> None:
    """A run that asks, waits, comes to its cap and is verified in the end, led by nothing but the API."""
    repo = make_repo(place.root / "calc", {"calc.py": CALC, "test_calc.py": TEST_CALC})
    start = {
        "workflow": "ralph",
        "goal": "make the tests pass",
        "workspace": str(repo),
        "checks": ["pytest -q"],
        "cap": 1,
        "money": 1.0,
    }
    answer = place.http.post("/runs", json=start)
    assert answer.status_code == 201, answer.text
    run_id = answer.json()["run_id"]
    assert place.ended(run_id) == "blocked"
    assert place.run(run_id)["question"] == "Which sum is it?"
    assert place.give(run_id, "answer", text="add, of course")["message"] == f"{run_id} knows the answer and goes on."
    place.until(place.begun.exists)
    place.give(run_id, "steer", text="keep the names")
    place.give(run_id, "pause")
    place.go_on.touch()
    place.until(lambda: place.run(run_id)["run"]["status"] == "paused")
    assert "resume" in {c["name"] for c in place.run(run_id)["commands"]}
    assert place.give(run_id, "resume")["message"] == f"{run_id} goes on."
    assert place.ended(run_id) in ("cap_reached", "failed")
    told = str(place.model.bodies)
    assert "add, of course" in told
    assert "keep the names" in told
    raised = place.give(run_id, "raise", cap=2, money=2.5)["run"]
    assert (raised["cap"], raised["money_usd"]) == (2, 2.5)
    assert place.ended(run_id) == "verified"
    assert place.run(run_id)["run"]["unpriced_tokens"] > 0
    assert "a + b" in (repo / "calc.py").read_text()
    assert place.give(run_id, "undo")["message"] == f"1 file is as before {run_id}."
    assert (repo / "calc.py").read_text() == CALC


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"workflow": "nonsense"}, 400, "input"),
        ({"goal": " "}, 400, "input"),
        ({"workspace": "relative"}, 400, "input"),
        ({"workspace": "/nowhere/at/all"}, 400, "workspace_refused"),
        ({"approve": ["nonsense"]}, 400, "input"),
        ({"cap": 0}, 422, "request"),
        ({"session": "x"}, 422, "request"),
    ],
)
def test_start_when_it_can_not_be_then_nothing_begins_and_the_reason_is_told(
    place: Place, change: dict[str, Any], status: int, code: str
) -> None:
    """A start with something wrong is answered with what to do, and leaves no run."""
    repo = place.root / "none"
    if not repo.is_dir():
        make_repo(repo, {"a.txt": "1\n"})
    before = place.http.get("/runs").json()["total"]
    asked = {"workflow": "ralph", "goal": "g", "workspace": str(repo), "checks": ["true"]} | change
    answer = place.http.post("/runs", json=asked)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert answer.json()["next"]
    assert place.http.get("/runs").json()["total"] == before


def test_chat_when_a_message_was_routed_then_the_dashboard_shows_its_decision(place: Place) -> None:
    """What a chat of another process decided on a person's message is there with its signals, and nothing of steps."""
    done = place.home.chat("fix README typo")
    assert done.rc == 0, done.err
    answer = place.http.get("/decisions").json()
    (one,) = answer["decisions"]
    assert (one["message"], one["decision"]["outcome"]) == ("fix README typo", "C")
    assert one["decision"]["signals"]
    assert [s["session_id"] for s in answer["sessions"]] == [answer["session_id"]]


def test_isolated_units_when_led_over_http_then_approve_merge_take_and_drop_reach_them(place: Place) -> None:
    """A plan is approved, a unit that failed is mended and merged, and the result is taken into the repository."""
    files = {f"{n}.py": BAD for n in "ab"} | {
        f"test_{n}.py": f"from {n} import value\n\n\ndef test_{n}():\n    assert value() == 1\n" for n in "ab"
    }
    repo = make_repo(place.root / "units", files)
    start = {
        "workflow": "ultrawork",
        "goal": "make the tests pass",
        "workspace": str(repo),
        "approve": ["plan"],
        "isolate": True,
    }
    run_id = place.http.post("/runs", json=start).json()["run_id"]
    place.until(lambda: place.run(run_id)["run"]["status"] == "paused")
    assert place.run(run_id)["run"]["origin"] == str(repo)
    assert place.give(run_id, "approve")["message"] == f"{run_id} is approved and goes on."
    assert place.ended(run_id) != "verified"
    units = {s["unit"]["name"]: s["unit"] for s in place.run(run_id)["steps"] if s["unit"]}
    assert {n: u["state"] for n, u in units.items()} == {"a": "merged", "b": "failed"}
    assert units["b"]["owns"] == ["b.py"]
    (Path(units["b"]["checkout"]) / "b.py").write_text(GOOD)
    place.give(run_id, "merge", 202, unit="b")
    place.ended(run_id)
    last = {s["unit"]["name"]: s["unit"] for s in place.run(run_id)["steps"] if s["unit"]}["b"]
    assert (last["state"], last["command"]) == ("merged", "")
    assert (repo / "a.py").read_text() == BAD
    assert place.give(run_id, "take")["message"] == "2 files are brought into the repository."
    assert [(repo / f"{n}.py").read_text() for n in "ab"] == [GOOD, GOOD]
    (drop,) = [c for c in place.run(run_id)["commands"] if c["name"] == "drop"]
    assert drop["confirm"]
    place.give(run_id, "drop", unit=drop["arguments"][0]["choices"][0])
    assert "drop" not in {c["name"] for c in place.run(run_id)["commands"]}
