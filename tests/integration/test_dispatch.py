"""The pipe between a step's process and the engine, with a real process at its other end."""

from __future__ import annotations

import json
import os
import subprocess

from matrix_coder.core.models import StepVerdict
from matrix_coder.engine.dispatch import Attempt, _follow
from matrix_coder.engine.guarded import Guarded

REPORT = {
    "findings": [],
    "open_questions": [],
    "positive_observations": [],
    "recommendation": "",
    "dropped_findings": 0,
}


def line(token: str | None, verdict: str) -> bytes:
    message = {"kind": "report", "report": {"verdict": verdict, "summary": verdict, **REPORT}}
    return json.dumps(message if token is None else {**message, "token": token}).encode() + b"\n"


def test_pipe_when_somebody_else_writes_to_it_then_is_counted_and_never_read_as_the_step() -> None:
    """A program that finds the pipe of a step can't speak for it: only what carries the handed-over word counts."""
    reading, writing = os.pipe()
    process = Guarded(["/bin/sleep", "30"], cookie="test-dispatch", stdin=subprocess.DEVNULL)
    attempt = Attempt()
    os.write(writing, line(None, "PASS") + line("guessed", "PASS") + b"no json\n[1]\n")
    os.write(writing, line("the word", "FAIL") + line("the word", "PASS"))
    os.write(writing, json.dumps({"kind": "end", "token": "the word"}).encode() + b"\n")
    try:
        _follow(process, reading, "the word", attempt, 20, lambda *_: None, lambda: "")
    finally:
        process.end()
        os.close(reading)
        os.close(writing)
    assert attempt.report is not None
    assert attempt.report.verdict is StepVerdict.FAIL
    assert (attempt.forged, attempt.finished) == (2, True)
