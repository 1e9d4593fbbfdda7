"""A specialist's report: read strictly, accepted as the engine can stand by it, kept whole through the store."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrix_coder.core.models import Evidence, Finding, Severity, StepReport, StepVerdict, Usage
from matrix_coder.core.report import (
    MAX_ITEMS,
    MAX_TEXT,
    REPORT_SCHEMA,
    ReportRejected,
    parse_report,
    settle,
)
from matrix_coder.core.serde import dump, load_evidence, load_report, load_usage

FILES = {"calc.py": 9, "empty.py": 1}


def lines(file: str) -> int | None:
    """A workspace of two files."""
    return FILES.get(file)


def finding(severity: Severity = Severity.LOW, file: str = "", line: int | None = None) -> Finding:
    return Finding(severity=severity, summary="odd", file=file, line=line)


def report(*findings: Finding, verdict: StepVerdict = StepVerdict.PASS) -> StepReport:
    return StepReport(verdict=verdict, summary="done", findings=findings)


# -- parse_report


def test_parse_when_all_is_given_then_all_is_read() -> None:
    """Every field of the tool reaches the report, in order."""
    parsed = parse_report(
        {
            "verdict": "FAIL",
            "summary": " red ",
            "findings": [{"severity": "high", "summary": "wrong sign", "file": "calc.py", "line": 5}],
            "open_questions": ["which?"],
            "positive_observations": ["small"],
            "recommendation": "mend it",
        }
    )
    assert parsed == StepReport(
        verdict=StepVerdict.FAIL,
        summary="red",
        findings=(Finding(severity=Severity.HIGH, summary="wrong sign", file="calc.py", line=5),),
        open_questions=("which?",),
        positive_observations=("small",),
        recommendation="mend it",
    )


def test_parse_when_only_the_required_fields_are_given_then_the_rest_is_empty() -> None:
    """Verdict and summary are enough."""
    assert parse_report({"verdict": "pass", "summary": "ok"}) == StepReport(verdict=StepVerdict.PASS, summary="ok")


@pytest.mark.parametrize(
    "verdict", [None, "", "OK", "PASSED", "VERIFIED", "PASS, mostly", True, 1, ["PASS"], {"verdict": "PASS"}]
)
def test_parse_when_the_verdict_is_not_one_of_four_then_rejected_with_the_choices(verdict: object) -> None:
    """A verdict is never guessed; the one line back names what is possible."""
    with pytest.raises(ReportRejected, match="one of PASS, FAIL, BLOCKED, UNVERIFIABLE; found"):
        parse_report({"verdict": verdict, "summary": "x"})


@pytest.mark.parametrize(
    "findings",
    [
        "calc.py is wrong",
        {"severity": "LOW", "summary": "x"},
        ["wrong"],
        [{"summary": "no severity"}],
        [{"severity": "CRITICAL", "summary": "x"}],
        [{"severity": "LOW", "summary": "x"}] * (MAX_ITEMS + 1),
    ],
)
def test_parse_when_findings_are_malformed_or_too_many_then_rejected(findings: object) -> None:
    """A finding is read as it is or not at all; none is cut off in silence, since it could be the BLOCKER."""
    with pytest.raises(ReportRejected, match="expected"):
        parse_report({"verdict": "PASS", "summary": "x", "findings": findings})


@pytest.mark.parametrize("line", [0, -1, True, "5", 1.5, None])
def test_parse_when_a_line_is_no_line_number_then_the_finding_has_none(line: object) -> None:
    """Lines are whole numbers from one."""
    parsed = parse_report({"verdict": "PASS", "findings": [{"severity": "LOW", "summary": "x", "line": line}]})
    assert parsed.findings[0].line is None


def test_parse_when_texts_are_endless_then_they_are_bounded() -> None:
    """No report can fill the store or the next prompt."""
    parsed = parse_report({"verdict": "PASS", "summary": "x" * 99_999, "open_questions": ["y" * 99_999] * 999})
    assert len(parsed.summary) == MAX_TEXT
    assert len(parsed.open_questions) == MAX_ITEMS
    assert {len(q) for q in parsed.open_questions} == {MAX_TEXT}


def test_parse_when_a_text_holds_half_a_surrogate_pair_then_it_can_still_be_sent() -> None:
    """What JSON lets a model write must not lose its report on the way to the engine."""
    parsed = parse_report(json.loads(r'{"verdict": "PASS", "summary": "a\ud83d b", "open_questions": ["\udc00"]}'))
    assert json.dumps(dump(parsed), ensure_ascii=False).encode("utf-8")
    assert parsed.summary == "a? b"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
argument_names = st.sampled_from([*REPORT_SCHEMA["parameters"]["properties"], "extra"])  # type: ignore[index]


@settings(deadline=None)
@given(arguments=st.dictionaries(argument_names, json_values), verdict=st.sampled_from([*StepVerdict, None]))
def test_parse_when_arguments_are_anything_then_a_report_or_one_line(
    arguments: dict[str, object], verdict: StepVerdict | None
) -> None:
    """Whatever a model sends is either read or refused in one line; nothing else is ever raised."""
    if verdict is not None:
        arguments["verdict"] = verdict.value
    try:
        parsed = parse_report(arguments)
    except ReportRejected as rejected:
        assert "\n" not in str(rejected)[:200]
        return
    assert load_report(json.loads(json.dumps(dump(parsed)))) == parsed


def test_schema_when_shown_to_a_model_then_it_names_exactly_our_values() -> None:
    """The tool's choices are the enums themselves."""
    properties = REPORT_SCHEMA["parameters"]["properties"]  # type: ignore[index]
    assert properties["verdict"]["enum"] == [v.value for v in StepVerdict]
    assert properties["findings"]["items"]["properties"]["severity"]["enum"] == [s.value for s in Severity]


# -- settle


@pytest.mark.parametrize("verdict", StepVerdict)
def test_settle_when_there_is_nothing_to_object_to_then_the_report_is_unchanged(verdict: StepVerdict) -> None:
    """A report without findings, or with ones that exist, is accepted as it is."""
    given_report = report(finding(file="calc.py", line=9), finding(), verdict=verdict)
    assert settle(given_report, lines) == given_report


@pytest.mark.parametrize(("verdict", "accepted"), [("PASS", "FAIL"), ("FAIL", "FAIL"), ("BLOCKED", "BLOCKED")])
def test_settle_when_a_blocker_stands_beside_a_verdict_then_it_only_lowers(verdict: str, accepted: str) -> None:
    """A BLOCKER with a PASS is a FAIL; no other verdict moves, and none is raised."""
    settled = settle(report(finding(Severity.BLOCKER, "calc.py", 1), verdict=StepVerdict(verdict)), lines)
    assert settled.verdict == accepted


@pytest.mark.parametrize("severity", [s for s in Severity if s is not Severity.BLOCKER])
def test_settle_when_findings_are_below_blocker_then_the_pass_stands(severity: Severity) -> None:
    """Only a BLOCKER contradicts a PASS."""
    assert settle(report(finding(severity)), lines).verdict is StepVerdict.PASS


@pytest.mark.parametrize(("file", "line"), [("gone.py", None), ("gone.py", 1), ("calc.py", 10), ("empty.py", 2)])
def test_settle_when_a_finding_points_nowhere_then_it_is_dropped_and_counted(file: str, line: int | None) -> None:
    """A file or line that does not exist takes its finding with it, and the count says so."""
    real = finding(file="calc.py", line=9)
    settled = settle(report(finding(file=file, line=line), real, finding(file=file, line=line)), lines)
    assert (settled.findings, settled.dropped_findings) == ((real,), 2)


@pytest.mark.parametrize(("file", "line"), [("calc.py", None), ("calc.py", 1), ("empty.py", 1), ("", None), ("", 99)])
def test_settle_when_a_finding_points_somewhere_or_at_nothing_then_it_is_kept(file: str, line: int | None) -> None:
    """A finding without a place is about the whole."""
    assert settle(report(finding(file=file, line=line)), lines).dropped_findings == 0


# -- through the store and back

texts = st.text(max_size=30)
findings = st.builds(
    Finding, severity=st.sampled_from(Severity), summary=texts, file=texts, line=st.none() | st.integers(1, 10**6)
)
reports = st.builds(
    StepReport,
    verdict=st.sampled_from(StepVerdict),
    summary=texts,
    findings=st.lists(findings, max_size=3).map(tuple),
    open_questions=st.lists(texts, max_size=3).map(tuple),
    positive_observations=st.lists(texts, max_size=3).map(tuple),
    recommendation=texts,
    dropped_findings=st.integers(0, 50),
)
pieces = st.builds(
    Evidence,
    name=texts,
    command=texts,
    exit_code=st.none() | st.integers(-64, 255),
    duration_s=st.floats(0, 1e6),
    tree=texts,
    cases=st.dictionaries(texts, st.sampled_from(["passed", "failed", "error", "skipped"]), max_size=4),
    environment=texts,
    tail=texts,
    output_path=texts,
)
usages = st.builds(
    Usage, input_tokens=st.integers(0, 10**9), output_tokens=st.integers(0, 10**9), seconds=st.floats(0, 1e6)
)


def stored(value: object) -> object:
    return json.loads(json.dumps(value, ensure_ascii=False, allow_nan=False))


@settings(deadline=None)
@given(value=reports)
def test_report_when_stored_and_loaded_then_equal(value: StepReport) -> None:
    """Nothing of a report is lost or changed by the store."""
    assert load_report(stored(dump(value))) == value  # type: ignore[arg-type]


@settings(deadline=None)
@given(values=st.lists(pieces, max_size=3).map(tuple))
def test_evidence_when_stored_and_loaded_then_equal(values: tuple[Evidence, ...]) -> None:
    """Nothing of the evidence is lost or changed by the store, nor its order."""
    assert load_evidence(stored([dump(v) for v in values])) == values  # type: ignore[arg-type]


@settings(deadline=None)
@given(value=usages)
def test_usage_when_stored_and_loaded_then_equal(value: Usage) -> None:
    """No token and no second is lost by the store."""
    assert load_usage(stored(dump(value))) == value  # type: ignore[arg-type]


@pytest.mark.parametrize("loader", [load_usage])
def test_usage_when_there_is_none_then_nothing_was_used(loader: Callable[[None], Usage]) -> None:
    """A step that has not counted yet used nothing."""
    assert loader(None) == Usage()
