"""The page with much to show: it asks for parts and draws parts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from conftest import make_repo
from matrix_coder.core.models import Evidence, RunOutcome, StepReport, StepVerdict
from matrix_coder.engine.paths import run_dir
from matrix_coder.engine.workspace import Trees
from matrix_coder.testing import HermesHome
from webbench import Dashboard, Seeds, many

from .conftest import NOWHERE, Browser, Open

RUNS = 1_000
LINES = 160_000


class Large:
    """A dashboard over 1,000 runs, one of 500 steps and one with a diff of 5 MB."""

    def __init__(self, root: Path) -> None:
        home = HermesHome(root, NOWHERE)
        self.seeds = Seeds(home.path)
        many(self.seeds, RUNS)
        self.long = self._long()
        self.wide = self._wide(home, make_repo(root / "wide", {"a.txt": "1\n"}))
        self.dashboard = Dashboard(home)

    def _long(self) -> str:
        number = self.seeds.new(goal="a run of 500 steps", workspace="/srv/long")
        evidence = Evidence(name="check-1", command="pytest -q", exit_code=1, duration_s=2, tree="ab" * 20)
        report = StepReport(verdict=StepVerdict.FAIL, summary="still red")
        self.seeds.step(number, 1, "verify", 1, report=report, evidence=[evidence])
        self.seeds.repeat(number, 500)
        self.seeds.store.end_run(number, RunOutcome.CAP_REACHED)
        return f"r{number}"

    def _wide(self, home: HermesHome, repo: Path) -> str:
        number = self.seeds.new(goal="a diff of 5 MB", workspace=repo)
        directory = run_dir(home.path, f"r{number}")
        trees = Trees(repo, directory)
        start = trees.record()
        (repo / "a.txt").write_text("2\n")
        (repo / "big.txt").write_text("".join(f"this is the line number {i}\n" for i in range(LINES)))
        after = trees.record()
        self.seeds.store.update_run(number, start_tree=start)
        self.seeds.step(number, 1, "executor", 1, trees=(start, after))
        (directory / "diff.patch").write_text(trees.diff(start, after))
        assert (directory / "diff.patch").stat().st_size > 4_500_000
        self.seeds.store.end_run(number, RunOutcome.FAILED, changed=json.dumps(["a.txt", "big.txt"]))
        return f"r{number}"


@pytest.fixture(scope="module")
def large(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Large]:
    made = Large(tmp_path_factory.mktemp("large"))
    yield made
    made.dashboard.close()


def test_list_when_there_are_1000_runs_then_a_page_at_a_time(large: Large, open_page: Open) -> None:
    """The list shows 50 runs and then more on demand, each once, and a search reaches the oldest."""
    page = open_page(large.dashboard)
    rows = page.get_by_role("list", name="Runs").get_by_role("listitem")
    expect(rows).to_have_count(50)
    expect(page.get_by_text("50 runs of 1,002 shown")).to_be_visible()
    for shown in (100, 150, 200, 250):
        page.get_by_role("button", name="Show older runs").click()
        expect(rows).to_have_count(shown)
    ids = page.locator(".mc-cell-state .mc-dim").all_text_contents()
    assert ids == [f"r{n} ralph" for n in range(RUNS + 2, RUNS + 2 - 250, -1)]
    page.get_by_role("searchbox").fill("r1")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("fix the flaky test (1)")


def test_run_when_it_has_500_steps_then_all_are_there_and_open(large: Large, open_page: Open) -> None:
    """A long time line is whole, and its last step opens."""
    page = open_page(large.dashboard, f"#/runs/{large.long}")
    steps = page.locator(".mc-step-head")
    expect(steps).to_have_count(500)
    steps.last.click()
    expect(page.get_by_role("heading", name="Claimed by the specialist")).to_be_visible()


def test_diff_when_it_has_5_megabytes_then_folded_and_drawn_in_parts(large: Large, open_page: Open) -> None:
    """A large file is folded; opened, it draws a few hundred lines at a time, in both layouts."""
    page = open_page(large.dashboard, f"#/runs/{large.wide}/diff")
    big = page.locator(".mc-file", has_text="big.txt")
    expect(big).to_contain_text("large, folded")
    expect(page.get_by_role("region", name="Changes of a.txt")).to_be_visible()
    big.get_by_role("button", name=re.compile("big.txt")).click()
    expect(big.locator(".mc-line")).to_have_count(300)
    expect(big).to_contain_text("300 of 160,001 shown")
    big.get_by_role("button", name="Show more lines").click()
    expect(big.locator(".mc-line")).to_have_count(1_500)
    page.get_by_role("button", name="side by side").click()
    expect(big.locator(".mc-pair").first).to_be_visible()
    assert page.locator(".mc *").count() < 15_000
