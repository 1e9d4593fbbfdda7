"""The figures of the gate over labelled messages, kind by kind."""

from __future__ import annotations

from collections import defaultdict


def judge(x, d):
    """What is right about one decision, None where the question does not apply."""
    gold, got = x["coding"], d.coding
    role = gold and got and d.role in x["role"]
    domain = (d.domain or "none") in (x["domain"] or ["none"]) if gold else None
    lens = (d.lens or "none") in (x["lens"] or ["none"]) if gold and got and d.role == "review" else True
    verdict = d.verdict in x["verdict_ok"]
    return {
        "tp": gold and got,
        "fp": got and not gold,
        "fn": gold and not got,
        "fa": None if gold else got,
        "verdict": verdict,
        "role": bool(role) if gold else None,
        "role*": bool(role) if gold and got else None,
        "domain*": domain if gold and got else None,
        "route": bool(role and domain and lens and verdict) if gold else None,
    }


def table(pairs):
    """A text table: one line for each kind and one for all."""
    groups = defaultdict(list)
    for x, d in pairs:
        j = judge(x, d)
        groups["ALL"].append(j)
        groups[x["source_kind"]].append(j)
        groups["file:" + x.get("_file", "")].append(j)
    lines = [
        f"{'kind':22s} {'n':>5} {'cod':>5} {'P':>6} {'R':>6} {'F1':>6} {'FA%':>6} {'verd%':>6} {'role%':>6} {'(hit)':>6} {'dom*%':>6} {'route%':>6}"
    ]
    for name in sorted(groups, key=lambda k: (k != "ALL", k.startswith("file:"), k)):
        lines.append(_line(name, groups[name]))
    return "\n".join(lines)


def _line(name, js):
    tp, fp, fn = (sum(bool(j[k]) for j in js) for k in ("tp", "fp", "fn"))
    p = tp / (tp + fp) if tp + fp else float("nan")
    r = tp / (tp + fn) if tp + fn else float("nan")
    f = 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else float("nan")

    def pct(k):
        v = [j[k] for j in js if j[k] is not None]
        return f"{100 * sum(v) / len(v):6.1f}" if v else "     -"

    return f"{name:22s} {len(js):5d} {tp + fn:5d} {p:6.3f} {r:6.3f} {f:6.3f} {pct('fa')} {pct('verdict')} {pct('role')} {pct('role*')} {pct('domain*')} {pct('route')}"
