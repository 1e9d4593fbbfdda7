"""Routing from the terminal: one text, or a stream of JSON lines."""

from __future__ import annotations

import json
from typing import Any, TextIO

from .core.intent_gate import decide, explain

_KEYS = ("outcome", "verdict", "coding", "role", "workflow", "lens", "domain", "route", "goal", "asks", "answer")


_FOR, _AGAINST, _APART, _PLAIN = "\x1b[1;32m", "\x1b[31m", "\x1b[2m", "\x1b[0m"
_MOST_MARKED = 2_000


def route_text(text: str, *, as_json: bool = False, explain: bool = False, colour: bool = False) -> str:
    """The decision for one text: a line for people, or JSON; with `explain`, every vote as well.

    With `colour` the explanation opens with the message itself, its telling words marked by ANSI colours.
    """
    if explain:
        told = _explain(text)
        return json.dumps(told, ensure_ascii=False, indent=2) if as_json else _told(told, text.strip(), colour)
    decision = decide(text)
    if as_json:
        return json.dumps(decision.as_dict(), ensure_ascii=False)
    return _line(decision.as_dict())


def route_jsonl(stdin: TextIO, stdout: TextIO) -> int:
    """Answer each line `{"text": ..., "session_id"?: ..., "platform"?: ...}` with one JSON object; the count."""
    count = 0
    for line in stdin:
        if not line.strip():
            continue
        stdout.write(json.dumps(_answer(line), ensure_ascii=False) + "\n")
        count += 1
    stdout.flush()
    return count


def _answer(line: str) -> dict[str, object]:
    try:
        asked = json.loads(line)
    except (ValueError, RecursionError) as exc:
        return {"error": f'expected one JSON object; found {type(exc).__name__}; send {{"text": ...}}'}
    if not isinstance(asked, dict) or not isinstance(asked.get("text"), str):
        return {"error": 'expected an object with a string "text"; found something else; send {"text": ...}'}
    session, platform = asked.get("session_id") or "", asked.get("platform") or ""
    if not isinstance(session, str) or not isinstance(platform, str):
        return {"error": 'expected strings in "session_id" and "platform"; found something else; leave them out'}
    told = decide(asked["text"], session_id=session, platform=platform).as_dict()
    return {key: told[key] for key in _KEYS} | ({"id": asked["id"]} if "id" in asked else {})


def _explain(text: str) -> dict[str, object]:
    return explain(text)


def _line(told: dict[str, object]) -> str:
    where = told["route"] or "-"
    note = f"  ({told['answer']})" if told["asks"] else ""
    return f"{told['outcome']}  {told['verdict']}  {where}{note}"


def _told(told: dict[str, object], text: str, colour: bool) -> str:
    signals = _rows(told, "signals")
    lines = [_line(told)]
    if colour:
        lines.append("  " + _marked(text, signals, _rows(told, "set_apart")).replace("\n", "\n  "))
    if "score" in told:
        lines.append(f"score {told['score']} (above 0 is coding), runner-up role {told['runner_up']}")
    for s in signals:
        span = f"{s['span'][0]}-{s['span'][1]}" if s["span"] != [0, 0] else "-"
        quoted = repr(s["text"][:60]) if s["span"] != [0, 0] else s["text"]
        lines.append(f"  {s['weight']:+7.2f}  {s['vote']:<10}  {span:>9}  {quoted}: {s['rule']}")
    lines += [f"  set apart as {m['why']}: {m['text']!r}" for m in _rows(told, "set_apart")]
    later = told.get("later")
    if isinstance(later, list) and later:
        lines.append(f"more than one request: the first about code decides; later: {', '.join(map(repr, later))}")
    return "\n".join(lines)


def _rows(told: dict[str, object], key: str) -> list[dict[str, Any]]:
    found = told.get(key)
    return found if isinstance(found, list) else []


def _marked(text: str, signals: list[dict[str, Any]], apart: list[dict[str, Any]]) -> str:
    """The text with words that voted for coding in green, against it in red, and what was set apart dim."""
    text = text[:_MOST_MARKED]
    paint = [""] * len(text)
    for s in reversed(signals):
        _paint(paint, s["span"], _FOR if s["weight"] > 0 else _AGAINST)
    for m in apart:
        _paint(paint, m["span"], _APART)
    out, now = [], ""
    for letter, want in zip(text, paint, strict=True):
        if want != now:
            out.append((_PLAIN if now else "") + want)
            now = want
        out.append(letter if letter.isprintable() or letter in "\n\t" else "\ufffd")
    return "".join(out) + (_PLAIN if now else "")


def _paint(paint: list[str], span: list[int], colour: str) -> None:
    for at in range(span[0], min(span[1], len(paint))):
        paint[at] = colour
