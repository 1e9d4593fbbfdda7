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
PROBE = """
import json, sys, time
began = time.perf_counter()
import run_agent
from hermes_cli.plugins import PluginContext, PluginManifest, get_plugin_manager
host = time.perf_counter() - began
ctx = PluginContext(PluginManifest(name="matrix_coder", source="entrypoint"), get_plugin_manager())
before = set(sys.modules)
assert "matrix_coder" not in before
began = time.perf_counter()
import matrix_coder
matrix_coder.register(ctx)
added = time.perf_counter() - began
print(json.dumps({"host": host * 1000, "added": added * 1000, "modules": len(set(sys.modules) - before)}))
"""


def measure(home: HermesHome) -> dict[str, float]:
    """One fresh process: milliseconds to import the host, and what the plugin added."""
    done = home.command(sys.executable, "-c", PROBE)
    if done.rc != 0:
        raise SystemExit(done.err)
    return dict(json.loads(done.out.splitlines()[-1]))


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory() as folder:
        # Not enabled in its configuration, or the host would have loaded it before the clock starts.
        home = HermesHome(Path(folder), "http://127.0.0.1:9/v1", plugins=())
        measure(home)  # compiles what was never compiled
        rows = [measure(home) for _ in range(rounds)]
    added = [row["added"] for row in rows]
    host = statistics.median(row["host"] for row in rows)
    middle = statistics.median(added)
    print(f"host import   {host:8.1f} ms (median of {rounds})")
    print(f"register adds {middle:8.1f} ms (median; {min(added):.1f} to {max(added):.1f}))")
    print(f"ratio         {middle / host:8.1%} of the host's import")
    print(f"new modules   {rows[0]['modules']:8.0f}")
    print(f"limit         {LIMIT_MS:8.1f} ms: {'kept' if middle <= LIMIT_MS else 'BROKEN'}")
    return 0 if middle <= LIMIT_MS else 1


if __name__ == "__main__":
    sys.exit(main())
