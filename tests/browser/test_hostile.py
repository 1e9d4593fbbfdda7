"""What models, files and people write is shown as text and does nothing."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from conftest import make_repo
from matrix_coder.core.intent_gate import decide
from matrix_coder.core.models import Evidence, Finding, RunOutcome, Severity, StepReport, StepVerdict, Unit
from matrix_coder.core.units import UnitState
from matrix_coder.engine.merge import Came
from matrix_coder.engine.paths import run_dir
from matrix_coder.engine.workspace import Trees
from matrix_coder.hermes.decisions import DecisionLog

from .conftest import NARROW, Open, Place
from .hostile import EVERY, HIDDEN, MARKUP

FOREIGN = (
    "script, iframe, object, embed, img, svg, video, audio, form:not(.mc-ask), style, link, base, meta, marquee, math"
)


@pytest.fixture(scope="module")
def hostile_run(busy_place: Place) -> str:
    """A run in which every text that somebody else writes is hostile."""
    repo = make_repo(busy_place.root / "hostile", {"a.txt": "1\n"})
    everything = "\n".join(EVERY)
    number = busy_place.seeds.new(goal=everything, workspace=repo, check=MARKUP[0], session=MARKUP[1])
    directory = run_dir(busy_place.home.path, f"r{number}")
    trees = Trees(repo, directory)
    start = trees.record()
    for i, text in enumerate(EVERY):
        name = text.replace("/", "_").replace("\0", "")[:60]
        (repo / f"{i} {name}").write_text(everything if i == 0 else text)
    after = trees.record()
    output = directory / "checks" / "step-1" / "check-1.log"
    output.parent.mkdir(parents=True)
    output.write_text(everything)
    evidence = Evidence(
        name="check-1",
        command=MARKUP[2],
        exit_code=1,
        duration_s=1,
        tree="ab" * 20,
        cases=dict.fromkeys(EVERY, "failed"),
        environment=MARKUP[3],
        output_path=str(output),
    )
    report = StepReport(
        verdict=StepVerdict.FAIL,
        summary=everything,
        findings=tuple(Finding(severity=Severity.HIGH, summary=t, file=t, line=1) for t in EVERY),
        open_questions=EVERY,
        positive_observations=EVERY,
        recommendation=everything,
        units=tuple(Unit(name=t, role=t, goal=t, files=(t,)) for t in MARKUP),
    )
    busy_place.seeds.store.update_run(number, start_tree=start, baseline="[]")
    busy_place.seeds.step(number, 1, "executor", 1, report=report, evidence=[evidence], trees=(start, after))
    busy_place.seeds.store.update_step(number, 1, note=everything, child_session=MARKUP[4])
    busy_place.seeds.step(number, 2, MARKUP[5].replace("/", "_"), 1)
    for i, text in enumerate(MARKUP[:20]):
        checkout = busy_place.root / f"{i} {text.replace('/', '_')}"
        checkout.mkdir(exist_ok=True)
        came = Came(
            unit=text, state=UnitState.FAILED, why=text, base=start, tree=after, files=(text,), checkout=str(checkout)
        )
        step = f"{MARKUP[5].replace('/', '_')}/{text}"
        busy_place.seeds.step(number, 3 + i, step, 1, role=text, came=came)
    busy_place.seeds.store.update_run(number, workflow=MARKUP[6], domain=MARKUP[7])
    for text in EVERY:
        busy_place.seeds.store.event(number, "tool", name=text, preview=text, refused=text)
    busy_place.seeds.store.event(number, "of a later version", text=everything)
    (directory / "diff.patch").write_text(trees.diff(start, after), encoding="utf-8", errors="surrogateescape")
    (directory / "report.md").write_text(everything)
    for i, text in enumerate(EVERY):
        DecisionLog(busy_place.home.path).add(MARKUP[i % 20], text, decide(text))
    board: dict[str, object] = {"kanban": {"board": "\n".join(MARKUP)}}
    for key in ("settings", "matrix_coder", "entries", "plugins"):
        board = {key: board}
    busy_place.home.configure(board)
    busy_place.seeds.store.end_run(
        number,
        RunOutcome.BLOCKED,
        reason=everything,
        question=everything,
        final_tree=after,
        changed=json.dumps(trees.changed(start, after)),
    )
    return f"r{number}"


def harmless(page: Page) -> None:
    """Nothing ran, nothing was built from a text, nothing hides."""
    assert page.evaluate("window.pwned === undefined")
    assert page.locator(".mc").locator(FOREIGN).count() == 0
    assert page.locator(".mc a:not([href^='#/'])").count() == 0
    expect(page.get_by_role("heading", name="Matrix").first).to_be_visible()


def shown_text(page: Page, css: str) -> str:
    """The text of the page's parts, as they hold it."""
    return "\n".join(page.locator(css).all_text_contents())


def test_hostile_texts_when_shown_in_a_run_then_they_are_text(
    busy_place: Place, open_page: Open, hostile_run: str
) -> None:
    """Goal, reason, question, reports, findings, cases, output and events: each hostile text stands there as it is."""
    assert len(EVERY) > 150
    page = open_page(busy_place.dashboard, f"#/runs/{hostile_run}")
    page.locator(".mc-step-head").first.click()
    folded = page.get_by_role("button", name="Show all")
    while folded.count():
        folded.first.click()
    page.get_by_role("button", name="Show output").click()
    expect(page.get_by_role("region", name="Output of the check")).to_contain_text("diff --git a/x b/x")
    harmless(page)
    for css in (
        ".mc-goal-big",
        ".mc-why",
        ".mc-question",
        ".mc-finding-text",
        ".mc-place",
        ".mc-bullets",
        ".mc-output",
    ):
        text = shown_text(page, css)
        missing = [t for t in MARKUP if t not in text]
        assert missing == [], css
    for _, mark in HIDDEN:
        expect(page.locator(".mc-finding-text .mc-hidden-char", has_text=mark).first).to_be_attached()
    page.get_by_role("button", name=f"Show {len(EVERY)} cases").click()
    expect(page.get_by_role("region", name="Cases of the check")).to_contain_text(MARKUP[0])
    for head in page.locator(".mc-units .mc-step-head").all():
        head.click()
    facts = shown_text(page, ".mc-unit-facts") + shown_text(page, ".mc-units .mc-step-name")
    assert [t for t in MARKUP[:20] if facts.count(t) < 4] == []
    harmless(page)
    page.get_by_role("tab", name="Events").click()
    expect(page.locator(".mc-events")).to_contain_text(MARKUP[-1].split("\n")[0])
    page.get_by_role("tab", name="Report").click()
    expect(page.get_by_role("region", name="The final report")).to_contain_text(MARKUP[0])
    harmless(page)


def test_hostile_files_when_shown_in_a_diff_then_they_are_text(
    busy_place: Place, open_page: Open, hostile_run: str
) -> None:
    """Names and lines of files can't break out of the diff, unified or side by side."""
    page = open_page(busy_place.dashboard, f"#/runs/{hostile_run}/diff")
    names = page.locator(".mc-file .mc-path")
    expect(names).to_have_count(100)
    page.get_by_role("button", name="Show more of").click()
    expect(names).to_have_count(len(EVERY))
    assert "0 " + MARKUP[0].replace("/", "_") in names.all_text_contents()
    for mode in ("unified", "side by side"):
        page.get_by_role("button", name=mode).click()
        lines = shown_text(page, ".mc-file:first-of-type .mc-code")
        assert [t for t in MARKUP if t not in lines] == []
        harmless(page)


def test_hostile_texts_when_shown_in_the_list_then_no_wider_than_the_window(
    busy_place: Place, open_page: Open, hostile_run: str
) -> None:
    """Endless words and walls of text neither widen the page nor push the other runs away, on a phone as well."""
    for size in (NARROW, (1600, 1000)):
        page = open_page(busy_place.dashboard, size=size)
        row = page.get_by_role("list", name="Runs").get_by_role("listitem").first
        expect(row).to_contain_text(hostile_run)
        box = row.bounding_box()
        assert box is not None
        assert box["height"] < 200
        page.evaluate(f"location.hash = '#/runs/{hostile_run}'")
        page.locator(".mc-step-head").first.click()
        page.locator(".mc-units .mc-step-head").first.click()
        width = page.evaluate("document.querySelector('.mc').scrollWidth - document.querySelector('.mc').clientWidth")
        assert width <= 0
        harmless(page)


def test_hostile_messages_when_routed_then_they_are_text(busy_place: Place, open_page: Open) -> None:
    """What is typed on the routing page comes back as text, with the places that decided marked."""
    page = open_page(busy_place.dashboard, "#/routing")
    for text in (*MARKUP[:6], HIDDEN[0][0], "review the auth endpoint " + MARKUP[0], "matrix ralph: " + MARKUP[2]):
        page.get_by_label("A message").fill(text)
        page.get_by_role("button", name="Show its route").click()
        visible = text if text != HIDDEN[0][0] else HIDDEN[0][1]
        expect(page.locator(".mc-message")).to_contain_text(visible)
        harmless(page)


def test_hostile_decisions_and_settings_when_shown_then_they_are_text(
    busy_place: Place, open_page: Open, hostile_run: str
) -> None:
    """Sessions and messages of chats, and values of the configuration file, are text on their pages."""
    page = open_page(busy_place.dashboard, "#/routing", size=NARROW)
    rows = page.locator(".mc-decisions > li")
    chosen = page.get_by_label("Chat session")
    for session in MARKUP[:3]:
        chosen.select_option(value=session)
        expect(rows.last).to_contain_text(session)
        rows.last.get_by_role("button").first.click()
        expect(rows.last.locator(".mc-message")).to_contain_text(session)
        harmless(page)
    width = page.evaluate("document.querySelector('.mc').scrollWidth - document.querySelector('.mc').clientWidth")
    assert width <= 0
    page.get_by_role("link", name="Settings").click()
    board = page.get_by_role("list", name="Settings").get_by_role("listitem").filter(has_text="kanban.board")
    expect(board).to_contain_text(MARKUP[0])
    assert [t for t in MARKUP if t not in (board.text_content() or "")] == []
    harmless(page)


def test_hostile_addresses_when_opened_then_an_error_in_words(busy_place: Place, open_page: Open) -> None:
    """An address that somebody sends can't make the page ask for anything but a run."""
    page = open_page(busy_place.dashboard)
    for name in ("<img src=x onerror=window.pwned=1>", "..%2f..%2fsettings", "r1%3Fx=1", "%E0%A4%A", "r1/../../x"):
        page.evaluate("name => { location.hash = '#/runs/' + name }", name)
        expect(page.locator(".mc-trouble, .mc-head, .mc-list").first).to_be_visible()
        harmless(page)
