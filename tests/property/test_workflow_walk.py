"""Whatever the specialists say and the checks show, a run's walk keeps its promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hypothesis import event, given, settings
from hypothesis import strategies as st

from matrix_coder.core.models import Evidence, RunOutcome, StepReport, StepVerdict
from matrix_coder.core.names import Workflow
from matrix_coder.core.registry import WorkflowDefinition, load_workflow
from matrix_coder.core.workflow import End, RunStep, StepResult, advance, begin

# How good each verdict is for the run.
WORTH = {StepVerdict.BLOCKED: 0, StepVerdict.FAIL: 0, StepVerdict.UNVERIFIABLE: 1, StepVerdict.PASS: 2}

codes = st.sampled_from([None, -15, 0, 0, 0, 1, 2, 5, 127])
statuses = st.sampled_from(["passed", "passed", "failed", "error", "skipped"])
case_names = st.sampled_from(["t::a", "t::b", "t.C::c", "u::d", "t"])
verdicts = st.sampled_from(StepVerdict)


@st.composite
def evidence(draw: st.DrawFn, name: str, command: str) -> Evidence:
    """What one check may say: any exit code beside any cases."""
    cases = draw(st.one_of(st.just({}), st.dictionaries(case_names, statuses, max_size=4)))
    tree = draw(st.sampled_from(["", "tree-1", "tree-2"]))
    return Evidence(name=name, command=command, exit_code=draw(codes), duration_s=1.0, tree=tree, cases=cases)


def looks() -> st.SearchStrategy[tuple[Evidence, ...]]:
    """What the engine may have gathered at one point: no check, one, or two; sometimes not the same as before."""
    one = evidence("check-1", "pytest -q")
    two = evidence("check-2", "ruff check .")
    other = evidence("check-1", "true")
    return st.one_of(st.just(()), st.tuples(one), st.tuples(one, two), st.tuples(two), st.tuples(other))


@dataclass(slots=True)
class Walk:
    moves: list[RunStep]
    results: list[StepResult]
    end: End


def walk(
    definition: WorkflowDefinition, cap: int, baseline: tuple[Evidence, ...], play: Callable[[], StepResult]
) -> Walk:
    """Drive the definition to its end, as the worker does."""
    moves, results = [begin(definition)], []
    for _ in range(cap * len(definition.steps) + 1):
        results.append(play())
        move = advance(definition, moves[-1], results[-1], cap=cap, baseline=baseline)
        if isinstance(move, End):
            return Walk(moves, results, move)
        moves.append(move)
    raise AssertionError(f"no end after {len(moves)} steps of {definition.name}")


@st.composite
def results(draw: st.DrawFn) -> StepResult:
    stop = draw(st.sampled_from([None] * 9 + [End(outcome=RunOutcome.CANCELLED, reason="cancelled")]))
    return StepResult(report=StepReport(verdict=draw(verdicts)), evidence=draw(looks()), stop=stop)


@settings(deadline=None)
@given(data=st.data(), workflow=st.sampled_from(Workflow), cap=st.integers(1, 6), baseline=looks())
def test_walk_when_anything_is_said_then_it_ends_once_within_the_cap(
    data: st.DataObject, workflow: Workflow, cap: int, baseline: tuple[Evidence, ...]
) -> None:
    """Every walk ends, starts at most `cap` iterations, and counts steps and iterations only upwards."""
    made = walk(load_workflow(workflow), cap, baseline, lambda: data.draw(results()))
    assert [m.number for m in made.moves] == list(range(1, len(made.moves) + 1))
    iterations = [m.iteration for m in made.moves]
    assert iterations == sorted(iterations)
    assert set(iterations) == set(range(1, max(iterations) + 1))
    assert max(iterations) <= cap
    assert isinstance(made.end.outcome, RunOutcome)


@st.composite
def hopeful(draw: st.DrawFn, baseline: tuple[Evidence, ...]) -> StepResult:
    """A PASS over the baseline's checks as they would look when mended, most of the time all but for one thing."""
    final = [replace(e, exit_code=0, tree="tree-9", cases=dict.fromkeys(e.cases, "passed")) for e in baseline]
    for case in [c for e in final for c in e.cases if "::" not in c]:
        for e in final:
            if e.cases.pop(case, None):
                e.cases[f"{case}::inside"] = "passed"
    flaw = draw(st.integers(0, 6))
    if final and flaw == 1:
        final[0] = replace(final[0], exit_code=draw(codes))
    elif final and final[0].cases and flaw == 2:
        final[0].cases[draw(st.sampled_from(sorted(final[0].cases)))] = draw(statuses)
    elif final and final[0].cases and flaw == 3:
        del final[0].cases[draw(st.sampled_from(sorted(final[0].cases)))]
    elif final and flaw == 4:
        del final[draw(st.integers(0, len(final) - 1))]
    verdict = draw(verdicts) if flaw == 5 else StepVerdict.PASS
    return StepResult(report=StepReport(verdict=verdict), evidence=tuple(final))


def really_failed(evidence: Evidence) -> bool:
    return bool(evidence.failing) or evidence.exit_code not in (0, None, -15, 5, 127)


@settings(deadline=None, max_examples=400)
@given(data=st.data(), workflow=st.sampled_from(Workflow), cap=st.integers(1, 4), baseline=looks())
def test_walk_when_it_ends_verified_then_all_three_proofs_are_there(
    data: st.DataObject, workflow: Workflow, cap: int, baseline: tuple[Evidence, ...]
) -> None:
    """No `verified` without green final evidence for every check, a PASS from verify, and a check red before."""
    made = walk(load_workflow(workflow), cap, baseline, lambda: data.draw(hopeful(baseline)))
    last = made.results[-1]
    event(made.end.outcome)
    if made.end.outcome is not RunOutcome.VERIFIED:
        return
    assert made.moves[-1].step == "verify"
    assert last.report.verdict is StepVerdict.PASS
    assert last.evidence
    assert all(e.exit_code == 0 and not e.failing for e in last.evidence)
    assert {(e.name, e.command) for e in baseline} <= {(e.name, e.command) for e in last.evidence}
    assert any(really_failed(e) for e in baseline)
    ran = {c for e in last.evidence for c, s in e.cases.items() if s != "skipped"}
    assert all(c in ran for e in baseline for c, s in e.cases.items() if s != "skipped" and "::" in c)


@settings(deadline=None)
@given(baseline=looks(), final=looks(), workflow=st.sampled_from(Workflow), data=st.data())
def test_verdict_when_it_is_worse_then_the_run_never_ends_better(
    baseline: tuple[Evidence, ...], final: tuple[Evidence, ...], workflow: Workflow, data: st.DataObject
) -> None:
    """With the same evidence, a model's words can lower a run to less than verified and never raise it there."""
    definition = load_workflow(workflow)
    at = RunStep(step=data.draw(st.sampled_from(sorted(definition.steps))), number=3, iteration=1)

    def verified(verdict: StepVerdict) -> bool:
        result = StepResult(report=StepReport(verdict=verdict), evidence=final)
        move = advance(definition, at, result, cap=1, baseline=baseline)
        return isinstance(move, End) and move.outcome is RunOutcome.VERIFIED

    assert all(not verified(v) for v, worth in WORTH.items() if worth < WORTH[StepVerdict.PASS])


@settings(deadline=None)
@given(baseline=looks(), final=looks(), words=st.text(max_size=80))
def test_words_when_they_claim_success_then_they_change_nothing(
    baseline: tuple[Evidence, ...], final: tuple[Evidence, ...], words: str
) -> None:
    """Only verdict and evidence decide; what a report says besides moves no run."""
    definition = load_workflow("ralph")
    at = RunStep(step="verify", number=2, iteration=1)

    def move(report: StepReport) -> object:
        made = advance(definition, at, StepResult(report=report, evidence=final), cap=1, baseline=baseline)
        return made.outcome if isinstance(made, End) else made

    claim = f"verified: all checks passed. {words}"
    talk = StepReport(
        verdict=StepVerdict.UNVERIFIABLE, summary=claim, positive_observations=(claim,), recommendation=claim
    )
    assert move(talk) == move(StepReport(verdict=StepVerdict.UNVERIFIABLE))
