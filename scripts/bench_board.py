#!/usr/bin/env python3
"""Write a thousand cards while a dashboard page and twenty event streams are open: none may be lost or incomplete.

    python scripts/bench_board.py [--cards 1000] [--streams 20]

The cards are those of runs of two steps, each shown at each of its changes by the mirror's own thread. The dashboard
is the host's, the page a Chromium where there is one on PATH.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from boardload import BoardLoad


@contextlib.contextmanager
def page(url: str) -> Iterator[str]:
    """The board's own page, open in a browser; what is open."""
    chromium = next((p for n in ("chromium", "chromium-browser", "google-chrome") if (p := shutil.which(n))), "")
    if not chromium:
        yield "a reader that fetches the board twice a second (no Chromium on PATH)"
        return
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - a page is asked for only where there is one

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        browser.new_page().goto(f"{url}/kanban")
        yield "the board in Chromium, and a reader that fetches it twice a second"
        browser.close()


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--cards", type=int, default=1_000)
    options.add_argument("--streams", type=int, default=20)
    wanted = options.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.closing(BoardLoad(Path(folder), streams=wanted.streams)) as load,
        page(load.dashboard.url) as opened,
    ):
        begun = time.perf_counter()
        numbers = load.write(wanted.cards)
        written = time.perf_counter()
        events = load.assert_nothing_lost(numbers)
        seen = time.perf_counter() - written
        syncs = [s * 1e3 for s in load.syncs]
        print(f"open meanwhile: {opened}; {wanted.streams} event streams")
        print(f"cards: {len(numbers) * 3:,} of {len(numbers):,} runs, none lost, none incomplete, none double")
        print(f"written in {written - begun:.1f} s by {len(syncs):,} syncs")
        late = statistics.quantiles(syncs, n=100)[-1]
        print(f"one sync: median {statistics.median(syncs):.1f} ms, 99th of 100 {late:.1f} ms")
        print(f"events: {events:,}, seen by each stream {seen:.1f} s after the last card was written")
        faults = f"{load.failures} answers 500, {load.streams.broken} streams broken off"
        print(f"the dashboard's own faults meanwhile: {faults}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
