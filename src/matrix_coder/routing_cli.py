"""Routing from the terminal: one text, or a stream of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

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


_WORDS = {
    "A": "you named it: it takes this turn",
    "B": "no work on code, or you opted out: nothing is added to the turn",
    "C": "coding, but too small for a specialist: a tip, and nothing is added to the turn",
    "skip": "not a person's message: nothing is looked at",
    "D": "work on code: this specialist joins the turn",
}


def in_words(text: str) -> str:
    """What the decision for one text means, for people who do not know the letters."""
    decision = decide(text)
    if decision.asks:
        return "nothing starts: it is asked back"
    if decision.workflow:
        return "you named it: this workflow starts"
    return _WORDS[decision.outcome.value]


def route_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, dict[str, object]]]:
    """The number of each line `{"text": ..., "session_id"?: ..., "platform"?: ...}`, and its answer, as they come.

    An answer has the decision, and the line's own `id` where it has one; or `error`, which names the line, what was
    expected and what it holds. Empty lines have no answer.
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield number, _answer(number, line)


def _answer(number: int, line: bytes) -> dict[str, object]:
    try:
        asked = json.loads(line)
    except UnicodeDecodeError as error:
        return _unread(number, "UTF-8", f"byte {error.start} that is not", "send it as UTF-8")
    except ValueError as error:
        return _unread(number, "one JSON object", str(error), 'send {"text": ...}')
    except RecursionError:
        return _unread(number, "one JSON object", "more levels than can be read", 'send {"text": ...}')
    if not isinstance(asked, dict):
        return _unread(number, "one JSON object", _kind(asked), 'send {"text": ...}')
    for key in ("text", "session_id", "platform"):
        value = asked.get(key)
        if not isinstance(value, str) and (key == "text" or value is not None):
            remedy = 'send {"text": ...}' if key == "text" else "leave it out, or send a string"
            found = _kind(value) if key in asked else "none"
            return _unread(number, f"a string as {key!r}", found, remedy) | _own_id(asked)
    told = decide(
        asked["text"], session_id=asked.get("session_id") or "", platform=asked.get("platform") or ""
    ).as_dict()
    return {key: told[key] for key in _KEYS} | _own_id(asked)


def _unread(number: int, expected: str, found: str, remedy: str) -> dict[str, object]:
    return {"error": f"line {number}: expected {expected}; found {found}; {remedy}", "line": number}


def _own_id(asked: dict[str, object]) -> dict[str, object]:
    return {"id": asked["id"]} if "id" in asked else {}


def _kind(value: object) -> str:
    """What a JSON value is called."""
    names = {bool: "true or false", dict: "an object", list: "an array", str: "a string", type(None): "null"}
    return names.get(type(value), "a number")


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
