"""What the Kanban mirror and the events cost a step: the same runs with the mirror off and on, in turns."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from pathlib import Path

PAIRS, STEPS = 4, 50
CONFIG = "plugins: {{entries: {{matrix_coder: {{settings: {{kanban: {{mirror: '{mirror}'}}}}}}}}}}\n"
CLOCK = """

_plain_show = MirrorThread._show


def _show(self, run_id):
    import os

    begun, worked = time.perf_counter(), time.thread_time()
    try:
        _plain_show(self, run_id)
    finally:
        line = f"{{time.perf_counter() - begun}} {{time.thread_time() - worked}}\\n"
        with open({path!r}, "a", encoding="utf-8") as file:
            file.write(line)


MirrorThread._show = _show
"""


def instrument(package: Path, clock: Path) -> None:
    """Have the mirror's thread note for each sync, in `clock`, the seconds that passed and those that it worked."""
    with (package / "hermes" / "kanban_thread.py").open("a") as file:
        file.write(CLOCK.format(path=str(clock)))


def measure(root: Path, clock: Path, repository: Callable, long_run: Callable) -> dict[str, list[float]]:
    """Seconds of each step by name and mirror, of each sync, of the thread for each step, and of an event."""
    found: dict[str, list[float]] = {"took": [], "worked": [], "events": [], "event": []}
    # The order turns round, so that what else the machine does falls on both alike.
    for turn, mirror in enumerate(("off", "workflows", "workflows", "off") * (PAIRS // 2)):
        home = root / f"mirror-{turn}"
        home.mkdir()
        (home / "config.yaml").write_text(CONFIG.format(mirror=mirror))
        clock.write_text("")
        client, number, _ = long_run(home, repository(home / "repository", 20), STEPS)
        for before, row in itertools.pairwise(client.store.step_rows(number)):
            found.setdefault(f"{row['step']} {mirror}", []).append(row["ended_at"] - before["ended_at"])
        if mirror == "workflows":
            syncs = [[float(word) for word in line.split()] for line in clock.read_text().splitlines()]
            found["took"] += [took for took, _ in syncs]
            # The first sync loads the host's board; it is no step's.
            found["worked"].append(sum(worked for _, worked in syncs[1:]) / STEPS)
            found["events"].append(len(client.store.events(number)) / STEPS)
    with client.store.kept_open():
        for _ in range(200):
            begun = time.perf_counter()
            client.store.event(number, "bench")
            found["event"].append(time.perf_counter() - begun)
    return found


def show(found: dict[str, list[float]], line: Callable[..., None]) -> None:
    """Print what `measure` found."""

    def ms(name: str) -> float:
        return statistics.median(found[name]) * 1e3

    for step in ("executor", "verify"):
        off, on = ms(f"{step} off"), ms(f"{step} workflows")
        line(f"Kanban mirror: {step} step without, with it, median", f"{off:.1f}, {on:.1f} ms", f"{on - off:+.1f} ms")
        # Where other work on the machine disturbs least.
        off, on = (statistics.quantiles(found[f"{step} {mirror}"])[0] * 1e3 for mirror in ("off", "workflows"))
        line("   lower quartile", f"{off:.1f}, {on:.1f} ms", f"{on - off:+.1f} ms; goal 5 ms")
    line("   its thread, work for each step", f"{ms('worked'):.1f} ms", "beside the step")
    line("   one sync, median", f"{ms('took'):.1f} ms", f"{len(found['took']) / PAIRS / STEPS:.1f} for each step")
    count, each = statistics.median(found["events"]), ms("event")
    line("events for each step", f"{count:.1f} x {each:.2f} ms", f"{count * each:.1f} ms, most of it in other writes")
