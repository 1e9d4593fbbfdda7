"""Values to JSON and back. JSON is the only form in which a value is ever stored or sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import TypeAlias, cast

from .models import Evidence, Finding, Severity, StepReport, StepVerdict, Unit, Usage

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"


def dump(value: StepReport | Evidence | Usage | Unit) -> dict[str, Json]:
    """The value as plain JSON data."""
    return cast("dict[str, Json]", plain(asdict(value)))


def plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return str(value) if isinstance(value, (Severity, StepVerdict)) else value


def load_report(data: Mapping[str, Json]) -> StepReport:
    """The report that `dump` wrote."""
    findings = cast("list[dict[str, Json]]", data.get("findings") or [])
    return StepReport(
        verdict=StepVerdict(str(data["verdict"])),
        summary=str(data.get("summary") or ""),
        findings=tuple(_finding(f) for f in findings),
        open_questions=_texts(data, "open_questions"),
        positive_observations=_texts(data, "positive_observations"),
        recommendation=str(data.get("recommendation") or ""),
        dropped_findings=int(cast("int", data.get("dropped_findings") or 0)),
        units=tuple(load_unit(u) for u in cast("list[dict[str, Json]]", data.get("units") or [])),
    )


def load_unit(data: Mapping[str, Json]) -> Unit:
    """The unit that `dump` wrote."""
    return Unit(
        name=str(data["name"]),
        role=str(data["role"]),
        goal=str(data["goal"]),
        files=_texts(data, "files"),
        topic=str(data.get("topic") or ""),
    )


def _texts(data: Mapping[str, Json], key: str) -> tuple[str, ...]:
    return tuple(str(x) for x in cast("list[Json]", data.get(key) or []))


def _finding(data: Mapping[str, Json]) -> Finding:
    line = data.get("line")
    return Finding(
        severity=Severity(str(data["severity"])),
        summary=str(data.get("summary") or ""),
        file=str(data.get("file") or ""),
        line=line if isinstance(line, int) else None,
    )


def load_evidence(rows: Iterable[Mapping[str, Json]]) -> tuple[Evidence, ...]:
    """The pieces of evidence that `dump` wrote, in their order."""
    return tuple(_evidence(r) for r in rows)


def _evidence(data: Mapping[str, Json]) -> Evidence:
    code = data.get("exit_code")
    return Evidence(
        name=str(data["name"]),
        command=str(data["command"]),
        exit_code=code if isinstance(code, int) else None,
        duration_s=float(cast("float", data.get("duration_s") or 0.0)),
        tree=str(data.get("tree") or ""),
        cases={str(k): str(v) for k, v in cast("dict[str, Json]", data.get("cases") or {}).items()},
        environment=str(data.get("environment") or ""),
        tail=str(data.get("tail") or ""),
        output_path=str(data.get("output_path") or ""),
    )


def load_usage(data: Mapping[str, Json] | None) -> Usage:
    """The usage that `dump` wrote; nothing used when there is none. What was written before prices has none."""
    data = data or {}
    used = Usage(
        input_tokens=int(cast("int", data.get("input_tokens") or 0)),
        output_tokens=int(cast("int", data.get("output_tokens") or 0)),
        seconds=float(cast("float", data.get("seconds") or 0.0)),
    )
    return replace(
        used,
        cost_usd=float(cast("float", data.get("cost_usd") or 0.0)),
        unpriced_tokens=int(cast("int", data.get("unpriced_tokens", used.tokens))),
    )
