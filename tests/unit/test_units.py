"""Units as data: what a plan may say, which units would touch the same path, what fewer and larger ones look like."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrix_coder.core.models import Evidence, RunOutcome, StepReport, StepVerdict, Unit
from matrix_coder.core.registry import load_workflow
from matrix_coder.core.report import ReportRejected, parse_report, report_schema
from matrix_coder.core.serde import dump, load_report
from matrix_coder.core.units import (
    MAX_NAME,
    MAX_UNITS,
    UnitsInvalid,
    broken,
    merged,
    overlaps,
    owns,
    parse_units,
    reads_only,
    whole,
)
from matrix_coder.core.workflow import Course, End, RunStep, StepResult


def unit(name: str, *files: str) -> Unit:
    return Unit(name=name, role="executor", goal=f"do {name}", files=files)


def raw(**fields: object) -> dict[str, object]:
    return {"name": "api", "role": "executor", "goal": "mend it", "files": ["a.py"], **fields}


def test_units_when_well_formed_then_are_values_in_one_spelling() -> None:
    """A path has one spelling whatever way it was written, and nothing stands twice."""
    (found,) = parse_units([raw(files=["./src//a.py", "src/a.py", "lib/"])])
    assert found == Unit(name="api", role="executor", goal="mend it", files=("src/a.py", "lib"))
    (topic,) = parse_units([{"name": "look", "role": "explore", "goal": "see", "topic": "the cache"}])
    assert reads_only(topic) and topic.topic == "the cache"


@pytest.mark.parametrize(
    ("units", "why"),
    [
        ("a, b", "expected units to be a list"),
        (["a"], "each unit to be an object"),
        ([raw(name="Api")], "lower-case letters"),
        ([raw(name="../x")], "lower-case letters"),
        ([raw(name="-x")], "lower-case letters"),
        ([raw(name="x" * (MAX_NAME + 1))], "lower-case letters"),
        ([raw(), raw()], "each unit's name once; found api"),
        ([raw(role="boss")], "to be one of review, executor"),
        ([raw(goal=" ")], "a goal that reads well alone"),
        ([raw(files=[])], "to name the files"),
        ([raw(files="a.py")], "a list of at most"),
        ([raw(files=["/etc/passwd"])], "inside the workspace"),
        ([raw(files=["../a"])], "inside the workspace"),
        ([raw(files=["a/../../b"])], "inside the workspace"),
        ([raw(files=[".git/config"])], "inside the workspace"),
        ([raw(files=["~/x"])], "inside the workspace"),
        ([raw(files=[7])], "inside the workspace"),
        ([raw(files=["a\nb"])], "inside the workspace"),
        ([raw(role="explore")], "to have a topic and no files"),
        ([raw(role="review", files=[], topic="")], "to have a topic and no files"),
        ([raw(name=f"u{i}") for i in range(MAX_UNITS + 1)], "fewer and larger ones"),
    ],
)
def test_units_when_they_break_the_form_then_are_refused_with_one_line(units: object, why: str) -> None:
    """What a plan hands in is read strictly; the line says what was expected."""
    with pytest.raises(UnitsInvalid, match=re.escape(why)) as refused:
        parse_units(units)
    assert "\n" not in str(refused.value)
    with pytest.raises(ReportRejected, match=re.escape(why)):
        parse_report({"verdict": "PASS", "units": units})


def test_report_when_it_holds_units_then_they_survive_storage() -> None:
    """A plan's units are kept with its report, and only the planning step is offered them."""
    report = parse_report({"verdict": "PASS", "summary": "cut", "units": [raw(), raw(name="b", files=["b/*"])]})
    assert [u.name for u in report.units] == ["api", "b"]
    assert load_report(dump(report)) == report
    assert "units" in str(report_schema(units=True)) and "units" not in str(report_schema())


@pytest.mark.parametrize(
    ("one", "other", "known", "reason"),
    [
        ("src/a.py", "src/a.py", [], "both name src/a.py"),
        ("src", "src/a.py", ["src/a.py"], "both hold src/a.py"),
        ("src/new", "src/new/x.py", [], "can hold the same path"),
        ("src/*.py", "src/new.py", [], "can hold the same path"),
        ("src/*.py", "src/a.py", ["src/a.py"], "both hold src/a.py"),
        ("**/*.py", "src/deep/a.py", [], "can hold the same path"),
        ("**/*.py", "a.py", [], "can hold the same path"),
        ("src/*_test.py", "src/api_*", [], "can hold the same path"),
        ("src/[ab].py", "src/a.py", [], "can hold the same path"),
        ("src/?.py", "src/a.py", [], "can hold the same path"),
        ("**", "x", [], "can hold the same path"),
        ("package.json", "package-lock.json", [], "would rewrite package-lock.json"),
        ("package.json", "web/package.json", ["package-lock.json"], "would rewrite package-lock.json"),
        ("crates/a/Cargo.toml", "crates/b/Cargo.toml", ["Cargo.lock"], "would rewrite Cargo.lock"),
        ("pyproject.toml", "uv.lock", [], "would rewrite uv.lock"),
        ("pyproject.toml", "poetry.lock", [], "would rewrite poetry.lock"),
        ("go.mod", "go.sum", [], "would rewrite go.sum"),
        ("package.json", "yarn.lock", [], "would rewrite yarn.lock"),
        ("package.json", "pnpm-lock.yaml", [], "would rewrite pnpm-lock.yaml"),
        ("api/user.proto", "api/user_pb2.py", [], "would rewrite api/user_pb2.py"),
        ("src/a.test.ts", "src/__snapshots__/a.test.ts.snap", [], "would rewrite src/__snapshots__/a.test.ts.snap"),
    ],
)
def test_overlap_when_a_path_could_belong_to_both_then_is_found_either_way(
    one: str, other: str, known: list[str], reason: str
) -> None:
    """Equal paths, directories, patterns, lock files and generated files, whichever unit is named first."""
    for first, second in ((one, other), (other, one)):
        (found,) = overlaps([unit("x", first), unit("y", second)], known)
        assert reason in str(found)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("src/a.py", "src/b.py"),
        ("src/a", "src/ab"),
        ("src/*.py", "src/sub/a.py"),
        ("src/*.py", "src/a.js"),
        ("a/**", "b/**"),
        ("src/?.py", "src/ab.py"),
        ("web/package.json", "pyproject.toml"),
        ("web/package.json", "api/package-lock.json"),
        ("**/*.test.ts", "**/*.spec.ts"),
    ],
)
def test_overlap_when_no_path_can_belong_to_both_then_there_is_none(one: str, other: str) -> None:
    """Units that are apart are left alone."""
    known = ["src/a.py", "src/ab", "src/sub/a.py", "web/package-lock.json", "uv.lock"]
    assert overlaps([unit("x", one), unit("y", other)], known) == ()


def test_overlap_when_a_unit_only_reads_then_it_overlaps_with_nothing() -> None:
    """Topics are no files."""
    look = Unit(name="look", role="explore", goal="see", topic="src")
    assert overlaps([look, unit("x", "src"), Unit(name="l2", role="review", goal="see", topic="src")]) == ()


SEGMENT = st.text(alphabet="ab*?", min_size=1, max_size=4).filter(lambda s: "**" not in s)
PATTERN = st.lists(SEGMENT, min_size=1, max_size=3).map("/".join)
PATH = st.lists(st.text(alphabet="ab", min_size=1, max_size=4), min_size=1, max_size=3).map("/".join)


def _matches(pattern: str, path: str) -> bool:
    """An independent reading: segment by segment, a pattern a plain name also stands for all below it."""
    parts, names = pattern.split("/"), path.split("/")
    below = len(names) > len(parts) and not set("*?") & set(parts[-1])
    return (below or len(parts) == len(names)) and all(fnmatchcase(n, p) for p, n in zip(parts, names, strict=False))


@given(one=PATTERN, other=PATTERN, path=PATH)
def test_overlap_when_some_path_belongs_to_both_then_is_never_missed(one: str, other: str, path: str) -> None:
    """Whatever both own, by a second reading of the patterns, the overlap is found; and ownership agrees with it."""
    assert owns(unit("x", one), path) == _matches(one, path)
    if _matches(one, path) and _matches(other, path):
        assert overlaps([unit("x", one), unit("y", other)])


def test_owns_when_a_manifest_is_the_units_then_its_lock_file_is_too() -> None:
    """A unit that may change a manifest may let its tool rewrite the lock; nothing else comes along."""
    mine = unit("x", "web/package.json", "src")
    assert owns(mine, "web/package-lock.json") and owns(mine, "package-lock.json") and owns(mine, "src/deep/new.py")
    assert not owns(mine, "web/index.js") and not owns(mine, "api/package-lock.json") and not owns(mine, "uv.lock")


def test_merged_when_units_overlap_in_a_chain_then_become_one_where_the_first_stood() -> None:
    """Fewer, larger units: connected ones are joined, the others and their order stay."""
    units = [unit("a", "a"), unit("b", "b"), unit("c", "a", "d"), unit("d", "d", "e")]
    joined = merged(units, overlaps(units))
    assert [u.name for u in joined] == ["a-and-c-and-d", "b"]
    assert joined[0].files == ("a", "d", "e")
    assert "c: do c" in joined[0].goal
    assert overlaps(joined) == ()


@given(st.lists(st.lists(st.sampled_from(["a", "b", "a/x", "b/*", "**/x", "c"]), min_size=1, max_size=2), max_size=6))
def test_merged_when_any_units_overlap_then_the_result_is_apart_and_loses_no_file(files: list[list[str]]) -> None:
    """After the merge by code no two units share a path, every file has an owner, and names stay unique."""
    units = [unit(f"u{i}", *dict.fromkeys(f)) for i, f in enumerate(files)]
    joined = merged(units, overlaps(units))
    assert overlaps(joined) == ()
    assert {f for u in units for f in u.files} == {f for u in joined for f in u.files}
    assert len({u.name for u in joined}) == len(joined) <= len(units)
    assert all(len(u.name) <= MAX_NAME for u in joined)


def test_whole_when_nothing_was_cut_then_owns_every_path() -> None:
    """One unit for the whole goal may change anything."""
    assert owns(whole("do it"), "a") and owns(whole("do it"), "deep/down/b.txt")


def evidence(code: int | None, **cases: str) -> Evidence:
    return Evidence(name="check", command="pytest -q", exit_code=code, duration_s=1, tree="t", cases=cases)


@pytest.mark.parametrize(
    ("before", "after", "bad"),
    [
        (evidence(1, a="failed", b="passed"), evidence(0, a="passed", b="passed"), ""),
        (evidence(1, a="failed", b="passed"), evidence(1, a="failed", b="passed"), ""),
        (evidence(1, a="failed", b="passed"), evidence(1, a="passed", b="failed"), "`pytest -q`: b"),
        (evidence(1, a="failed"), evidence(1, a="failed", new="error"), "`pytest -q`: new"),
        (evidence(0), evidence(1), "`pytest -q` (exit 1; it was exit 0)"),
        (evidence(1), evidence(1), ""),
        (evidence(1), evidence(None), "timed out"),
        (evidence(1, a="failed"), evidence(2), "`pytest -q` (exit 2; it was 0/1)"),
        (evidence(0, a="passed"), evidence(1, a="passed"), "`pytest -q` (1/1; it was 1/1)"),
    ],
)
def test_broken_when_checks_speak_twice_then_names_what_is_new(before: Evidence, after: Evidence, bad: str) -> None:
    """Only what fails now and did not before counts against a change."""
    found = broken([before], [after])
    assert bool(found) == bool(bad)
    assert bad in "".join(found)


def test_broken_when_a_file_could_not_be_collected_before_then_its_cases_are_not_new() -> None:
    """A file of tests that stood there as one error may have failing cases once it can be read."""
    before = evidence(1, test_a="error")
    assert broken([before], [evidence(1, **{"test_a::one": "failed"})]) == ()


def _end(**units: object) -> End:
    """How a run ends whose units came to this and whose verify step had a proof."""
    was = evidence(1, a="failed")
    course = Course(load_workflow("ultrawork"), (was,))
    passed = StepReport(verdict=StepVerdict.PASS)
    course.take(StepResult(report=passed), cap=1)
    at = course.take(StepResult(report=passed, last_number=7, **units), cap=1)  # type: ignore[arg-type]
    assert at == RunStep(step="aggregate", number=8, iteration=1)
    course.take(StepResult(report=passed), cap=1)
    now = Evidence(name="check", command="pytest -q", exit_code=0, duration_s=1, tree="u", cases={"a": "passed"})
    end = course.take(StepResult(report=passed, evidence=(now,)), cap=1)
    assert isinstance(end, End)
    return end


def test_course_when_units_took_numbers_then_goes_on_after_them_and_counts_the_missing() -> None:
    """A proof of the rest is no success where a unit failed, and none of the whole where one changed nothing."""
    assert _end().outcome is RunOutcome.VERIFIED
    failed = _end(failed_units=("api (conflict)",), empty_units=("b",))
    assert failed.outcome is RunOutcome.FAILED
    assert failed.reason.startswith("units that failed: api (conflict). Of the rest: ")
    empty = _end(empty_units=("b",))
    assert empty.outcome is RunOutcome.UNVERIFIED
    assert empty.reason.startswith("units that changed nothing: b.")
