#!/usr/bin/env python3
"""Time the engine: its own overhead for each step, tree records, growth over a long run, memory, the Kanban mirror.

    python scripts/bench_engine.py [--steps 1000] [--files 10000]

A ralph run whose check always fails goes on until its cap. The worker, its store, the guard, git and the checks are
the real ones. They run from a copy of this package in which three things differ: a step's process reports at once
instead of loading the host, each git or cp process that the engine starts leaves its time in a file, and so does each
sync of the Kanban mirror. What that costs a step is measured by other runs, with it and without it in turns.

Overhead of a step is the time from the end of the step before to its own end, less what the store has for its
process (from its start to its end, the guard's included) and for its checks.
"""

# ruff: noqa: PLC0415 - the copy can be imported once it is made

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import mirror_cost
import psutil

ROOT = Path(__file__).resolve().parent.parent
STEP = '''
"""A step that reports at once; one that writes counts in a file, so that no iteration is like the one before."""
import json, os, sys

def preload():
    pass

def main(job_file, channel):
    word = sys.stdin.readline().strip()
    with open(job_file, encoding="utf-8") as file:
        job = json.load(file)
    if job["writes"]:
        with open(os.path.join(job["directory"], "counter.txt"), "a", encoding="utf-8") as file:
            file.write("x\\n")
    for message in ({"kind": "report", "report": {"verdict": "PASS", "summary": "done"}}, {"kind": "end"}):
        os.write(channel, json.dumps({**message, "token": word}).encode() + b"\\n")
    return 0
'''
CLOCK = """

_plain_run = _run
_clock_file = os.open({path!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def _run(command, **options):
    import time

    begun = time.time()
    try:
        return _plain_run(command, **options)
    finally:
        ended = time.time()
        word = next((w for w in command[1:] if not w.startswith("-") and "=" not in w), "")
        os.write(_clock_file, f"{{ended}} {{ended - begun}} {{command[0]}}-{{word}}\\n".encode())
"""
CONFIG = "plugins: {entries: {matrix_coder: {settings: {kanban: {mirror: 'off'}}}}}\n"


def ms(values) -> float:
    return statistics.median(values) * 1e3 if values else float("nan")


def copy_package(root: Path, clock: Path) -> None:
    """The package under measurement, importable from `root` by this process and by the worker."""
    package = root / "matrix_coder"
    shutil.copytree(ROOT / "src" / "matrix_coder", package, ignore=shutil.ignore_patterns("__pycache__", "dist"))
    (package / "hermes" / "step_process.py").write_text(STEP)
    with (package / "engine" / "workspace.py").open("a") as file:
        file.write(CLOCK.format(path=str(clock)))
    sys.path.insert(0, str(root))


def repository(root: Path, files: int) -> Path:
    """A repository of so many small files."""
    for i in range(files):
        file = root / f"d{i // 100:03}" / f"f{i:05}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"value = {i}\n" * 20)
    quiet = ["git", "-c", "user.name=x", "-c", "user.email=x@example.invalid"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run([*quiet, *words], cwd=root, check=True, capture_output=True)
    return root


def plain_steps(root: Path):
    """A function that runs so many DBOS steps doing nothing, configured as the worker's are; the seconds of each."""
    from dbos import DBOS, DBOSPortableJSONSerializer

    DBOS(
        config={
            "name": "bench",
            "system_database_url": f"sqlite:///{root}/plain.db",
            "serializer": DBOSPortableJSONSerializer(),
            "enable_otlp": False,
            "log_level": "WARNING",
        }
    )
    times: list[float] = []

    def nothing() -> str:
        return "done"

    @DBOS.workflow(name="plain")
    def plain(count: int) -> int:
        for i in range(count):
            begun = time.perf_counter()
            DBOS.run_step({"name": f"{i}"}, nothing)
            times.append(time.perf_counter() - begun)
        return count

    DBOS.launch()

    def run(count: int) -> list[float]:
        plain(count)
        return times[-count:]

    return run


def long_run(home: Path, workspace: Path, steps: int):
    """Drive a run of so many steps; its number and the worker's memory in bytes by step."""
    from matrix_coder.engine.client import Client, Limits, Start
    from matrix_coder.engine.spawn import worker_pid

    client = Client(home)
    limits = Limits(cap=steps // 2, budget_s=36_000, tokens=10**9)
    start = Start(workflow="ralph", goal="go on", workspace=workspace, commands=("false",), limits=limits)
    run_id = client.start(start).run_id
    number = int(run_id[1:])
    memory: dict[int, int] = {}
    while True:
        row = client.store.read("select status from runs where id = ?", number)[0]
        (count,) = client.store.read("select count(*) from steps where run_id = ?", number)[0]
        pid = worker_pid(home)
        if pid:
            memory[count] = psutil.Process(pid).memory_info().rss
        if row["status"] == "ended":
            break
        if sys.stderr.isatty():
            print(f"\rstep {count} of {steps}", end="", file=sys.stderr)
        time.sleep(0.5)
    if pid := worker_pid(home):
        psutil.Process(pid).terminate()
        while worker_pid(home):
            time.sleep(0.1)
    return client, number, memory


def overheads(client, number: int, clock: Path):
    """For each step but the first: its name, its own seconds, and of them those of git and cp processes."""
    marks = [line.split() for line in clock.read_text().splitlines()]
    rows = client.store.step_rows(number)
    found = []
    at = 0
    for before, row in itertools.pairwise(rows):
        child = json.loads(row["usage"])["seconds"]
        checks = sum(e["duration_s"] for e in json.loads(row["evidence"]))
        begun, ended = before["ended_at"], row["ended_at"]
        while at < len(marks) and float(marks[at][0]) < begun:
            at += 1
        outside = []
        while at < len(marks) and float(marks[at][0]) <= ended:
            outside.append((float(marks[at][1]), marks[at][2]))
            at += 1
        found.append((row["step"], ended - begun - child - checks, outside, child, checks))
    return found


def record_times(root: Path, files: int, turns: int = 20) -> tuple[float, list[float]]:
    """Seconds of the first tree record of a repository of so many files, and of others after one file changed."""
    from matrix_coder.engine.workspace import Trees

    workspace = repository(root / "large", files)
    trees = Trees(workspace, root / "records")
    begun = time.perf_counter()
    trees.record()
    first = time.perf_counter() - begun
    times = []
    for turn in range(turns):
        (workspace / "d000" / "f00000.py").write_text(f"value = {turn}\n")
        begun = time.perf_counter()
        trees.record()
        times.append(time.perf_counter() - begun)
    return first, times


def line(name: str, value: str, note: str = "") -> None:
    print(f"{name:58}{value:>14}  {note}".rstrip(), flush=True)


def show_run(client, number: int, clock: Path, memory: dict[int, int], plain: float) -> None:
    found = overheads(client, number, clock)
    line("overhead of a step, median of all", f"{ms([f[1] for f in found]):.1f} ms", "goal 15 ms")
    for name in ("executor", "verify"):
        mine = [f for f in found if f[0] == name]
        whole, outside = ms([f[1] for f in mine]), ms([sum(t for t, _ in f[2]) for f in mine])
        rest = ms([f[1] - sum(t for t, _ in f[2]) for f in mine])
        line(f"{name}: overhead, median", f"{whole:.1f} ms", f"{whole / plain:.1f} x a plain step")
        count = statistics.median(len(f[2]) for f in mine)
        line("   of it in git and cp processes", f"{outside:.1f} ms", f"{count:g} processes")
        line("   of it in the engine itself", f"{rest:.1f} ms", f"{rest / plain:.1f} x a plain step; goal 15 ms")
        line(
            "   beside it: its process, its checks",
            f"{ms([f[3] for f in mine]):.0f} + {ms([f[4] for f in mine]):.0f} ms",
        )
        kinds = sorted({k for f in mine for _, k in f[2]})
        for kind in kinds:
            each = [[t for t, k in f[2] if k == kind] for f in mine]
            line(f"      {kind}", f"{ms([sum(e) for e in each]):.1f} ms", f"x {statistics.median(map(len, each)):g}")
    part = max(1, min(100, len(found) // 4))
    for label, pick in (
        ("overhead", lambda f: f[1]),
        ("in the engine itself", lambda f: f[1] - sum(t for t, _ in f[2])),
    ):
        first, last = ms([pick(f) for f in found[:part]]), ms([pick(f) for f in found[-part:]])
        line(f"{label}: first and last {part} steps", f"{first:.1f}, {last:.1f} ms", f"ratio {last / first:.2f}")
    # The last step's sample may be of the end, which writes the report of all steps at once.
    *seen, last = sorted(memory)
    early = next((c for c in seen if c >= min(100, len(found) // 4)), seen[0])
    growth = (memory[seen[-1]] - memory[early]) / 1e6
    line(f"worker's memory, step {early} to {seen[-1]}", f"{growth:+.1f} MB", "goal 5 MB")
    points = [early, *(seen[len(seen) * i // 4] for i in (1, 2, 3)), seen[-1], last]
    line("   at steps " + ", ".join(map(str, points)), "", ", ".join(f"{memory[c] / 1e6:.1f}" for c in points) + " MB")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--steps", type=int, default=1_000)
    options.add_argument("--files", type=int, default=10_000)
    wanted = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        home, clock = root / "hermes", root / "clock"
        home.mkdir()
        (home / "config.yaml").write_text(CONFIG)
        os.environ.update(HERMES_HOME=str(home), HOME=str(root), PYTHONPATH="")
        copy_package(root / "code", clock)
        mirror_cost.instrument(root / "code" / "matrix_coder", root / "syncs")
        plain = plain_steps(root)
        # Before and after: what else the machine does changes meanwhile.
        before = plain(wanted.steps)
        client, number, memory = long_run(home, repository(root / "small", 20), wanted.steps)
        # Last, since the disk goes on with so many new files for a while.
        first, later = record_times(root, wanted.files)
        after = plain(wanted.steps)
        part = max(1, min(100, wanted.steps // 4))
        line("a plain DBOS step doing nothing, median", f"{ms(before + after):.1f} ms", "the baseline")
        line("   before and after the run", f"{ms(before):.1f}, {ms(after):.1f} ms")
        line(f"   first and last {part} of {wanted.steps}", f"{ms(after[:part]):.1f}, {ms(after[-part:]):.1f} ms")
        line(f"tree record, {wanted.files:,} files, one changed, median", f"{ms(later):.0f} ms", "goal 150 ms")
        line("   the first of all", f"{first * 1e3:.0f} ms")
        show_run(client, number, clock, memory, ms(before + after))
        mirror_cost.show(mirror_cost.measure(root, root / "syncs", repository, long_run), line)
        from dbos import DBOS

        DBOS.destroy()
    return 0


if __name__ == "__main__":
    sys.exit(main())
