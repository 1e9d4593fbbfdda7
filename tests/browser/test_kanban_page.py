"""The host's own Kanban page, with a run in every state on its board."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from boardbench import BoardPlace


@pytest.fixture(scope="module")
def board(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoardPlace]:
    """A dashboard over a board with a run in each state."""
    made = BoardPlace(tmp_path_factory.mktemp("kanban"))
    yield made
    made.close()


def test_kanban_page_when_runs_are_in_every_state_then_it_shows_each_and_what_a_card_says(
    browser: Browser, board: BoardPlace
) -> None:
    """A run waiting for approval, its progress and way on; a red check that claims to be green; an outcome."""
    context = browser.new_context(viewport={"width": 1900, "height": 1000})
    page = context.new_page()
    page.goto(f"{board.dashboard.url}/kanban")
    running, approval, verified = (f"r{board.runs[state]}" for state in ("running", "approval", "verified"))
    for title in (
        f"{running} ralph · make the login tests pass",
        f"{approval} ralph · needs approval · drop Python 3.10",
        f"{verified} ralph · verified · make the login tests pass",
        f"{verified} · 1/5 verify · FAIL 13/15 (claims PASS)",
    ):
        expect(page.get_by_text(title, exact=True)).to_have_count(1)
    card = page.locator(".hermes-kanban-card", has_text=f"{running} ralph · make the login tests pass")
    expect(card).to_contain_text("2/3")
    expect(card).to_contain_text(f"matrix-{running}")
    page.get_by_text(f"{approval} ralph · needs approval · drop Python 3.10", exact=True).click()
    expect(
        page.get_by_text(re.compile(f"Waiting for approval of the executor: /matrix approve {approval}")).first
    ).to_be_visible()
    expect(page.get_by_text(f"Go on in chat: /matrix approve {approval}").first).to_be_visible()
    context.close()
