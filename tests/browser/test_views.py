"""Every view of the page, as a person sees and uses it."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from matrix_coder.core.intent_gate import decide
from matrix_coder.core.names import Workflow
from matrix_coder.hermes.decisions import DecisionLog
from webbench import OUTCOMES

from .conftest import DARK, LIGHT, NARROW, WIDE, Open, Place, Shoot

VIEWS = {
    "runs": "#/runs",
    "run": "#/runs/r10",
    "units": "#/runs/r11",
    "diff": "#/runs/r10/diff",
    "events": "#/runs/r10/events",
    "report": "#/runs/r10/report",
    "routing": "#/routing",
    "settings": "#/settings",
}
GRAVE = ("serious", "critical")
# What stands beyond the page's edge and in nothing that scrolls.
CUT_OFF = """() => {
  const edge = document.querySelector('.mc').getBoundingClientRect().right + 1;
  const scrolls = '.mc-scroll, .mc-patch, .mc-output, .mc-tabs, .mc-nav, .mc-events';
  return [...document.querySelectorAll('.mc *')]
    .filter(e => e.getBoundingClientRect().right > edge && !e.closest(scrolls))
    .map(e => e.outerHTML.slice(0, 100));
}"""


def prepare(page: Page, view: str) -> None:
    """Bring a view into the state that has most to show."""
    if view == "run":
        page.get_by_role("button", name=re.compile("2. verify")).click()
        page.get_by_role("button", name="Show output").click()
        expect(page.get_by_text("assert -1 == 5")).to_be_visible()
    elif view == "units":
        page.get_by_role("button", name=re.compile("4. web")).click()
        page.get_by_role("button", name="Show what it changed").click()
        expect(page.get_by_text("def web() -> int:")).to_be_visible()
    elif view == "diff":
        expect(page.get_by_text("return a + b")).to_be_visible()
    elif view == "routing":
        page.get_by_role("button", name="review the auth endpoint").click()
        expect(page.get_by_text("review:security@backend-api")).to_be_visible()
        page.get_by_role("button", name=re.compile("the cart total is wrong")).click()
    elif view == "report":
        expect(page.get_by_text("# r10 ralph: verified")).to_be_visible()
    elif view == "events":
        expect(page.locator(".mc-events li").last).to_contain_text("ended")
    else:
        page.locator(".mc-list li, .mc-settings li").first.wait_for()


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("theme", [DARK, LIGHT], ids=["dark", "light"])
def test_views_when_shown_then_accessible_and_within_the_window(
    place: Place, open_page: Open, shoot: Shoot, theme: str, size: tuple[int, int]
) -> None:
    """In the host's dark and light themes, wide and narrow: no serious finding of axe-core, nothing cut off."""
    page = open_page(place.dashboard, theme=theme, size=size, motion=False)
    for view, address in VIEWS.items():
        page.evaluate("address => { location.hash = address }", address)
        prepare(page, view)
        found = Axe().run(page, context=".mc").response["violations"]
        grave = [(v["id"], [n["target"] for n in v["nodes"]][:3]) for v in found if v["impact"] in GRAVE]
        assert grave == [], view
        wider = page.evaluate("document.querySelector('.mc').scrollWidth - document.querySelector('.mc').clientWidth")
        beyond = page.evaluate("document.querySelector('.mc').getBoundingClientRect().right - window.innerWidth")
        assert (wider <= 0, beyond <= 0) == (True, True), view
        assert page.evaluate(CUT_OFF) == [], view
        page.locator(".mc").scroll_into_view_if_needed()
        page.evaluate("document.querySelector('.mc').scrollIntoView({block: 'start'})")
        shoot(page, f"{view}-{'dark' if theme == DARK else 'light'}-{'wide' if size == WIDE else 'narrow'}")


def test_list_when_opened_then_every_outcome_with_goal_iteration_and_cost(place: Place, open_page: Open) -> None:
    """One row for each run says how it ended, what it was for, how far it got and what it used."""
    page = open_page(place.dashboard)
    rows = page.get_by_role("list", name="Runs").get_by_role("listitem")
    expect(rows).to_have_count(len(OUTCOMES) + 2)
    mended = re.compile(r"verified.*r10 ralph.*make the tests pass.*2/5.*\$0\.19.*42k", re.DOTALL)
    expect(rows.nth(1)).to_contain_text(mended)
    expect(rows.first).to_contain_text(re.compile(r"failed.*r11 ultrawork.*1/1.*at least \$0\.16.*40k", re.DOTALL))
    for workflow in Workflow:
        expect(rows.filter(has_text=workflow.value).first).to_be_visible()
    for outcome, goal, _ in OUTCOMES:
        row = rows.filter(has_text=goal).last
        expect(row).to_contain_text(outcome.value.replace("_", " "))


def test_list_when_filtered_and_searched_then_narrowed(place: Place, open_page: Open) -> None:
    """Outcome buttons and the search narrow the list; what matches nothing says so."""
    page = open_page(place.dashboard)
    rows = page.get_by_role("list", name="Runs").get_by_role("listitem")
    page.get_by_role("button", name=re.compile("^tampered")).click()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("make CI green")
    page.get_by_role("button", name=re.compile("^all")).click()
    search = page.get_by_role("searchbox")
    search.fill("payment")
    expect(rows).to_have_count(1)
    search.fill("no such run")
    expect(page.get_by_text("No run matches.")).to_be_visible()


def test_run_when_opened_by_keyboard_alone_then_reached_and_read(place: Place, open_page: Open) -> None:
    """Without a mouse: from the list into a run, through its tabs with the arrow keys, into a step and back."""
    page = open_page(place.dashboard)
    page.get_by_role("list", name="Runs").get_by_role("link").nth(1).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="r10 ralph")).to_be_visible()
    page.get_by_role("tab", name=re.compile("Steps")).focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name=re.compile("Diff"))).to_be_focused()
    expect(page.get_by_text("return a + b")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name=re.compile("1. executor"))).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Claimed by the specialist")).to_be_visible()
    page.go_back()
    page.go_back()
    page.go_back()
    expect(page.get_by_role("list", name="Runs")).to_be_visible()


def test_run_when_opened_then_claimed_and_verified_stand_apart(place: Place, open_page: Open) -> None:
    """Proof, budgets and the time line: what a specialist says never looks like what the engine checked."""
    page = open_page(place.dashboard, "#/runs/r10")
    proof = page.get_by_role("region", name="Verified by the engine's own checks")
    expect(proof.locator("tbody tr")).to_contain_text(re.compile("pytest -q.*FAIL 1/2.*pass 2/2", re.DOTALL))
    expect(page.get_by_role("meter")).to_have_count(3)
    steps = page.locator(".mc-step-head")
    expect(steps).to_have_count(4)
    expect(steps.nth(0)).to_contain_text(re.compile("executor.*claimed.*PASS"))
    assert "verified" not in (steps.nth(0).text_content() or "")
    expect(steps.nth(1)).to_contain_text(re.compile("verify.*claimed.*FAIL.*verified.*FAIL 1/2"))
    expect(steps.nth(3)).to_contain_text(re.compile("verify.*claimed.*PASS.*verified.*pass 2/2"))


def test_step_when_opened_then_findings_cases_output_and_its_own_diff(place: Place, open_page: Open) -> None:
    """A step shows its findings with file and line, the failing cases, the whole output and what it changed."""
    page = open_page(place.dashboard, "#/runs/r10")
    page.get_by_role("button", name=re.compile("2. verify")).click()
    expect(page.locator(".mc-findings li").first).to_contain_text(re.compile("BLOCKER.*calc.py:5.*still subtracts"))
    expect(page.get_by_role("list", name="Failing cases")).to_contain_text("test_calc::test_add")
    page.get_by_role("button", name="Show 2 cases").click()
    expect(page.get_by_role("region", name="Cases of the check")).to_contain_text("test_calc::test_double")
    page.get_by_role("button", name="Show output").click()
    expect(page.get_by_role("region", name="Output of the check")).to_contain_text("1 failed, 1 passed")
    page.get_by_role("button", name=re.compile("3. executor")).click()
    page.get_by_role("button", name="Show what it changed").click()
    expect(page.get_by_role("region", name="Changes of calc.py")).to_contain_text("return a + b")


def test_run_when_it_has_a_money_budget_then_bar_totals_and_what_has_no_price(place: Place, open_page: Open) -> None:
    """Money used and allowed, in all, in each iteration and for each step; what has no price is said."""
    page = open_page(place.dashboard, "#/runs/r11")
    expect(page.get_by_role("meter", name="Money")).to_have_attribute("aria-valuetext", "$0.16 of $2.00")
    budgets = page.get_by_role("region", name="Budgets")
    expect(budgets).to_contain_text("Cost at least $0.16")
    expect(budgets).to_contain_text(
        "4,700 tokens of 39,880 had no price the host knows; the money budget does not count"
    )
    expect(page.locator(".mc-iteration")).to_contain_text("40k tokens, at least $0.16")
    expect(page.get_by_role("button", name=re.compile("1. plan"))).to_contain_text("$0.0477")
    expect(page.get_by_role("button", name=re.compile("4. web"))).to_contain_text("no price known")
    page.evaluate("location.hash = '#/runs/r10'")
    expect(page.get_by_role("region", name="Budgets")).to_contain_text("Cost $0.19")
    expect(page.get_by_role("meter", name="Money")).to_have_count(0)


def test_units_when_a_step_is_made_of_them_then_below_it_with_state_files_and_way_on(
    place: Place, open_page: Open
) -> None:
    """Each unit stands below its step: its state, why, what it may change and changed, its diff, how to take it."""
    page = open_page(place.dashboard, "#/runs/r11")
    units = page.get_by_role("list", name="Units of step 2").get_by_role("listitem")
    for at, state in enumerate(("api.*merged", "web.*failed", "docs.*empty", "survey.*done")):
        expect(units.locator(".mc-step-head").nth(at)).to_contain_text(re.compile(state, re.DOTALL))
    page.get_by_role("button", name=re.compile("4. web")).click()
    body = units.filter(has_text="Show the prices.")
    for text in ("red in its own checkout", "web.py", "4-web", "matrix-coder merge r11 web"):
        expect(body).to_contain_text(text)
    page.get_by_role("button", name="Show what it changed").click()
    expect(page.get_by_role("region", name="Changes of web.py")).to_contain_text("def web() -> int:")
    page.get_by_role("button", name=re.compile("6. survey")).click()
    expect(units.last).to_contain_text("where prices are shown today")
    page.get_by_role("button", name=re.compile("1. plan")).click()
    expect(page.get_by_text("Planned units")).to_be_visible()
    expect(page.get_by_role("button", name="Merge a unit")).to_be_visible()
    page.get_by_role("tab", name=re.compile("Events")).click()
    expect(page.locator(".mc-events")).to_contain_text("unit web is failed: red in its own checkout")


def test_diff_when_laid_side_by_side_then_old_and_new_face_each_other(place: Place, open_page: Open) -> None:
    """Unified or side by side: the removed line stands beside the added one."""
    page = open_page(place.dashboard, "#/runs/r10/diff")
    changes = page.get_by_role("region", name="Changes of calc.py")
    expect(changes.locator(".mc-line-del")).to_contain_text("return a - b")
    page.get_by_role("button", name="side by side").click()
    pair = changes.locator(".mc-pair", has_text="return a - b")
    expect(pair.locator(".mc-half").nth(1)).to_contain_text("return a + b")
    expect(page.get_by_role("region", name="Changes of docs/how to.md")).to_contain_text("# how")


def test_blocked_run_when_opened_then_its_question_is_shown(place: Place, open_page: Open) -> None:
    """What a run asks a person stands at the top, with the way to answer."""
    page = open_page(place.dashboard, "#/runs/r5")
    expect(page.locator(".mc-question")).to_contain_text("Which provider, and is its sandbox reachable")
    expect(page.get_by_role("button", name="Answer")).to_be_visible()


def test_report_when_there_is_none_then_said_and_unknown_runs_too(place: Place, open_page: Open) -> None:
    """A missing report, a missing diff and an unknown run are told in words, with what to do."""
    page = open_page(place.dashboard, "#/runs/r1/report")
    expect(page.get_by_text("The report is written when the run ends.")).to_be_visible()
    page.get_by_role("tab", name=re.compile("Diff")).click()
    expect(page.get_by_text("There is no diff")).to_be_visible()
    page.evaluate("location.hash = '#/runs/r4711'")
    expect(page.get_by_role("alert")).to_contain_text("found r4711")


def test_routing_when_a_message_is_typed_then_its_decision_and_signals(place: Place, open_page: Open) -> None:
    """The routing page shows where a message would go and what decided; nothing starts."""
    page = open_page(place.dashboard, "#/routing")
    page.get_by_label(re.compile("A message")).fill("add tests for the tokenizer module")
    page.keyboard.press("Control+Enter")
    decision = page.get_by_role("region", name="Decision", exact=True)
    expect(decision).to_contain_text(re.compile("D.*test.*score", re.DOTALL))
    expect(decision.locator("mark").first).to_be_visible()
    expect(page.get_by_role("region", name="Signals").locator("tbody tr").first).to_be_visible()
    page.get_by_role("button", name="plan a weekend trip").click()
    expect(decision).to_contain_text("not for Matrix Coder")
    page.get_by_role("button", name="matrix ralph cap=3").click()
    expect(decision).to_contain_text(re.compile("ralph.*cap.*3", re.DOTALL))


def test_decisions_when_chats_made_some_then_shown_by_session_with_their_signals(place: Place, open_page: Open) -> None:
    """The last decisions of the newest chat are there, of any other on demand, each with what decided."""
    page = open_page(place.dashboard, "#/routing")
    rows = page.get_by_role("list", name="Decisions, newest first").locator("> li")
    expect(rows).to_have_count(4)
    expect(rows.first).to_contain_text(re.compile("D.*the cart total is wrong.*debug", re.DOTALL))
    expect(rows.nth(1)).to_contain_text(re.compile("A.*matrix ralph cap=5.*ralph", re.DOTALL))
    expect(rows.nth(2)).to_contain_text(re.compile("C.*fix README typo", re.DOTALL))
    rows.first.get_by_role("button").click()
    expect(rows.first.get_by_role("region", name="Signals").locator("tbody tr").first).to_be_visible()
    expect(rows.first.locator("mark").first).to_be_visible()
    page.get_by_label("Chat session").select_option(index=1)
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("what a nice morning")
    text = "review the auth endpoint"
    DecisionLog(place.home.path).add("20261130_094500_77ab21", text, decide(text))
    page.get_by_role("button", name="Show the newest").click()
    expect(rows).to_have_count(2)


def test_settings_when_shown_then_value_and_source(place: Place, open_page: Open) -> None:
    """Each setting shows its value, where it comes from and what it is."""
    page = open_page(place.dashboard, "#/settings")
    row = page.get_by_role("list", name="Settings").get_by_role("listitem").filter(has_text="limits.cap")
    expect(row).to_contain_text(re.compile("5.*built-in default.*iterations that a run may start", re.DOTALL))
    money = page.get_by_role("listitem").filter(has_text="limits.money")
    expect(money).to_contain_text(re.compile("0.*built-in default.*dollars", re.DOTALL))
    expect(page.get_by_role("list", name="Installation")).to_contain_text("hermes-agent")
