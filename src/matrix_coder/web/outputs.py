"""What the checks printed, and the report: files of the run's own directory, read in bounded parts."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from ..core.models import Evidence
from ..core.serde import load_evidence
from ..engine import views
from ..engine.paths import run_dir
from ..engine.store import Store
from .problems import NotHere
from .runs import check_result
from .shapes import CaseShape, EvidenceDetail, OutputPart, ReportText

MAX_PART = 262_144
_MAX_CASES = 2_000
_MAX_REPORT = 1_000_000
_ORDER = {"failed": 0, "error": 1, "skipped": 2}
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def _evidence(store: Store, number: int, step: int, index: int) -> Evidence:
    store.run_row(number)
    if step == 0:
        found = views.baseline(store, number)
    else:
        rows = store.read("select evidence from steps where run_id = ? and number = ?", number, step)
        found = load_evidence(json.loads(rows[0]["evidence"])) if rows else ()
    if not 0 <= index < len(found):
        raise NotHere(f"a check of step {step} of r{number}", f"no check {index}", "open the run again")
    return found[index]


def evidence_detail(store: Store, run_id: str, step: int, index: int) -> EvidenceDetail:
    """One check with its cases; step 0 is the starting tree. Raises RunUnknown, NotHere."""
    evidence = _evidence(store, views.run_number(run_id), step, index)
    cases = sorted(evidence.cases.items(), key=lambda c: (_ORDER.get(c[1], 3), c[0]))
    return EvidenceDetail(
        check=check_result(index, evidence),
        environment=evidence.environment,
        cases=[CaseShape(id=name, result=result) for name, result in cases[:_MAX_CASES]],
        cases_total=len(cases),
    )


def output(store: Store, run_id: str, step: int, index: int, *, end: int | None, limit: int) -> OutputPart:
    """The part of a check's output that ends at byte `end`, or at its end. Raises RunUnknown, NotHere.

    The file is looked for in the run's own directory and nowhere else, whatever the store says; where it is
    gone, the end of the output that the store kept is what there is.
    """
    number = views.run_number(run_id)
    evidence = _evidence(store, number, step, index)
    directory = run_dir(store.home, views.run_id_of(number)).resolve()
    path = Path(evidence.output_path).resolve() if evidence.output_path else directory
    if path.is_file() and path.is_relative_to(directory):
        return _part(path, end, limit)
    kept = evidence.tail.encode("utf-8", "replace")
    return OutputPart(text=evidence.tail, start=0, end=len(kept), size=len(kept))


def _part(path: Path, end: int | None, limit: int) -> OutputPart:
    with path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stop = size if end is None else min(end, size)
        start = max(0, stop - limit)
        stream.seek(start)
        data = stream.read(stop - start)
    cut = data.find(b"\n") if start else -1
    if 0 <= cut < len(data) - 1:
        # Whole lines, so that neither a character nor a line is torn; but never none at all.
        start, data = start + cut + 1, data[cut + 1 :]
    text = _COLOURS.sub("", data.decode("utf-8", "replace"))
    return OutputPart(text=text, start=start, end=stop, size=size)


def report_text(store: Store, run_id: str) -> ReportText:
    """The final report. Raises RunUnknown; NotHere while there is none."""
    number = views.run_number(run_id)
    store.run_row(number)
    path = run_dir(store.home, views.run_id_of(number)) / "report.md"
    if not path.is_file():
        raise NotHere(f"the report of r{number}", "none", "it is written when the run ends")
    with path.open(encoding="utf-8", errors="replace") as stream:
        return ReportText(markdown=stream.read(_MAX_REPORT))
