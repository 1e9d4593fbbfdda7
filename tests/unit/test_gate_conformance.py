"""The 108 messages whose outcome follows from the seed documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from matrix_coder.core.intent_gate import decide

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "seed_conformance.jsonl"
LINES: list[dict[str, Any]] = [json.loads(x) for x in CORPUS.read_text(encoding="utf-8").splitlines()]


def _fits(want: Any, got: str | None) -> bool:
    return got in [None if w == "none" else w for w in want] if isinstance(want, list) else got == want


@pytest.mark.parametrize("line", LINES, ids=[f"{i:03d}" for i in range(len(LINES))])
def test_decide_when_seed_message_then_seed_outcome(line: dict[str, Any]) -> None:
    """Every message of the seed gets the outcome, role, lens, domain and goal that the seed promises."""
    decision = decide(line["text"], session_id=line.get("session_id", ""))
    assert decision.outcome == line["outcome"], line["text"]
    if line["outcome"] in "ACD":
        assert _fits(line["role"], decision.role), (line["text"], decision.role)
        assert _fits(line.get("lens"), decision.lens), (line["text"], decision.lens)
    if line["outcome"] in "AD":
        assert _fits(line.get("domain"), decision.domain), (line["text"], decision.domain)
    if line["outcome"] == "A":
        assert decision.goal == line["goal"]
        assert not decision.asks


def test_corpus_when_loaded_then_all_108_lines_are_there() -> None:
    """No line of the seed corpus is lost."""
    assert len(LINES) == 108
