"""A real dashboard in a headless Chromium. Where there is no Chromium, these tests say so and are skipped."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from conftest import CALC, TEST_CALC, make_repo
from matrix_coder.core.intent_gate import decide
from matrix_coder.hermes.decisions import DecisionLog
from matrix_coder.testing import HermesHome
from webbench import TOKEN, Dashboard, Seeds, end_worker, seed_outcomes

CHROMIUM = next((p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), "")
DARK, LIGHT = "default", "nous-blue"
WIDE, NARROW = (1600, 1000), (390, 844)
DECIDED = (
    ("20261130_094500_77ab21", "what a nice morning"),
    ("20261130_081500_3fa9c1", "hello, who are you?"),
    ("20261130_081500_3fa9c1", "fix README typo"),
    ("20261130_081500_3fa9c1", "matrix ralph cap=5: make the tests pass"),
    ("20261130_081500_3fa9c1", "the cart total is wrong since the refund change, find out why"),
)
NOWHERE = "http://127.0.0.1:9/v1"
FOREVER_MS = 30_000
SHOTS = os.environ.get("MATRIX_SCREENSHOTS", "")
KEPT = {
    *(
        f"{view}-dark-wide"
        for view in ("empty", "runs", "live", "cancel", "run", "units", "diff", "events", "routing", "settings")
    ),
    *(
        "run-light-wide",
        "diff-light-wide",
        "runs-light-narrow",
        "run-dark-narrow",
        "diff-light-narrow",
        "units-light-narrow",
    ),
}

# How long anything may take to be seen: long, since machines differ; what is wrong is never seen.
expect.set_options(timeout=FOREVER_MS)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests."""
    if not CHROMIUM:
        pytest.skip("no Chromium on PATH: the page was not looked at; install Debian's chromium")
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


class Place:
    """A dashboard over a home with runs of every outcome."""

    def __init__(self, root: Path) -> None:
        self.home = HermesHome(root, NOWHERE)
        self.seeds = Seeds(self.home.path)
        seed_outcomes(self.seeds)
        self.root = root
        self.dashboard = Dashboard(self.home)

    def close(self) -> None:
        self.dashboard.close()
        end_worker(self.home.path)


@pytest.fixture(scope="session")
def place(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A dashboard to look at: its runs stay as they are. r10 has steps, trees, checks and outputs, r11 units; chats
    have decided."""
    made = Place(folder_for(tmp_path_factory.mktemp("browser")))
    repo = make_repo(made.root / "shop", {"calc.py": CALC, "test_calc.py": TEST_CALC})
    edits = [{"notes.md": "# tried\n"}, {"calc.py": CALC.replace("a - b", "a + b"), "docs/how to.md": "# how\n"}]
    assert made.seeds.mended(repo, edits, goal="make the tests pass") == 10
    prices = make_repo(made.root / "prices", {"tests/test_api.py": "", "docs/index.md": "# shop\n"})
    assert made.seeds.fanned(prices, goal="show the prices in the shop, its API and its docs") == 11
    log = DecisionLog(made.home.path, clock=made.seeds.clock)
    for session, text in DECIDED:
        made.seeds.clock.now += 40
        log.add(session, text, decide(text))
    yield made
    made.close()


@pytest.fixture(scope="session")
def busy_place(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A dashboard whose runs a test may add to."""
    made = Place(tmp_path_factory.mktemp("busy"))
    yield made
    made.close()


Open = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens a view of a dashboard: `open_page(dashboard, "#/runs", theme=LIGHT, size=NARROW)`.

    A page may not raise an error, log one of ours, open a dialog or ask anything of another machine.
    """
    faults: list[str] = []
    contexts = []

    def show(
        dashboard: Dashboard,
        hash_: str = "#/runs",
        *,
        theme: str = DARK,
        size: tuple[int, int] = WIDE,
        motion: bool = True,
    ) -> Page:
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, reduced_motion="no-preference" if motion else "reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(FOREVER_MS)
        answered = {"X-Hermes-Session-Token": TOKEN}
        context.request.put(f"{dashboard.url}/api/dashboard/theme", data={"name": theme}, headers=answered)
        page.on("pageerror", lambda error: faults.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda r: r.url.startswith((dashboard.url, "data:", "blob:")) or faults.append(r.url))
        page.add_init_script(f"localStorage.setItem('hermes-dashboard-theme', '{theme}')")
        page.goto(f"{dashboard.url}/matrix{hash_}")
        page.locator(".mc").wait_for()
        return page

    yield show
    for context in contexts:
        context.close()
    assert faults == []


Shoot = Callable[[Page, str], None]


@pytest.fixture(scope="session")
def shoot(tmp_path_factory: pytest.TempPathFactory) -> Shoot:
    """Takes a picture of a page: `shoot(page, "run-dark-wide")`.

    With MATRIX_SCREENSHOTS=docs/screenshots the main ones are kept there; else they go to a place that is thrown away.
    """
    folder = Path(SHOTS) if SHOTS else tmp_path_factory.mktemp("shots")
    folder.mkdir(parents=True, exist_ok=True)

    def take(page: Page, name: str) -> None:
        if not SHOTS or name in KEPT:
            page.screenshot(path=str(folder / f"{name}.png"), animations="disabled")

    return take


def folder_for(tmp_path: Path) -> Path:
    """Where a test's home and repository lie: below a name that says nothing, when its pictures are kept."""
    return Path(tempfile.mkdtemp(prefix="demo-")) if SHOTS else tmp_path
