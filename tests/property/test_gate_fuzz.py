"""Many made-up messages; `make fuzz` throws a million."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "fuzz_gate.py"


def test_decide_when_twenty_thousand_made_up_messages_then_no_promise_is_broken() -> None:
    """No exception, the goal kept, spans that quote the message, bounded work; the same messages each time."""
    done = subprocess.run([sys.executable, str(SCRIPT), "20000"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("20,000 messages, no promise broken")
    assert all(f"'{outcome}'" in done.stdout for outcome in "ABCD")
