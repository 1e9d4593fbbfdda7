#!/usr/bin/env python3
"""Time the gate: one decision on real messages, large pastes, the worst texts, and a naive reference.

    python scripts/bench_gate.py [CORPUS.jsonl ...]

The reference asks one regular expression for each word of the lexicon, which is how such gates are often written.
"""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from matrix_coder.core.intent_gate import decide  # noqa: E402
from matrix_coder.core.lexicon import lexicon  # noqa: E402


def best_us(function, text, reps=5):
    """The best of some runs in microseconds: what the code costs, not what else the machine did."""
    times = []
    for _ in range(reps):
        start = time.perf_counter()
        function(text)
        times.append(time.perf_counter() - start)
    return min(times) * 1e6


def naive():
    """One compiled pattern for each word and phrase, all searched in every message."""
    lex = lexicon()
    patterns = [re.compile(rf"(?<!\w){re.escape(w)}(?!\w)") for w in [*lex.words, *lex.phrases]]

    def search(text):
        low = text.lower()
        return [p for p in patterns if p.search(low)]

    return search


def families(size):
    """Texts that hurt careless patterns, each of about `size` characters."""
    rnd = random.Random(5)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    units = {
        "hyphens": "a-", "slashes": "a/", "dots": "a.", "underscores": "a_", "colons": "a:", "at": "a@",
        "quotes": '"', "single quotes": "'a ", "backticks": "`", "fences": "```\n", "brackets": "([{",
        "spaces": " ", "newlines": "\n", "tabs": "\ta", "digits": "1", "dates": "1-1-1-", "equals": "a=",
        "plus": "+ ", "words": "fix the bug in code ", "matrix": "matrix ", "options": "matrix ralph cap=3 ",
        "hermes": "hermes, ", "directly": "handle it ", "cjk": "代码", "emoji": "🙂", "accents": "é",
        "urls": "http://a.b/c ", "paths": "a/b.py:1 ", "camel": "aB", "json": '{"a": [',
        "log": "2026-03-02T10:00:00Z INFO worker=1 path=/v1/items took=0.1s ok\n",
        "trace": '  File "a.py", line 1, in f\n',
    }  # fmt: skip
    out = {name: unit * (size // len(unit)) for name, unit in units.items()}
    out["base64url"] = "".join(rnd.choice(letters) for _ in range(size))
    return out


def cold_start():
    """Seconds of processor time until the first decision in a fresh interpreter."""
    code = (
        "import time; t = time.process_time(); from matrix_coder.core.intent_gate import decide;"
        "decide('fix the bug in app.py'); print(time.process_time() - t)"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(5)]
    return min(float(r.stdout) for r in runs)


def main():
    paths = [Path(p) for p in sys.argv[1:]] or sorted((ROOT / "tests/corpus").glob("routing_*.jsonl"))
    texts = [json.loads(x)["text"] for p in paths for x in p.read_text(encoding="utf-8").splitlines() if x.strip()]
    decide(texts[0])
    times = sorted(best_us(decide, t) for t in texts)
    median, p99 = times[len(times) // 2], times[int(0.99 * len(times))]
    print(f"one decision over {len(texts)} messages: median {median:.0f} us, p99 {p99:.0f} us, max {times[-1]:.0f} us")
    search = naive()
    some = texts[:: max(1, len(texts) // 60)]
    reference = sorted(best_us(search, t, 1) for t in some)[len(some) // 2]
    print(f"one pattern a word: median {reference:.0f} us, {reference / median:.0f} times as long")
    print(f"cold start to the first decision: {cold_start() * 1e3:.0f} ms of processor time")
    rows = []
    for name, text in families(100_000).items():
        small, large = best_us(decide, text, 3), best_us(decide, families_at(name, 1_000_000), 3)
        rows.append((large, name, small))
    for large, name, small in sorted(rows, reverse=True):
        print(f"  {name:14s} 100 KB {small / 1e3:7.2f} ms   1 MB {large / 1e3:7.2f} ms")


def families_at(name, size):
    """One family of texts at another size."""
    return families(size)[name]


if __name__ == "__main__":
    main()
