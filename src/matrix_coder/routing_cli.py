"""Routing from the terminal: one text, or a stream of JSON lines."""

from __future__ import annotations

import json
from typing import TextIO

from .core.intent_gate import decide, explain

_KEYS = ("outcome", "verdict", "coding", "role", "workflow", "lens", "domain", "route", "goal", "asks", "answer")


def route_text(text: str, *, as_json: bool = False, explain: bool = False) -> str:
    """The decision for one text: a line for people, or JSON; with `explain`, every vote as well."""
    if explain:
        told = _explain(text)
        return json.dumps(told, ensure_ascii=False, indent=2) if as_json else _told(told)
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


def _told(told: dict[str, object]) -> str:
    lines = [_line(told)]
    if "score" in told:
        lines.append(f"score {told['score']} (above 0 is coding), runner-up role {told['runner_up']}")
    signals = told["signals"]
    assert isinstance(signals, list)
    for s in signals:
        span = f"{s['span'][0]}-{s['span'][1]}" if s["span"] != [0, 0] else "-"
        lines.append(f"  {s['weight']:+7.3f}  {s['vote']:<10}  {s['rule']:<14} {span:>9}  {s['text']}")
    if told.get("masked"):
        lines.append(f"  set apart: {', '.join(map(str, told['masked']))}")  # type: ignore[call-overload]
    return "\n".join(lines)
