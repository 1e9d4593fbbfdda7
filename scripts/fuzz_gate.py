#!/usr/bin/env python3
"""Throw made-up messages at the gate: no text may raise, lose its goal, contradict itself or cost without bound.

    python scripts/fuzz_gate.py [COUNT] [SEED]

The messages are pieces of the lexicon, of the grammar, of pasted text and of random characters, shuffled and cut.
The same count and seed give the same messages. The first message that breaks a promise is printed; exit code 1.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from matrix_coder.core.gate_features import MAX_TOKENS, read  # noqa: E402
from matrix_coder.core.gate_view import bounded, view  # noqa: E402
from matrix_coder.core.intent_gate import answers_tip, decide, explain  # noqa: E402
from matrix_coder.core.lexicon import lexicon  # noqa: E402
from matrix_coder.core.names import Domain, Lens, Role, Workflow  # noqa: E402

GRAMMAR = [
    "matrix", "Matrix", "MATRIX:", "matrix\t", ":", "@", "@x", "hermes, ", "handle it directly", "let hermes do it",
    "cap=3", "cap=x", 'check="pytest -q"', 'check="', "budget=30m", "in=src", "isolate=yes",
    *(f"@{d}" for d in Domain), *Lens, *Role, *Workflow, *(f"review:{lens}" for lens in Lens),
]  # fmt: skip
PASTES = [
    "```", "~~~py", "`x = 1`", '"said"', "'x'", "> quoted", "+ added", "@@ -1 +1 @@", "| a | b |", "a,b,c,d,e",
    "Traceback (most recent call last):", '  File "a.py", line 1, in f', "KeyError: 'a'", "    at f (a.js:1:2)",
    "2026-03-02T10:00:00Z INFO ok", "$ npm test", "def f(x):", "SELECT 1;", "src/app.py", "a/b/c.tsx:12", "/v1/items",
    "https://a.b/c?d=e", "1/2", "12:30", "v1.2.3", "3.5.0-rc1", "a@b.co", "--flag=x", "fooBar", "snake_case", "A.b.c()",
    "1234567890abcdef", "std::move", "#123", "\\\\srv\\x", "C:\\a\\b.py",
]  # fmt: skip
SIGNS = "\x00\x0b\x1b\u200b\u202e\ufeff\ud7ffİßéЖ代码ツ한ก🙂👩\u0301\u2028“”„«»「」’…—*_&%^~\\/|<>[]{}()=+-.,;:!?'\"`"
ODD = [*SIGNS, "🙂" * 3, "a" * 300, "-" * 80, "a." * 60, "'" * 40, "\n" * 20, "\udcff"]
JOINS = (" ", " ", " ", "\n", "", "  ", ", ", ". ", "\t")


class Maker:
    """Messages from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        lex = lexicon()
        self.words = [*sorted(lex.words), *sorted(lex.phrases)]

    def message(self) -> str:
        """One message, mostly short, now and then long."""
        pick = self.random.random
        size = int(1 + 11 * pick()) if pick() < 0.9 else int(20 + 600 * pick() ** 4)
        text = self.random.choice(JOINS).join(self._piece() for _ in range(size))
        if pick() < 0.1:
            text = self.random.choice(("matrix ", "MATRIX ", "matrix: ", " matrix\n")) + text
        if pick() < 0.1:
            text = text.swapcase()
        return text[: int(len(text) * pick())] if pick() < 0.1 else text

    def _piece(self) -> str:
        at, choice = self.random.random(), self.random.choice
        if at < 0.6:
            return choice(self.words)
        if at < 0.72:
            return choice(GRAMMAR)
        if at < 0.85:
            return choice(PASTES)
        if at < 0.97:
            return choice(ODD)
        return "".join(chr(self.random.randrange(0x20, 0x2FFF)) for _ in range(self.random.randrange(1, 20)))


def check(text: str, whole: bool) -> str:
    """The outcome of one message; AssertionError where a promise is broken. `whole` checks the explanation too."""
    decision = decide(text)
    stripped = text.strip()
    assert decision.coding is (decision.role is not None), "a role without coding, or coding without a role"
    assert decision.lens is None or decision.role == "review", "a lens on another role than review"
    if decision.outcome == "A":
        assert stripped.endswith(decision.goal), "the goal is not the end of the message"
    elif decision.outcome != "skip":
        assert decision.goal == stripped, "the goal is not the message"
    assert len(decision.signals) <= 8, "too many signals"
    for signal in decision.signals:
        start, end = signal.span
        assert 0 <= start <= end <= len(stripped), "a span outside of the message"
        assert (start, end) == (0, 0) or stripped[start:end] == signal.text, "a span that quotes something else"
    if whole:
        _check_whole(text, decision.outcome)
    return decision.outcome


def _check_whole(text: str, outcome: str) -> None:
    told = explain(text)
    assert told["outcome"] == outcome, "the explanation tells another outcome"
    json.dumps(told)
    answers_tip(text)
    seen = view(bounded(text.strip()))
    assert len(seen.ask) <= 1_100 and len(seen.paste) <= 700, "the view is not bounded"
    assert len(read(seen, lexicon()).lemmas) <= 6 * MAX_TOKENS, "the reading is not bounded"


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    maker = Maker(int(sys.argv[2]) if len(sys.argv) > 2 else 7)
    outcomes: Counter[str] = Counter()
    for number in range(count):
        text = maker.message()
        try:
            outcomes[str(check(text, number % 10 == 0))] += 1
        except Exception as error:
            print(f"message {number}: {text!r}\n{type(error).__name__}: {error}", file=sys.stderr)
            raise SystemExit(1) from error
    print(f"{count:,} messages, no promise broken: {dict(sorted(outcomes.items()))}")


if __name__ == "__main__":
    main()
