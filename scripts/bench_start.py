#!/usr/bin/env python3
"""Time the start of a step's process with the real host: started anew, and forked from the fork server.

    python scripts/bench_start.py [--turns 7]

Each attempt is a whole one: guard, host, a child that reports, against a scripted model on this machine. Shown is the
time from the attempt's begin until the child is at work, the two ways in turn, so that both meet the same load.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from matrix_coder.engine import forkserver
from matrix_coder.engine.dispatch import LAUNCHER, Job, run_attempt, step_environment
from matrix_coder.testing import HermesHome, Rule, ScriptedModel

REPORT = {"tool": "matrix_report", "args": {"verdict": "PASS", "summary": "done"}}


def attempt(root: Path, number: int) -> float:
    """Seconds until the child of one attempt is at work; it is then awaited to its end."""
    job = Job(
        cookie=f"bench-start/{number}",
        role="executor",
        writes=True,
        task=f"Matrix Coder run r1, step {number}: executor. See the context for what to do.",
        context="Report PASS.",
        workspace=root / "repo",
        directory=root / "repo",
        record=root / "records" / str(number),
        limit_s=60.0,
    )
    seen: list[float] = []
    begun = time.perf_counter()

    def on_event(kind: str, _: object) -> None:
        if kind == "child":
            seen.append(time.perf_counter() - begun)

    done = run_attempt(job, on_start=lambda *_: None, on_event=on_event, stop=lambda: "")
    if done.report is None:
        raise SystemExit(f"no report: {(job.record / 'process.log').read_text()[-2000:]}")
    return seen[0]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--turns", type=int, default=7)
    turns = options.parse_args().turns
    rules = [Rule(match=r"step \d+: ", steps=(REPORT, {"text": "done"}))]
    with tempfile.TemporaryDirectory() as folder, ScriptedModel(rules) as model:
        root = Path(folder).resolve()
        home = HermesHome(root, model.base_url)
        os.environ.clear()
        os.environ.update(home.environment())
        (root / "repo").mkdir()
        subprocess.run(["git", "init", "-q"], cwd=root / "repo", check=True)
        begun = time.perf_counter()
        command = [sys.executable, str(LAUNCHER), "forkserver"]
        forkserver.start(command, step_environment(os.environ), root / "server.log")
        server = forkserver.current()
        if server is None or not server.wait(lambda: False):
            raise SystemExit("there is no fork server on this system")
        loaded = time.perf_counter() - begun
        anew, forked = [], []
        for turn in range(turns):
            forked.append(attempt(root, 2 * turn))
            forkserver._current.clear()
            anew.append(attempt(root, 2 * turn + 1))
            forkserver._current.append(server)
        forkserver.stop()
    one, other = statistics.median(anew), statistics.median(forked)
    print(f"a step's process until its child is at work, started anew: {one * 1e3:.0f} ms, the baseline")
    print(f"   forked: {other * 1e3:.0f} ms, {one / other:.1f} x as fast ({(one - other) * 1e3:.0f} ms for each step)")
    print(f"   the server loads the host once for each worker, beside the run's opening: {loaded * 1e3:.0f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
