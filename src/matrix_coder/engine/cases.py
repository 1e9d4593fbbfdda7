"""The cases of a check: what each test came to, from the reports that pytest wrote while the check ran."""

from __future__ import annotations

import time
import xml.etree.ElementTree as ET
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

_MAX_REPORT = 100_000_000
# From the best to the worst.
_STATUSES = ("skipped", "passed", "failed", "error")


def set_aside(report: Path) -> None:
    """Keep a finished report from being overwritten by the next pytest that the same check starts."""
    with suppress(OSError):
        if _is_readable(report) and report.read_bytes().rstrip().endswith(b"</testsuites>"):
            report.rename(report.with_name(f"{report.stem}.{time.monotonic_ns():020}.xml"))


def reports(report: Path) -> list[Path]:
    """The reports of every pytest that the check started, in the order in which they ended."""
    return [*sorted(report.parent.glob(f"{report.stem}.*.xml")), report]


def _is_readable(report: Path) -> bool:
    """Whether it is a plain file of a bounded size; a hostile test could leave anything in its place."""
    return report.is_file() and not report.is_symlink() and report.stat().st_size < _MAX_REPORT


def read_cases(*reports: Path) -> dict[str, str]:
    """Each test's result by its id, from JUnit reports; empty when there are none that can be read.

    A file of tests that could not be collected has no cases to name: it stands there itself, without `::`,
    as an error. Of two results for one id the worse counts. A pytest that a test of another one ran is left out.
    """
    suites = [s for report in reports for s in _suites(report)]
    cases: dict[str, str] = {}
    for suite in suites:
        if not any(other.holds(suite) for other in suites):
            for case, status in suite.cases:
                cases[case] = max(status, cases.get(case, status), key=_STATUSES.index)
    return cases


@dataclass(frozen=True, slots=True, kw_only=True)
class _Suite:
    """One run of pytest: when it began and ended (seconds since the epoch), and its cases in order."""

    begun: float
    ended: float
    cases: tuple[tuple[str, str], ...]

    def holds(self, other: _Suite) -> bool:
        same = (self.begun, self.ended) == (other.begun, other.ended)
        return not same and self.begun <= other.begun and other.ended <= self.ended


def _suites(report: Path) -> list[_Suite]:
    with suppress(OSError, ET.ParseError):
        if _is_readable(report):
            root = ET.parse(report).getroot()  # noqa: S314 - written by the check we ran, and bounded
            return [_suite(element) for element in root.iter("testsuite")]
    return []


def _suite(element: ET.Element) -> _Suite:
    begun = seconds = 0.0
    with suppress(ValueError):
        begun = datetime.fromisoformat(element.get("timestamp", "")).timestamp()
        seconds = float(element.get("time", ""))
    cases = tuple(_case(case) for case in element.iter("testcase"))
    return _Suite(begun=begun, ended=begun + seconds, cases=cases)


def _case(element: ET.Element) -> tuple[str, str]:
    kinds = {child.tag for child in element}
    status = next((s for s in ("error", "failure", "skipped") if s in kinds), "passed")
    name = "::".join(filter(None, (element.get("classname"), element.get("name"))))
    return name, "failed" if status == "failure" else status
