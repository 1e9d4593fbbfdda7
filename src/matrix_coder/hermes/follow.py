"""A run's events as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast


def progress_line(run_id: str, kind: str, data: Mapping[str, Any]) -> str:
    """One line for an event, whatever its texts hold; empty for those that would only be noise."""
    text = " ".join((_TEXTS[kind](data) if kind in _TEXTS else "").splitlines())
    return f"{run_id} {text}" if text else ""


def _checks(rows: object) -> str:
    parts = [
        f"`{r['command']}` {'passes' if r['passed'] else 'fails'} ({r['counts']})"
        for r in cast("Iterable[Mapping[str, Any]]", rows or [])
    ]
    return ", ".join(parts)


def _baseline(data: Mapping[str, Any]) -> str:
    return f"starting tree: {_checks(data.get('checks')) or 'no check found'}"


def _step(data: Mapping[str, Any]) -> str:
    return f"step {data.get('step')}, iteration {data.get('iteration')}: {data.get('name')}"


def _tool(data: Mapping[str, Any]) -> str:
    refused = f"  REFUSED: {data['refused']}" if data.get("refused") else ""
    preview = " ".join(str(data.get("preview") or "").split())[:80]
    return f"  {data.get('name')} {preview}{refused}".rstrip()


def _verdict(data: Mapping[str, Any]) -> str:
    verified = _checks(data.get("verified"))
    said = f"  {data.get('name')} claims {data.get('claimed')}: {data.get('summary') or 'no summary'}"
    return said + (f"  |  checked: {verified}" if verified else "")


def _unit(data: Mapping[str, Any]) -> str:
    if data.get("state") in ("ready", "merging"):
        return ""
    why = f": {data['why']}" if data.get("why") else ""
    return f"  unit {data.get('unit')} {data.get('state')}{why}"


def _overlap(data: Mapping[str, Any]) -> str:
    then = "the plan is asked for again" if data.get("asked_again") else "they become fewer and larger"
    return f"  units overlap, {then}: {'; '.join(data.get('pairs') or [])}"


def _end(data: Mapping[str, Any]) -> str:
    return f"ended: {data.get('outcome')} - {data.get('reason')}"


_TEXTS = {
    "queued": lambda _: "queued",
    "baseline": _baseline,
    "step": _step,
    "attempt": lambda d: f"step {d.get('step')}: attempt {d.get('attempt')}, the one before was cut off",
    "check": lambda d: f"  the engine ran {_checks(d.get('checks')) or 'no check: none was found'}",
    "tool": _tool,
    "waiting": lambda d: f"  the provider asks to wait: {d.get('seconds'):.0f} s ({d.get('words')})",
    "tampering": lambda d: f"  {'TAMPERED' if d.get('certain') else 'suspicious'}: {d.get('text')}",
    "unpriced": lambda d: f"  {d.get('words')}",
    "paused": lambda d: str(d.get("reason") or "waits"),
    "reopened": lambda d: f"merges {d['merge']}" if d.get("merge") else "goes on",
    "steer": lambda d: f"  steered: {d.get('text')}",
    "answer": lambda d: f"  answered: {d.get('text')}",
    "raise": lambda d: f"  may use more: {d.get('text')}",
    "retry": lambda d: f"  trying again in {d.get('seconds')} s: {d.get('words')}",
    "verdict": _verdict,
    "unit": _unit,
    "overlap": _overlap,
    "cancel": lambda _: "asked to stop",
    "ended": _end,
}
