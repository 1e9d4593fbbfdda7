"""Commands about runs from two places at once, and about a workspace that another run works in."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from conftest import CALC, TEST_CALC, make_repo
from matrix_coder.core.errors import InputError, MatrixError, WorkspaceBusy
from matrix_coder.core.models import RunOutcome, RunStatus
from matrix_coder.engine.client import Client
from matrix_coder.engine.plan import load_plan
from matrix_coder.engine.spawn import WorkerLock
from webbench import Seeds


@pytest.fixture
def seeds(tmp_path: Path) -> Iterator[Seeds]:
    """Runs of a home in which no worker starts: this process holds its lock until the test ends."""
    made = Seeds(tmp_path / "home")
    lock = WorkerLock(made.home)
    assert lock.acquire()
    yield made
    lock.release()


def at_once(*calls: Callable[[], object]) -> list[object]:
    """What each call came to when all were made at the same moment: its answer, or its error."""
    found: list[object] = []
    start = threading.Barrier(len(calls))

    def make(call: Callable[[], object]) -> None:
        start.wait()
        try:
            found.append(call())
        except MatrixError as error:
            found.append(error)

    threads = [threading.Thread(target=make, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def waiting(seeds: Seeds, place: str) -> int:
    number = seeds.new(goal="mend it", workspace=place)
    seeds.store.update_run(number, status=RunStatus.PAUSED, reason="waiting for approval of the plan")
    return number


def test_approve_when_two_do_it_at_once_then_one_approval_is_given(seeds: Seeds) -> None:
    """Approvals are counted: a second one would approve, unseen, what the run waits for next."""
    for turn in range(10):
        number = waiting(seeds, f"/w/{turn}")
        clients = [Client(seeds.home) for _ in range(4)]
        found = at_once(*(partial(client.approve, f"r{number}") for client in clients))
        assert len(seeds.store.controls(number, "approve")) == 1
        assert sum(isinstance(one, InputError) for one in found) == 3
        assert seeds.store.run_row(number)["status"] == "queued"


def test_resume_when_the_run_waits_for_approval_then_refused_with_the_way_on(seeds: Seeds) -> None:
    """It would only wait again, and the chat be told so twice."""
    number = waiting(seeds, "/w/one")
    with pytest.raises(InputError, match=f"matrix-coder approve r{number}"):
        Client(seeds.home).resume(f"r{number}")
    assert Client(seeds.home).show(f"r{number}").status is RunStatus.PAUSED


def test_raise_when_two_limits_are_raised_at_once_then_both_are(seeds: Seeds) -> None:
    """Neither of two raises takes the other's back."""
    number = seeds.new(goal="mend it", workspace="/w/one")
    for turn in range(1, 11):
        cap, tokens = 5 + turn, 2_000_000 + turn
        one, other = Client(seeds.home), Client(seeds.home)
        at_once(
            partial(one.raise_limits, f"r{number}", cap=cap), partial(other.raise_limits, f"r{number}", tokens=tokens)
        )
        limits = load_plan(seeds.store, number).limits
        assert (limits.cap, limits.tokens) == (cap, tokens)


def test_undo_and_take_when_another_run_is_live_there_then_refused_and_nothing_changes(
    seeds: Seeds, tmp_path: Path
) -> None:
    """What an earlier run changed is not put back, nor a change brought, under the hands of the run at work there."""
    repo = make_repo(tmp_path / "repo", {"calc.py": CALC, "test_calc.py": TEST_CALC})
    mended = seeds.mended(repo, [{"notes.md": "# tried\n"}], goal="make the tests pass")
    live = seeds.new(goal="go on", workspace=repo)
    with pytest.raises(WorkspaceBusy, match=f"r{live} at work there"):
        Client(seeds.home).undo(f"r{mended}")
    assert (repo / "notes.md").is_file()
    elsewhere = make_repo(tmp_path / "checkout", {"calc.py": CALC, "test_calc.py": TEST_CALC})
    isolated = seeds.mended(elsewhere, [{"more.md": "# more\n"}], goal="make the tests pass")
    with seeds.store.transaction() as db:
        db.execute("update runs set options = json_object('origin', ?) where id = ?", (str(repo), isolated))
    with pytest.raises(WorkspaceBusy, match=f"r{live} at work there"):
        Client(seeds.home).take(f"r{isolated}")
    assert not (repo / "more.md").exists()
    seeds.store.end_run(live, RunOutcome.CANCELLED, reason="by a person")
    assert Client(seeds.home).take(f"r{isolated}") == ("more.md",)
    assert Client(seeds.home).undo(f"r{mended}") == ("notes.md",)
