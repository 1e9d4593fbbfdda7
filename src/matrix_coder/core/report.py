"""A specialist's report, read strictly: what it hands in becomes a `StepReport` or one line that says why not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import cast

from .models import Finding, Severity, StepReport, StepVerdict, Unit
from .names import Role
from .units import UnitsInvalid, parse_units

MAX_TEXT = 4_000
MAX_ITEMS = 50

REPORT_SCHEMA: dict[str, object] = {
    "name": "matrix_report",
    "description": (
        "Hand in the result of the workflow step you were given. Call it exactly once, as the last thing you do. "
        "Your verdict counts only through this tool; a verdict written in the answer text is not read."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "verdict": {
                "type": "string",
                "enum": [v.value for v in StepVerdict],
                "description": "PASS: the step's task is met, and you saw the proof. FAIL: it is not. "
                "BLOCKED: only a person can go on; put the question first in open_questions. "
                "UNVERIFIABLE: there is no way to tell.",
            },
            "summary": {"type": "string", "description": "What was done or seen, in one to three sentences."},
            "findings": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "severity": {"type": "string", "enum": [s.value for s in Severity]},
                        "summary": {"type": "string"},
                        "file": {"type": "string", "description": "Path relative to the workspace."},
                        "line": {"type": "integer"},
                    },
                    "required": ["severity", "summary"],
                },
            },
            "open_questions": {"type": "array", "items": {"type": "string"}},
            "positive_observations": {"type": "array", "items": {"type": "string"}},
            "recommendation": {"type": "string", "description": "What should happen next."},
        },
        "required": ["verdict", "summary"],
    },
}

UNITS_SCHEMA: dict[str, object] = {
    "type": "array",
    "description": (
        "The units that the goal is cut into; they are worked on at the same time. No path may belong to two of them, "
        "not even one that a pattern could match."
    ),
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Short and unique: lower-case letters, digits, - and _."},
            "role": {
                "type": "string",
                "enum": [r.value for r in Role],
                "description": "executor for a unit that changes files; explore, review, debug to look into a topic.",
            },
            "goal": {"type": "string", "description": "What should be true at the end; it has to read well alone."},
            "files": {
                "type": "array",
                "items": {"type": "string"},
                "description": "For a unit that changes files: every path, directory or pattern (*, **) that it may "
                "change or create, relative to the workspace; tests and lock files, too.",
            },
            "topic": {"type": "string", "description": "For a unit that only reads: what it looks into."},
        },
        "required": ["name", "role", "goal"],
    },
}


def report_schema(*, units: bool = False) -> dict[str, object]:
    """The report tool as a model sees it; with `units` for the step that plans them."""
    if not units:
        return REPORT_SCHEMA
    parameters = cast("dict[str, dict[str, object]]", REPORT_SCHEMA["parameters"])
    properties = {**parameters["properties"], "units": UNITS_SCHEMA}
    return {**REPORT_SCHEMA, "parameters": {**parameters, "properties": properties}}


class ReportRejected(ValueError):
    """The report can't be read; the message says what was expected."""


def parse_report(arguments: Mapping[str, object]) -> StepReport:
    """The report a specialist handed in through the tool.

    Raises `ReportRejected` with one line that the specialist can act on.
    """
    verdict = str(arguments.get("verdict", "")).strip().upper()
    if verdict not in StepVerdict.__members__:
        raise ReportRejected(f"expected verdict to be one of {', '.join(StepVerdict)}; found {verdict or 'nothing'}")
    findings = arguments.get("findings") or []
    if not isinstance(findings, list):
        raise ReportRejected(f"expected findings to be a list; found {type(findings).__name__}")
    if len(findings) > MAX_ITEMS:
        # Cut off in silence, the one that matters could be among those that go.
        raise ReportRejected(f"expected at most {MAX_ITEMS} findings, the worst ones; found {len(findings)}")
    return StepReport(
        verdict=StepVerdict(verdict),
        summary=_text(arguments.get("summary")),
        findings=tuple(_finding(f) for f in findings),
        open_questions=_texts(arguments.get("open_questions")),
        positive_observations=_texts(arguments.get("positive_observations")),
        recommendation=_text(arguments.get("recommendation")),
        units=_units(arguments.get("units")),
    )


def _units(raw: object) -> tuple[Unit, ...]:
    try:
        return parse_units(raw) if raw else ()
    except UnitsInvalid as invalid:
        raise ReportRejected(str(invalid)) from invalid


def _text(value: object) -> str:
    # Half of a surrogate pair, which JSON can hold, is no text: it could not be stored or sent on.
    text = "" if value is None else str(value).encode("utf-8", "replace").decode("utf-8")
    return text.strip()[:MAX_TEXT]


def _texts(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value] if value else []
    return tuple(t for t in (_text(i) for i in items[:MAX_ITEMS]) if t)


def _finding(raw: object) -> Finding:
    if not isinstance(raw, Mapping):
        raise ReportRejected(f"expected each finding to be an object; found {type(raw).__name__}")
    severity = str(raw.get("severity", "")).strip().upper()
    if severity not in Severity.__members__:
        raise ReportRejected(f"expected severity to be one of {', '.join(Severity)}; found {severity or 'nothing'}")
    line = raw.get("line")
    return Finding(
        severity=Severity(severity),
        summary=_text(raw.get("summary")),
        file=_text(cast("object", raw.get("file"))),
        line=line if isinstance(line, int) and not isinstance(line, bool) and line > 0 else None,
    )


def settle(report: StepReport, line_count: Callable[[str], int | None]) -> StepReport:
    """The report as the engine accepts it.

    Findings that point at a file or a line that does not exist are dropped and counted, and a
    PASS beside a BLOCKER becomes a FAIL. `line_count` tells how many lines a file of the
    workspace has, None when there is no such file.
    """
    kept = tuple(f for f in report.findings if _exists(f, line_count))
    verdict = report.verdict
    # Also a BLOCKER that points nowhere: a specialist's words may lower a verdict, however clumsy they are.
    if verdict is StepVerdict.PASS and any(f.severity is Severity.BLOCKER for f in report.findings):
        verdict = StepVerdict.FAIL
    dropped = len(report.findings) - len(kept)
    return replace(report, verdict=verdict, findings=kept, dropped_findings=dropped)


def _exists(finding: Finding, line_count: Callable[[str], int | None]) -> bool:
    if not finding.file:
        return True
    lines = line_count(finding.file)
    return lines is not None and (finding.line is None or finding.line <= max(lines, 1))
