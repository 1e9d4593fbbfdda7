#!/usr/bin/env python3
"""Fit the weights of the gate and print cross-validated figures.

    python scripts/train_gate.py [--write] [--negatives FILE ...] [--positives FILE ...] CORPUS.jsonl ...

CORPUS lines carry text, coding, role (a list) as tests/corpus/*.jsonl do. NEGATIVES and POSITIVES are plain
text files, one message a line, that are only read, never shipped. Pure Python, deterministic.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from matrix_coder.core import gate_score  # noqa: E402
from matrix_coder.core import intent_gate as gate  # noqa: E402
from matrix_coder.core.gate_features import read  # noqa: E402
from matrix_coder.core.gate_score import DOMAINS, ROLES, route_features, scale_of, whole_features, word_features  # noqa: E402
from matrix_coder.core.gate_view import bounded, view  # noqa: E402
from matrix_coder.core.lexicon import lexicon  # noqa: E402
from matrix_coder.routing_eval import table  # noqa: E402

WEIGHTS = ROOT / "src/matrix_coder/gate_weights.json"


def features(text: str) -> tuple[list[tuple[str, float]], list[tuple[str, float]]]:
    """The features of a text for the coding score, and with those that only role and domain read."""
    reading = read(view(bounded(text.strip())), lexicon())
    scale = scale_of(reading)
    row = [(f, scale) for f in word_features(reading)] + [(f, 1.0) for f in whole_features(reading)]
    return row, row + [(f, 1.0) for f in route_features(reading)]


class Table:
    """Feature names to numbers, with the ones too rare to keep left out. A labelled message counts three times."""

    def __init__(self, own, extra, least):
        count = Counter(f for row in own for f, _ in row)
        for f in count:
            count[f] *= 3
        count.update(f for row in extra for f, _ in row)
        self.names = ["(bias)", *sorted(f for f, n in count.items() if n >= least)]
        self.index = {f: i for i, f in enumerate(self.names)}

    def pack(self, row):
        return [(0, 1.0)] + [(self.index[f], v) for f, v in row if f in self.index]


def fit_coding(rows, gold, weight, *, epochs=12, l2=2e-4, rate=0.15, seed=7):
    """Weighted logistic regression by AdaGrad with a shuffled, seeded order."""
    size = max((i for r in rows for i, _ in r), default=0) + 1
    w, g = [0.0] * size, [1e-2] * size
    order = list(range(len(rows)))
    rnd = random.Random(seed)
    total, kept = [0.0] * size, 0
    for epoch in range(epochs):
        rnd.shuffle(order)
        if epoch > epochs // 2:
            total, kept = [a + b for a, b in zip(total, w, strict=True)], kept + 1
        for k in order:
            row = rows[k]
            z = sum([w[i] * v for i, v in row])
            p = 1 / (1 + math.exp(-max(-30.0, min(30.0, z))))
            err = (p - gold[k]) * weight[k]
            if -1e-3 < err < 1e-3:
                continue
            for i, v in row:
                d = err * v + l2 * w[i]
                g[i] += d * d
                w[i] -= rate * d / math.sqrt(g[i])
    return [(a + b) / (kept + 1) for a, b in zip(total, w, strict=True)]


def fit_choice(rows, gold, n, *, epochs=25, l2=1e-3, rate=0.15, seed=7):
    """Multinomial regression; a message with several good answers pulls towards the one it already prefers."""
    size = max((i for r in rows for i, _ in r), default=0) + 1
    w = [[0.0] * n for _ in range(size)]
    g = [[1e-2] * n for _ in range(size)]
    order = list(range(len(rows)))
    rnd = random.Random(seed)
    for _ in range(epochs):
        rnd.shuffle(order)
        for k in order:
            z = [0.0] * n
            for i, v in rows[k]:
                wi = w[i]
                for c in range(n):
                    z[c] += wi[c] * v
            top = max(z)
            e = [math.exp(x - top) for x in z]
            s = sum(e)
            p = [x / s for x in e]
            mass = sum(p[c] for c in gold[k])
            for c in range(n):
                target = p[c] / mass * 0.5 + 0.5 / len(gold[k]) if c in gold[k] else 0.0
                err = p[c] - target
                if -1e-3 < err < 1e-3:
                    continue
                for i, v in rows[k]:
                    d = err * v + l2 * w[i][c]
                    g[i][c] += d * d
                    w[i][c] -= rate * d / math.sqrt(g[i][c])
    return w


def train(data, extra, args):
    """Weight tables for labelled messages and extra (row, gold) pairs."""
    rows = [x["_row"] for x in data] + [r for r, _ in extra]
    table = Table([x["_row"] for x in data], [r for r, _ in extra], args.least)
    gold = [float(x["coding"]) for x in data] + [y for _, y in extra]
    weight = [args.weight] * len(data) + [args.positive if y else args.negative for _, y in extra]
    w = fit_coding([table.pack(r) for r in rows], gold, weight, epochs=args.epochs, l2=args.l2, rate=args.rate)
    coding = dict(zip(table.names, w, strict=False))
    able = [x for x in data if x["coding"] and x["role"]]
    roles = fit_names(able, ROLES, [x["role"] for x in able], args.role_l2, args)
    domains = fit_names(able, DOMAINS, [x["domain"] or ["none"] for x in able], args.domain_l2, args)
    return coding, roles, domains


def fit_names(data, names, gold, l2, args):
    table = Table([x["_route"] for x in data], [], 6)
    rows = [table.pack(x["_route"]) for x in data]
    w = fit_choice(rows, [[names.index(g) for g in gs] for gs in gold], len(names), l2=l2)
    return dict(zip(table.names, w, strict=False))


def packed(coding, roles, domains, args):
    """The tables without what is too small to matter, as the weight file holds them."""

    def votes(table, names):
        out = {}
        for f in sorted(table):
            kept = [f"{n} {round(v, 2)}" for n, v in zip(names, table[f], strict=True) if abs(v) >= args.small_vote]
            if kept:
                out[f] = " ".join(kept)
        return out

    small = {f: round(v, 2) for f, v in sorted(coding.items()) if abs(v) >= args.small or f == "(bias)"}
    return {"coding": small, "roles": votes(roles, ROLES), "domains": votes(domains, DOMAINS)}


def write(tables, path):
    """One feature a line, so that a change shows as a change."""
    parts = []
    for name, rows in tables.items():
        lines = [f"{json.dumps(f, ensure_ascii=False)}: {json.dumps(v)}" for f, v in rows.items()]
        parts.append(f'"{name}": {{\n' + ",\n".join(lines) + "\n}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    return {name: len(rows) for name, rows in tables.items()}


def install(tables):
    """Put tables in place of the file's for this process."""
    table = gate_score.Weights(
        tables["coding"],
        gate_score.choice(ROLES, tables["roles"]),
        gate_score.choice(DOMAINS, tables["domains"]),
        tables["coding"]["(bias)"],
    )
    gate.weights = lambda: table


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("corpus", nargs="+")
    ap.add_argument("--negatives", nargs="*", default=[])
    ap.add_argument("--positives", nargs="*", default=[])
    ap.add_argument("--write", action="store_true")
    ap.add_argument("--folds", type=int, default=5)
    ap.add_argument("--errors", type=int, default=0)
    ap.add_argument("--only", default="", help="print figures for files whose name holds this")
    ap.add_argument("--least", type=int, default=9)
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--l2", type=float, default=8e-2)
    ap.add_argument("--rate", type=float, default=0.15)
    ap.add_argument("--role-l2", type=float, default=4e-2)
    ap.add_argument("--domain-l2", type=float, default=4e-2)
    ap.add_argument("--weight", type=float, default=3.0)
    ap.add_argument("--positive", type=float, default=0.1)
    ap.add_argument("--negative", type=float, default=0.6)
    ap.add_argument("--small", type=float, default=0.08, help="votes below this are dropped")
    ap.add_argument("--small-vote", type=float, default=0.08, help="votes for a role or domain below this are dropped")
    ap.add_argument("--shift", type=float, default=-0.75)
    args = ap.parse_args()
    data = []
    for path in args.corpus:
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            if line.strip():
                x = json.loads(line)
                x["_file"] = Path(path).stem
                data.append(x)
    data = [x for x in data if x["source_kind"] != "explicit_trigger" or not x["coding"]]
    for x in data:
        x["_row"], x["_route"] = features(x["text"])
    extra = []
    for paths, gold in ((args.negatives, 0.0), (args.positives, 1.0)):
        for path in paths:
            for line in Path(path).read_text(encoding="utf-8").splitlines():
                if line.strip():
                    extra.append((features(line)[0], gold, line))
    if args.folds > 1:
        crossval(data, extra, args)
    if args.write:
        coding, roles, domains = train(data, [(r, y) for r, y, _ in extra], args)
        coding["(bias)"] += args.shift
        print("lines written:", write(packed(coding, roles, domains, args), WEIGHTS))


def grams(text):
    """Character trigrams and words of a text, as one bag."""
    low = " ".join(text.lower().split())[:400]
    return Counter([low[i : i + 3] for i in range(len(low) - 2)])


def families(texts, close=0.45):
    """A number for each text; texts that nearly repeat each other (cosine of weighted trigrams) share it."""
    bags = [grams(t) for t in texts]
    seen = Counter(g for bag in bags for g in bag)
    rare = {g: math.log(len(texts) / n) for g, n in seen.items() if n > 1}
    vectors = []
    for bag in bags:
        own = {g: n * rare[g] for g, n in bag.items() if g in rare}
        size = math.sqrt(sum(v * v for v in own.values())) or 1.0
        vectors.append({g: v / size for g, v in own.items()})
    parent = list(range(len(texts)))

    def root(i):
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    index = defaultdict(list)
    for i, vector in enumerate(vectors):
        near = defaultdict(float)
        for g, v in vector.items():
            for j, w in index[g]:
                near[j] += v * w
            index[g].append((i, v))
        for j, cosine in near.items():
            if cosine >= close:
                parent[root(i)] = root(j)
    return [root(i) for i in range(len(texts))]


def crossval(data, extra, args):
    rnd = random.Random(3)
    kin = families([x["text"] for x in data])
    drawn = {k: rnd.randrange(args.folds) for k in sorted(set(kin))}
    fold = [drawn[k] for k in kin]
    print(f"{len(data)} messages in {len(drawn)} families; no family is split between folds")
    efold = [rnd.randrange(args.folds) for _ in extra]
    results, scores, acts = [], [], defaultdict(list)
    for k in range(args.folds):
        coding, roles, domains = train(
            [x for x, f in zip(data, fold, strict=True) if f != k],
            [(r, y) for (r, y, _), f in zip(extra, efold, strict=True) if f != k],
            args,
        )
        coding["(bias)"] += args.shift
        install(packed(coding, roles, domains, args))
        for x, f in zip(data, fold, strict=True):
            if f == k:
                results.append((x, gate.decide(x["text"])))
                scores.append((x, gate.score_of(x["text"])))
        for (_, y, line), f in zip(extra, efold, strict=True):
            if f == k:
                acts[y].append((gate.score_of(line), line))
    report(results, args)
    curve(scores, acts, args)
    for y, got in sorted(acts.items()):
        print(f"plain file, gold {y}: {100 * sum(a > 0 for a, _ in got) / len(got):.2f} % of {len(got)} activate")
        if y == 0.0 and args.errors:
            print([line for a, line in got if a > 0][:40])


def curve(scores, acts, args):
    """F1 and false activations at other thresholds."""
    for name in sorted({x["_file"] for x, _ in scores}):
        own = [(x["coding"], v) for x, v in scores if x["_file"] == name]
        cells = []
        for shift in (-0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3):
            tp = sum(c and v > shift for c, v in own)
            fp = sum(v > shift and not c for c, v in own)
            f1 = 2 * tp / (tp + fp + sum(c for c, _ in own))
            cells.append(f"{shift}: {f1:.3f}/{100 * fp / sum(not c for c, _ in own):.1f}")
        print(name, " ".join(cells))
        for most in (0.02, 0.04, 0.05):
            calm = sorted((v for c, v in own if not c), reverse=True)
            at = max(calm[int(most * len(calm))], -50.0)
            tp, fp = sum(c and v > at for c, v in own), sum(v > at and not c for c, v in own)
            f1 = 2 * tp / (tp + fp + sum(c for c, _ in own))
            print(f"  at {100 * most:.0f} % false activations: threshold {at:.2f}, F1 {f1:.3f}")
    for y, got in sorted(acts.items()):
        print(
            y,
            " ".join(
                f"{s}: {100 * sum(v > s for v, _ in got) / len(got):.2f}" for s in (-0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3)
            ),
        )


def report(results, args):
    shown = [(x, d) for x, d in results if args.only in x["_file"]]
    print(table(shown))
    for name in sorted({x["_file"] for x, _ in shown}):
        print(name)
        print("\n".join(table([(x, d) for x, d in shown if x["_file"] == name]).splitlines()[:2]))
    n = 0
    if args.errors:
        for x, d in shown:
            if x["coding"] and d.coding:
                if d.role not in x["role"]:
                    print("ROLE ", d.role, "for", x["role"], "|", repr(x["text"][:130]))
                if (d.domain or "none") not in (x["domain"] or ["none"]):
                    print("DOM  ", d.domain, "for", x["domain"], "|", repr(x["text"][:130]))
                if d.role == "review" and (d.lens or "none") not in (x["lens"] or ["none"]):
                    print("LENS ", d.lens, "for", x["lens"], "|", repr(x["text"][:130]))
                if d.verdict not in x["verdict_ok"]:
                    print("VERD ", d.verdict, "for", x["verdict_ok"], "|", repr(x["text"][:130]))
    for x, d in shown:
        wrong = d.coding != x["coding"]
        if wrong and n < args.errors:
            n += 1
            print("MISS " if x["coding"] else "FALSE", x["source_kind"][:10], "|", repr(x["text"][:150]))


if __name__ == "__main__":
    main()
