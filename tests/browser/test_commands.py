"""Every button of a run: what it asks, what it does, and that it can be used without a mouse."""

from __future__ import annotations

import json
import re
import time

import pytest
from playwright.sync_api import Page, expect

from conftest import make_repo
from matrix_coder.core.models import RunOutcome
from matrix_coder.engine.client import Limits
from matrix_coder.engine.paths import run_dir
from matrix_coder.engine.workspace import Trees
from webbench import end_worker

from .conftest import NARROW, Open, Place

VIEWS = ("#/runs", "#/runs/r10", "#/runs/r11", "#/runs/r10/diff", "#/runs/r10/events", "#/routing", "#/settings")
MARK = """() => {
  const css = ['a[href]', 'button', 'input', 'select', 'textarea', '[tabindex]'].map(x => '.mc ' + x).join(', ');
  const all = [...document.querySelectorAll(css)].filter(e => !e.disabled && e.tabIndex >= 0 && e.checkVisibility());
  all.forEach((e, i) => { e.dataset.stop = String(i); });
  return all.length;
}"""
STOP = """() => {
  const e = document.activeElement;
  const ring = getComputedStyle(e).outlineStyle !== 'none' && parseFloat(getComputedStyle(e).outlineWidth) > 0;
  return {stop: e.dataset.stop ?? '', inside: Boolean(e.closest('.mc')), ring, what: e.outerHTML.slice(0, 120)};
}"""


def button(page: Page, name: str) -> None:
    """Press a button of the run by keyboard."""
    page.locator(".mc-commands").get_by_role("button", name=name).focus()
    page.keyboard.press("Enter")


def kinds(place: Place, number: int) -> list[str]:
    """The commands that were left for a run."""
    rows = place.seeds.store.read("select kind from controls where run_id = ? order by id", number)
    return [str(r["kind"]) for r in rows]


def test_buttons_of_a_live_run_when_pressed_by_keyboard_then_asked_once_and_carried_out(
    busy_place: Place, open_page: Open
) -> None:
    """Steer, pause and raise: a text that is missing is asked for, a dialog can be left, the new limits are shown."""
    limits = Limits(money_usd=1.5)
    number = busy_place.seeds.new(goal="to be steered", workspace=busy_place.root / "steered", limits=limits)
    try:
        page = open_page(busy_place.dashboard, f"#/runs/r{number}", size=NARROW)
        dialog, said = page.get_by_role("dialog"), page.locator(".mc-said")
        button(page, "Steer")
        expect(dialog.get_by_label("What the next step should know")).to_be_focused()
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        button(page, "Steer")
        dialog.get_by_role("button", name="Steer").click()
        expect(dialog).to_be_visible()
        assert kinds(busy_place, number) == []
        dialog.get_by_label("What the next step should know").fill("mind the <tests>")
        page.keyboard.press("Enter")
        expect(said).to_have_text(f"The next step of r{number} will know it.")
        button(page, "Pause")
        expect(said).to_have_text(f"r{number} waits before its next step.")
        button(page, "Raise limits")
        dialog.get_by_label("Iterations in all").fill("8")
        dialog.get_by_label("Dollars in all").fill("4.50")
        page.keyboard.press("Enter")
        expect(page.get_by_role("meter", name="Money")).to_have_attribute("aria-valuetext", "$0.00 of $4.50")
        expect(page.get_by_role("meter", name="Iterations")).to_have_attribute("aria-valuetext", "0 of 8")
        button(page, "Raise limits")
        dialog.get_by_label("Iterations in all").fill("2")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text(
            re.compile("a cap above 8; found 2.*limits only go up", re.DOTALL)
        )
        assert kinds(busy_place, number) == ["steer", "pause", "raise"]
        width = page.evaluate("document.querySelector('.mc').scrollWidth - document.querySelector('.mc').clientWidth")
        assert width <= 0
    finally:
        busy_place.seeds.store.end_run(number, RunOutcome.CANCELLED)


def test_buttons_of_an_ended_run_when_pressed_then_what_can_not_be_taken_back_is_asked_once(
    busy_place: Place, open_page: Open
) -> None:
    """Take, undo and drop ask before they touch files; a unit is merged by the worker, and the page says so."""
    origin = make_repo(busy_place.root / "origin", {"a.txt": "before\n"})
    copy = make_repo(busy_place.root / "copy", {"a.txt": "before\n"})
    number = busy_place.seeds.new(goal="to be taken and undone", workspace=copy)
    trees = Trees(copy, run_dir(busy_place.home.path, f"r{number}"))
    start = trees.record()
    (copy / "a.txt").write_text("after\n")
    after = trees.record()
    options = json.dumps({"origin": str(origin)})
    busy_place.seeds.store.update_run(number, start_tree=start, options=options)
    busy_place.seeds.step(number, 1, "executor", 1, trees=(start, after))
    busy_place.seeds.store.end_run(number, RunOutcome.UNVERIFIED, final_tree=after)
    page = open_page(busy_place.dashboard, f"#/runs/r{number}")
    dialog, said = page.get_by_role("dialog"), page.locator(".mc-said")
    for name, told in (
        ("Take changes", "1 file is brought into the repository."),
        ("Undo changes", "1 file is as before"),
    ):
        button(page, name)
        expect(dialog.get_by_role("button", name="Go back")).to_be_focused()
        page.keyboard.press("Enter")
        expect(dialog).to_have_count(0)
        button(page, name)
        dialog.get_by_role("button", name=name).click()
        expect(said).to_contain_text(told)
    assert (origin / "a.txt").read_text() == "after\n"
    assert (copy / "a.txt").read_text() == "before\n"

    repo = make_repo(busy_place.root / "fanned", {"a.txt": "1\n"})
    fanned = busy_place.seeds.fanned(repo, goal="units")
    page.evaluate(f"location.hash = '#/runs/r{fanned}'")
    button(page, "Merge a unit")
    expect(dialog.get_by_label("Unit").locator("option")).to_have_text(["web"])
    try:
        dialog.get_by_role("button", name="Merge a unit").click()
        expect(said).to_contain_text("web is being merged, after its checks")
        # Nothing stands in that checkout, so the run ends again as it had ended.
        until = time.monotonic() + 90
        while busy_place.seeds.store.run_row(fanned)["outcome"] is None and time.monotonic() < until:
            page.wait_for_timeout(100)
        expect(page.locator(".mc-head-top")).to_contain_text("failed")
    finally:
        end_worker(busy_place.home.path, on_its_way=True)
    button(page, "Drop a checkout")
    expect(dialog.get_by_role("button", name="Go back")).to_be_focused()
    dialog.get_by_role("button", name="Drop a checkout").click()
    expect(said).to_contain_text("Dropped for good:")
    expect(page.locator(".mc-commands").get_by_role("button", name="Drop a checkout")).to_have_count(0)
    assert not any((busy_place.home.path / "matrix_coder" / "units").glob(f"r{fanned}/*web"))


@pytest.mark.parametrize(
    ("name", "outcome", "values"),
    [
        ("Resume", RunOutcome.FAILED, {}),
        ("Answer", RunOutcome.BLOCKED, {"Your answer": "the sandbox"}),
        ("Approve", None, {}),
    ],
)
def test_buttons_when_a_run_waits_for_a_person_then_it_goes_on(
    busy_place: Place, open_page: Open, name: str, outcome: RunOutcome | None, values: dict[str, str]
) -> None:
    """Resume, answer and approve let a run go on; the page shows so, and the button is gone."""
    seeds = busy_place.seeds
    if outcome is not None:
        number = seeds.ended(outcome, f"to {name}", workspace=busy_place.root / name, question="Which one?")
    else:
        number = seeds.new(goal=f"to {name}", workspace=busy_place.root / name)
        seeds.store.update_run(number, status="paused", reason="waiting for approval of plan")
    try:
        page = open_page(busy_place.dashboard, f"#/runs/r{number}")
        button(page, name)
        for label, text in values.items():
            page.get_by_role("dialog").get_by_label(label).fill(text)
            page.keyboard.press("Enter")
        expect(page.locator(".mc-said")).to_contain_text("goes on.")
        events = [str(r["kind"]) for r in seeds.store.events(number)]
        assert "reopened" in events
        expect(page.get_by_role("tab", name=re.compile("Events"))).to_be_visible()
    finally:
        end_worker(busy_place.home.path, on_its_way=True)
        if seeds.store.run_row(number)["status"] != "ended":
            seeds.store.end_run(number, RunOutcome.CANCELLED)


def test_views_when_walked_by_the_tab_key_alone_then_every_stop_is_reached_and_seen(
    place: Place, open_page: Open
) -> None:
    """On each view the Tab key reaches all that can be used, in order, with a ring around it, and leaves again."""
    page = open_page(place.dashboard, motion=False)
    for view in VIEWS:
        page.evaluate("address => { location.hash = address }", view)
        page.locator(".mc-list li, .mc-settings li, .mc-decisions li, .mc-head").first.wait_for()
        expect(page.locator(".mc-spinner")).to_have_count(0)
        count = page.evaluate(MARK)
        page.locator(".mc-nav a").first.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        seen: list[int] = []
        for _ in range(count + 20):
            now = page.evaluate(STOP)
            if not now["inside"]:
                break
            assert now["ring"], (view, now["what"])
            seen += [int(now["stop"])] if now["stop"] else []
            page.keyboard.press("Tab")
        assert seen == list(range(count)), view
