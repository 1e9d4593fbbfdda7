"""The page while things happen: runs begin, move on and are stopped, and the dashboard goes away and comes back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import expect

from conftest import CALC, TEST_CALC, make_repo
from matrix_coder.core.models import RunOutcome, StepReport, StepVerdict
from matrix_coder.engine.client import Client, Start
from matrix_coder.engine.procs import COOKIE
from matrix_coder.testing import HermesHome, Rule, ScriptedModel
from webbench import Dashboard, Seeds, end_worker

from .conftest import NOWHERE, Open, Place, Shoot, folder_for


def attempts_of(home: Path) -> int:
    """How many processes of any step of this home are there."""
    count = 0
    for process in psutil.process_iter():
        try:
            count += process.environ().get(COOKIE, "").startswith(str(home))
        except psutil.Error:
            continue
    return count


def test_run_when_it_begins_works_and_is_cancelled_then_the_page_shows_each_without_a_reload(
    open_page: Open,
    shoot: Shoot,
    scripted_model: Callable[..., ScriptedModel],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From an empty list to a live run of a real specialist, which the button ends with everything it started."""
    root = folder_for(tmp_path)
    repo = make_repo(root / "shop", {"calc.py": CALC, "test_calc.py": TEST_CALC})
    begun, go_on = root / "begun", root / "go-on"
    listing = {"tool": "terminal", "args": {"command": "ls"}}
    held = {"touch": str(begun), "until": str(go_on), "text": "done"}
    model = scripted_model([Rule(match=r"step \d+: executor", steps=(listing, held))])
    home = HermesHome(root / "home", model.base_url)
    for name, value in home.environment().items():
        monkeypatch.setenv(name, value)
    dashboard = Dashboard(home)
    try:
        page = open_page(dashboard)
        expect(page.get_by_role("heading", name="No runs yet")).to_be_visible()
        shoot(page, "empty-dark-wide")
        expect(page.get_by_role("status", name="Updates: connected")).to_be_visible()
        start = Start(workflow="ralph", goal="make the tests pass", workspace=repo, commands=("pytest -q",))
        run = Client(home.path).start(start)
        row = page.get_by_role("list", name="Runs").get_by_role("listitem")
        expect(row).to_contain_text(re.compile("(live|queued).*r1 ralph.*make the tests pass", re.DOTALL))
        row.get_by_role("link").click()
        step = page.locator(".mc-step-head")
        expect(step).to_contain_text(re.compile("1. executor.*running"))
        expect(page.get_by_role("region", name="Verified by")).to_contain_text("FAIL 1/2")
        page.get_by_role("tab", name=re.compile("Events")).click()
        expect(page.locator(".mc-events")).to_contain_text("terminal ls")
        page.get_by_role("tab", name=re.compile("Steps")).click()
        shoot(page, "live-dark-wide")
        assert begun.exists()

        page.get_by_role("button", name="Cancel run").click()
        page.get_by_role("dialog").get_by_role("button", name="Go back").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert not Client(home.path).store.cancelled(1)
        page.get_by_role("button", name="Cancel run").click()
        shoot(page, "cancel-dark-wide")
        page.get_by_role("dialog").get_by_role("button", name="Cancel run").click()
        expect(page.locator(".mc-head-top")).to_contain_text("cancelled")
        # That it is being stopped is no news any more.
        expect(page.locator(".mc-said")).to_have_text("")
        expect(page.get_by_role("button", name="Cancel run")).to_have_count(0)
        assert Client(home.path).wait(run.run_id, timeout_s=30).outcome is RunOutcome.CANCELLED
        assert attempts_of(home.path) == 0
    finally:
        go_on.touch()
        dashboard.close()
        end_worker(home.path)


def test_list_when_a_run_moves_on_then_its_row_does(busy_place: Place, open_page: Open) -> None:
    """A new run appears at the top by itself, and its outcome when it ends."""
    page = open_page(busy_place.dashboard)
    rows = page.get_by_role("list", name="Runs").get_by_role("listitem")
    expect(page.get_by_role("status", name="Updates: connected")).to_be_visible()
    number = busy_place.seeds.new(goal="appears by itself", workspace=busy_place.root / "appears")
    expect(rows.first).to_contain_text(re.compile("queued.*appears by itself", re.DOTALL))
    busy_place.seeds.store.end_run(number, RunOutcome.STALLED, reason="went in circles")
    expect(rows.first).to_contain_text(re.compile("stalled.*went in circles", re.DOTALL))


def test_run_page_when_steps_end_then_the_time_line_grows(busy_place: Place, open_page: Open) -> None:
    """Steps, claims and events arrive on the open page as they are committed."""
    number = busy_place.seeds.new(goal="grows", workspace=busy_place.root / "grows")
    page = open_page(busy_place.dashboard, f"#/runs/r{number}")
    expect(page.get_by_text("No step has begun")).to_be_visible()
    for index in range(1, 4):
        report = StepReport(verdict=StepVerdict.UNVERIFIABLE, summary=f"saying number {index}")
        busy_place.seeds.step(number, index, "executor", index, report=report)
        expect(page.locator(".mc-step")).to_have_count(index)
        expect(page.locator(".mc-step-summary").last).to_have_text(f"saying number {index}")
    busy_place.seeds.store.end_run(number, RunOutcome.CAP_REACHED, reason="three of three")
    expect(page.locator(".mc-head-top")).to_contain_text("cap reached")


def test_page_when_the_dashboard_comes_back_then_nothing_was_missed(open_page: Open, tmp_path: Path) -> None:
    """While the dashboard is away the page says so; when it is back, what happened meanwhile is there, once."""
    home = HermesHome(tmp_path, NOWHERE)
    seeds = Seeds(home.path)
    number = seeds.new(goal="goes on without a witness", workspace=tmp_path / "away")
    first = Dashboard(home)
    page = open_page(first, f"#/runs/r{number}/events")
    events = page.locator(".mc-events li")
    expect(events).to_have_count(1)
    first.close()
    expect(page.get_by_role("status", name="Updates: reconnecting").first).to_be_visible()
    for i in range(5):
        seeds.store.event(number, "tool", name="terminal", preview=f"unseen {i}")
    second = Dashboard(home, port=first.port)
    try:
        expect(events).to_have_count(6)
        seeds.store.event(number, "tool", name="terminal", preview="seen")
        expect(events).to_have_count(7)
        told = [e.split("terminal ")[1] for e in events.all_text_contents() if "terminal" in e]
        assert told == [*(f"unseen {i}" for i in range(5)), "seen"]
    finally:
        second.close()


def test_page_when_the_store_can_not_be_read_then_the_way_out_and_back(open_page: Open, tmp_path: Path) -> None:
    """A store that this version can't use is told with what to do; trying again works once it is mended."""
    home = HermesHome(tmp_path, NOWHERE)
    seeds = Seeds(home.path)
    seeds.ended(RunOutcome.VERIFIED, "an old run")
    with seeds.store.transaction() as db:
        (version,) = db.execute("select value from meta where key = 'schema_version'").fetchone()
        db.execute("update meta set value = '999' where key = 'schema_version'")
    dashboard = Dashboard(home)
    try:
        page = open_page(dashboard)
        expect(page.get_by_role("alert")).to_contain_text(re.compile("newer matrix-coder.*upgrade", re.DOTALL))
        with seeds.store.transaction() as db:
            db.execute("update meta set value = ? where key = 'schema_version'", (version,))
        page.get_by_role("button", name="Try again").click()
        expect(page.get_by_role("list", name="Runs")).to_contain_text("an old run")
        bad = {"plugins": {"entries": {"matrix_coder": {"settings": {"limits": {"cap": 0}}}}}}
        (home.path / "config.yaml").write_text(
            json.dumps(home.config | {"plugins": home.config["plugins"] | bad["plugins"]})
        )
        page.get_by_role("link", name="Settings").click()
        expect(page.get_by_role("alert")).to_contain_text("limits.cap")
    finally:
        dashboard.close()


def test_page_when_a_view_is_opened_while_the_dashboard_is_away_then_it_comes_by_itself(
    open_page: Open, tmp_path: Path
) -> None:
    """A view that could not be asked for is told as such, and is there once the dashboard answers again."""
    home = HermesHome(tmp_path, NOWHERE)
    number = Seeds(home.path).ended(RunOutcome.VERIFIED, "seen at last")
    first = Dashboard(home)
    page = open_page(first, "#/routing")
    first.close()
    page.evaluate(f"location.hash = '#/runs/r{number}'")
    expect(page.get_by_role("alert")).to_contain_text("does not answer")
    second = Dashboard(home, port=first.port)
    try:
        expect(page.locator(".mc-head")).to_contain_text("seen at last")
    finally:
        second.close()
