"""How fast the dashboard's page is: opening long runs, delivering events, drawing frames while it scrolls.

A real `hermes dashboard` and a headless Chromium over 1,000 runs, a run of 500 steps and a diff of 5 MB. Prints a
table; nothing is asserted, since the numbers are this machine's.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from browser.test_size import Large  # noqa: E402 - the tests' own seeds

FRAMES = """
async (css) => {
  const box = document.querySelector(css);
  let scroller = box;
  const scrolls = (e) => e.scrollHeight > e.clientHeight + 50 && /auto|scroll/.test(getComputedStyle(e).overflowY);
  while (scroller && !scrolls(scroller)) scroller = scroller.parentElement;
  scroller = scroller ?? document.scrollingElement;
  const times = [];
  let last = performance.now();
  for (let i = 0; i < 120; i++) {
    scroller.scrollTop += 120;
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    times.push(now - last);
    last = now;
  }
  return times;
}
"""
ARRIVALS = """
() => {
  window.arrived = [];
  new MutationObserver((changes) => {
    for (const c of changes) for (const n of c.addedNodes) if (n.tagName === 'LI') window.arrived.push(Date.now());
  }).observe(document.querySelector('.mc-events'), {childList: true});
}
"""


def row(name: str, value: str) -> None:
    print(f"{name:<58} {value:>24}")


def spread(times: list[float], unit: str = "ms") -> str:
    ordered = sorted(times)
    return f"{statistics.median(ordered):.0f} / {ordered[int(len(ordered) * 0.95)]:.0f} / {ordered[-1]:.0f} {unit}"


def opened(page: Page, address: str, css: str, count: int) -> float:
    """Milliseconds from asking for a view of the open page until it shows `count` of something."""
    page.evaluate("location.hash = '#/settings'")
    page.locator(".mc-settings").first.wait_for()
    begun = time.perf_counter()
    page.evaluate("address => { location.hash = address }", address)
    page.wait_for_function(f"document.querySelectorAll('{css}').length >= {count}", polling=5)
    return (time.perf_counter() - begun) * 1000


def loaded(browser: Any, url: str, css: str, count: int) -> float:
    """Milliseconds until a window of its own, with nothing loaded before, shows `count` of something."""
    page = browser.new_page(viewport={"width": 1600, "height": 1000})
    begun = time.perf_counter()
    page.goto(url, wait_until="commit")
    page.wait_for_function(f"document.querySelectorAll('{css}').length >= {count}", polling=5)
    took = (time.perf_counter() - begun) * 1000
    page.close()
    return took


def latencies(page: Page, large: Any, count: int = 40) -> list[float]:
    """Milliseconds from an event's commit to its line on the page."""
    number = large.seeds.new(goal="events", workspace="/srv/events")
    page.evaluate("address => { location.hash = address }", f"#/runs/r{number}/events")
    page.locator(".mc-events li").first.wait_for()
    page.evaluate(ARRIVALS)
    sent = []
    for i in range(count):
        large.seeds.store.event(number, "tool", name="terminal", preview=f"call {i}")
        sent.append(time.time() * 1000)
        time.sleep(0.217)
    page.wait_for_function(f"window.arrived.length >= {count}")
    return [a - s for a, s in zip(page.evaluate("window.arrived"), sent, strict=True)]


def main() -> int:
    """Measure and print; the exit code."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("no chromium on PATH: nothing measured")
        return 0
    folder = Path(tempfile.mkdtemp(prefix="matrix-coder-bench-"))
    large = Large(folder)
    try:
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": 1600, "height": 1000})
            page.goto(f"{large.dashboard.url}/matrix")
            page.locator(".mc-list li").first.wait_for()
            row("median / p95 / worst", "")
            row("list of 1,002 runs opens", spread([opened(page, "#/runs", ".mc-list li", 50) for _ in range(10)]))
            long = f"#/runs/{large.long}"
            row("run of 500 steps opens", spread([opened(page, long, ".mc-step-head", 500) for _ in range(10)]))
            fresh = f"{large.dashboard.url}/matrix{long}"
            times = [loaded(browser, fresh, ".mc-step-head", 500) for _ in range(10)]
            row("the same in a new window, the host's page included", spread(times))
            row("frame while its 500 steps scroll", spread(page.evaluate(FRAMES, ".mc-step")))
            wide = f"#/runs/{large.wide}/diff"
            row("diff of 5 MB opens", spread([opened(page, wide, ".mc-file", 2) for _ in range(10)]))
            page.locator(".mc-file h4 button").last.click()
            for _ in range(4):
                page.get_by_role("button", name="Show more lines").click()
            row("frame while 5,100 of its lines scroll", spread(page.evaluate(FRAMES, ".mc-line")))
            row("event, from its commit to the page", spread(latencies(page, large)))
            page.evaluate("location.hash = '#/runs'")
            for shown in range(100, 1_001, 50):
                page.get_by_role("button", name="Show older runs").click()
                page.wait_for_function(f"document.querySelectorAll('.mc-list li').length >= {shown}")
            row("frame while 1,000 runs scroll", spread(page.evaluate(FRAMES, ".mc-list li")))
            browser.close()
    finally:
        large.dashboard.close()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
