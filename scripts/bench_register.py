"""What `register(ctx)` adds to a process that has imported the host: milliseconds, measured in fresh processes.

python scripts/bench_register.py [rounds]
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path

from matrix_coder.testing import HermesHome

LIMIT_MS = 30
HOSTS = {"one-shot, worker, child": "import run_agent", "chat": "import cli, run_agent"}
PROBE = """
import json, sys, time
began = time.perf_counter()
{host}
from hermes_cli.plugins import PluginContext, PluginManifest, get_plugin_manager
host = time.perf_counter() - began
ctx = PluginContext(PluginManifest(name="matrix_coder", source="entrypoint"), get_plugin_manager())
before = set(sys.modules)
assert "matrix_coder" not in before
began = time.perf_counter()
import matrix_coder
matrix_coder.register(ctx)
added = time.perf_counter() - began
new = set(sys.modules) - before
own = sum(name.split(".")[0] == "matrix_coder" for name in new)
print(json.dumps(dict(host=host * 1000, added=added * 1000, own=own, others=len(new) - own)))
"""


def measure(home: HermesHome, host: str) -> dict[str, float]:
    """One fresh process: milliseconds to import the host, what the plugin added, and how many modules."""
    done = home.command(sys.executable, "-c", PROBE.format(host=host))
    if done.rc != 0:
        raise SystemExit(done.err)
    return dict(json.loads(done.out.splitlines()[-1]))


def report(name: str, rows: list[dict[str, float]]) -> bool:
    """Prints one line for one kind of process; whether the limit is kept."""
    added, host = [row["added"] for row in rows], [row["host"] for row in rows]
    middle = statistics.median(added)
    kept = middle <= LIMIT_MS
    print(
        f"{name:24} host {statistics.median(host):6.0f} ms, register adds {middle:5.1f} ms"
        f" ({min(added):.1f} to {max(added):.1f}; {middle / statistics.median(host):.1%} of the host),"
        f" modules: {rows[0]['own']:.0f} of ours, {rows[0]['others']:.0f} others;"
        f" limit {LIMIT_MS} ms {'kept' if kept else 'BROKEN'}"
    )
    return kept


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as folder:
        # Not enabled in its configuration, or the host would have loaded it before the clock starts.
        home = HermesHome(Path(folder), "http://127.0.0.1:9/v1", plugins=())
        measure(home, HOSTS["chat"])  # compiles what was never compiled
        kept = [report(name, [measure(home, host) for _ in range(rounds)]) for name, host in HOSTS.items()]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
