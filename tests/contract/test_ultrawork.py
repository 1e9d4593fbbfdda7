"""ultrawork with the real host: units side by side in checkouts of their own, merged one at a time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import git
from matrix_coder.cli.app import EXIT_LEFT
from matrix_coder.core.errors import InputError
from matrix_coder.core.models import RunOutcome, RunStatus, SpecialistResult, StepStatus, StepView
from matrix_coder.hermes.bridge import HermesBridge
from matrix_coder.hermes.commands import Commands
from matrix_coder.testing import Rule

from .runbench import Bench, RunBench, says, scripts
from .terminal import Terminal

GOOD = "def value() -> int:\n    return 1\n"
BAD = "def value() -> int:\n    return 0\n"


def project(repo: Path, *names: str) -> None:
    """A module for each name whose one test fails, and one module that all is well with."""
    for old in (*repo.glob("*.py"),):
        old.unlink()
    for name in names:
        (repo / f"{name}.py").write_text(BAD)
        (repo / f"test_{name}.py").write_text(
            f"from {name} import value\n\n\ndef test_{name}():\n    assert value() == 1\n"
        )
    (repo / "keep.py").write_text("def kept() -> int:\n    return 7\n")
    (repo / "test_keep.py").write_text("from keep import kept\n\n\ndef test_keep():\n    assert kept() == 7\n")


def write(path: str, content: str = GOOD) -> dict[str, Any]:
    return {"tool": "write_file", "args": {"path": path, "content": content}}


def shell(command: str) -> dict[str, Any]:
    return {"tool": "terminal", "args": {"command": command}}


def unit(name: str, *files: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "role": "executor", "goal": f"mend {name}", "files": list(files or (f"{name}.py",)), **more}


def plan(*units: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    return says("PASS", units=list(units))


def works(name: str, *before: dict[str, Any], verdict: str = "PASS", **more: Any) -> Rule:
    """What the unit's specialist does."""
    return Rule(match=rf"step \d+: units/{name}\b", steps=says(verdict, *before, **more))


def rest(*, aggregate: str = "PASS", verify: str = "PASS") -> list[Rule]:
    return scripts(aggregate=[says(aggregate)], verify=[says(verify)])


def units_of(place: RunBench, run_id: str = "r1") -> dict[str, StepView]:
    return {s.unit: s for s in place.client.show(run_id).steps if s.unit}


def told(place: RunBench, step: str) -> str:
    """All that the step's specialist was sent."""
    return "\n".join(t for t in map(json.dumps, place.model.bodies) if f": {step}. See the context" in t)


@pytest.mark.outcome("ultrawork", "verified")
def test_ultrawork_when_every_unit_is_merged_then_is_verified(bench: Bench) -> None:
    """Units work side by side, are merged in plan order, and the whole is verified; nothing is left lying about."""
    place = bench(
        [
            Rule(match=r"step \d+: plan\b", steps=plan(unit("a"), unit("b"), reader("look"))),
            works("a", write("a.py")),
            works("b", write("b.py")),
            works("look", shell("rm -f keep.py; echo x > extra.py"), summary="The sky is blue."),
            *rest(),
        ]
    )
    project(place.repo, "a", "b")
    before = place.repo.joinpath("keep.py").read_text()
    result = place.run(workflow="ultrawork")
    assert result.outcome is RunOutcome.VERIFIED, result.reason
    assert result.changed_files == ("a.py", "b.py")
    names = [s.name for s in result.steps]
    assert names == ["plan", "units", "units/a", "units/b", "units/look", "aggregate", "verify"]
    assert [s.number for s in result.steps] == list(range(1, 8))
    assert {n: s.note.split()[0] for n, s in units_of(place).items()} == {"a": "merged", "b": "merged", "look": "done"}
    assert place.repo.joinpath("keep.py").read_text() == before
    assert "The sky is blue." in told(place, "aggregate")
    assert not (place.home.path / "matrix_coder" / "units" / "r1").exists()
    assert place.client.diff("r1", 3).count("+++ b/a.py") == 1
    assert place.client.undo("r1", 3) == ("a.py",)
    assert (place.repo / "a.py").read_text() == BAD
    assert (place.repo / "b.py").read_text() == GOOD


def reader(name: str) -> dict[str, Any]:
    return {"name": name, "role": "explore", "goal": f"look into {name}", "topic": "the sky"}


def at_once(place: RunBench) -> int:
    """The most units that were ever at work at the same time."""
    now = most = 0
    for row in place.client.store.events(1):
        data = json.loads(row["data"])
        if row["kind"] == "step" and "/" in str(data.get("name")):
            now += 1
        elif row["kind"] == "verdict" and "/" in str(data.get("name")):
            now -= 1
        most = max(most, now)
    return most


@pytest.mark.outcome("ultrawork", "failed")
def test_ultrawork_when_units_fail_in_every_way_then_the_report_is_right_about_each(
    bench: Bench, tmp_path: Path
) -> None:
    """Six units in waves of three: what holds is merged; each other one is named with its reason, and kept."""
    started, go = tmp_path / "started", tmp_path / "go"
    wait = {**shell("true"), "touch": str(started), "until": str(go)}
    place = bench(
        [
            Rule(
                match=r"step \d+: plan\b",
                steps=plan(*(unit(n) for n in ("a", "clash", "slow", "quits", "b")), unit("breaks", "keep.py")),
            ),
            works("a", write("a.py")),
            works("clash", wait, write("clash.py")),
            works("slow", write("slow.py"), shell("sleep 600")),
            works("quits", write("quits.py"), verdict="FAIL", summary="It can't be done."),
            works("b", write("b.py")),
            works("breaks", write("keep.py", BAD), summary="All tests pass."),
            *rest(),
        ]
    )
    project(place.repo, "a", "clash", "slow", "quits", "b")
    run = place.start(workflow="ultrawork", limits={"step_s": 30.0})
    place.wait_for(started.exists)
    (place.repo / "clash.py").write_text("# mine\n" + BAD)
    go.touch()
    result = place.finish(run.run_id, timeout_s=280)
    assert result.outcome is RunOutcome.FAILED, result.reason
    notes = {n: s.note for n, s in units_of(place).items()}
    assert notes["a"] == "merged (a.py)" and notes["b"] == "merged (b.py)"
    assert "conflict: clash.py changed in the workspace since the unit began" in notes["clash"]
    assert "the step ran into its limit of 30 s" in notes["slow"]
    assert "said FAIL: It can't be done." in notes["quits"]
    assert "red in its own checkout: `pytest -q`: " in notes["breaks"]
    assert at_once(place) == 3
    written = Path(result.report_path).read_text()
    for name in ("clash", "slow", "quits", "breaks"):
        assert name in result.reason
        assert f"matrix-coder merge r1 {name}" in notes[name]
        assert notes[name] in written
        assert units_of(place)[name].status is StepStatus.FAILED
        kept = Path(notes[name].partition("kept in ")[2].partition(",")[0])
        assert (kept / (f"{name}.py" if name != "breaks" else "keep.py")).is_file()
    assert (place.repo / "clash.py").read_text() == "# mine\n" + BAD
    assert [(place.repo / f"{n}.py").read_text() for n in ("a", "b", "slow", "quits")] == [GOOD, GOOD, BAD, BAD]
    assert result.changed_files == ("a.py", "b.py", "clash.py")
    for line in notes.values():
        assert json.dumps(line)[1:-1][:40] in told(place, "aggregate")

    _take_later(place, result, notes)
    _drop_some(place, result)


def _take_later(place: RunBench, result: SpecialistResult, notes: dict[str, str]) -> None:
    """What was left out can be had with plain git, and taken later, by the same rules."""
    git(place.repo, "fetch", "-q", notes["quits"].partition("kept in ")[2].partition(",")[0], "matrix/r1-quits")
    assert git(place.repo, "diff", "--name-only", "FETCH_HEAD~", "FETCH_HEAD") == "quits.py\n"
    left_out = place.home.command("matrix-coder", "merge", "r1", "clash")
    assert left_out.rc == 17
    assert "clash is not merged: failed: conflict: clash.py changed in the workspace" in left_out.out
    assert units_of(place)["clash"].note in Path(result.report_path).read_text()
    assert place.client.show("r1").reason.startswith("clash was not merged: conflict: clash.py changed")
    place.client.merge("r1", "slow")
    later = place.finish("r1")
    assert later.outcome is RunOutcome.FAILED
    assert later.reason == f"merged after the end: slow; it had ended with: {result.reason}"
    assert later.reason in Path(later.report_path).read_text()
    assert later.changed_files == ("a.py", "b.py", "clash.py", "slow.py")
    assert (place.repo / "slow.py").read_text() == GOOD
    (place.repo / "clash.py").write_text(BAD)
    done = place.home.command("matrix-coder", "merge", "r1", "clash")
    assert (done.rc, done.out) == (0, "clash is merged, and the checks are as good as before: clash.py\n"), done.err
    assert (place.repo / "clash.py").read_text() == GOOD
    with pytest.raises(InputError, match="there is nothing left to take"):
        place.client.merge("r1", "a")
    with pytest.raises(InputError, match=r"a unit of r1 that was worked on \(a, b, breaks, clash, quits, slow\)"):
        place.client.merge("r1", "none")


def _drop_some(place: RunBench, result: SpecialistResult) -> None:
    """What is kept is listed, and dropped only on a person's word."""
    listed = place.home.command("matrix-coder", "checkouts", "r1").out
    assert [line.split()[:2] for line in listed.splitlines()] == [["quits", "failed"], ["breaks", "failed"]]
    assert "branch matrix/r1-quits; take it with `matrix-coder merge r1 quits`" in listed
    assert place.home.command("matrix-coder", "drop", "r1", "quits").rc == 2
    assert place.home.command("matrix-coder", "drop", "r1", "quits", "--yes").rc == 0
    assert [k.name for k in place.client.checkouts("r1")] == ["breaks"]
    assert units_of(place)["quits"].note == "failed: said FAIL: It can't be done.; its checkout was dropped (quits.py)"
    assert units_of(place)["quits"].note in Path(result.report_path).read_text()
    with pytest.raises(InputError, match="the checkout of quits"):
        place.client.merge("r1", "quits")
    assert (_drop_at_a_terminal(place, "n"), len(place.client.checkouts("r1"))) == (EXIT_LEFT, 1)
    assert (_drop_at_a_terminal(place, "y"), len(place.client.checkouts("r1"))) == (0, 0)


def _drop_at_a_terminal(place: RunBench, answer: str) -> int:
    """The exit code of `drop`, after one question and this answer."""
    terminal = Terminal(place.home, "drop", "r1", "breaks", cwd=place.repo)
    try:
        terminal.until(r"Remove it for good, with what is in it and nowhere else\?")
        terminal.press(f"{answer}\n")
        return terminal.end()
    finally:
        terminal.close()


@pytest.mark.outcome("ultrawork", "verified")
def test_plan_when_its_units_overlap_then_is_asked_once_more_with_the_overlaps_named(bench: Bench) -> None:
    """Overlap is found by code; the second plan counts."""
    place = bench(
        [
            Rule(
                match=r"step \d+: plan\b",
                attempts=(plan(unit("a", "*.py"), unit("b", "b.py")), plan(unit("a"), unit("b"))),
            ),
            works("a", write("a.py")),
            works("b", write("b.py")),
            *rest(),
        ]
    )
    project(place.repo, "a", "b")
    assert place.run(workflow="ultrawork").outcome is RunOutcome.VERIFIED
    assert list(units_of(place)) == ["a", "b"]
    assert "a and b: *.py and b.py both hold b.py" in told(place, "plan")


@pytest.mark.outcome("ultrawork", "verified")
def test_plan_when_it_overlaps_twice_then_code_makes_fewer_and_larger_units(bench: Bench) -> None:
    """After one more try the units that overlap become one, with the files of both."""
    place = bench(
        [
            Rule(match=r"step \d+: plan\b", steps=plan(unit("a", "a.py"), unit("b", "./a.py", "b.py"), unit("c"))),
            works("a-and-b", write("a.py"), write("b.py")),
            works("c", write("c.py")),
            *rest(),
        ]
    )
    project(place.repo, "a", "b", "c")
    result = place.run(workflow="ultrawork")
    assert result.outcome is RunOutcome.VERIFIED, result.reason
    assert list(units_of(place)) == ["a-and-b", "c"]
    assert len([e for k, e in place.events if k == "overlap"]) == 2


@pytest.mark.outcome("ultrawork", "verified")
def test_plan_when_it_names_no_units_then_one_unit_does_it_all(bench: Bench) -> None:
    """A goal that is not cut is one unit, merged like any other."""
    place = bench([*scripts(plan=[says("PASS")]), works("whole", write("a.py")), *rest()])
    project(place.repo, "a")
    assert place.run(workflow="ultrawork").outcome is RunOutcome.VERIFIED
    assert list(units_of(place)) == ["whole"]


def test_worker_when_killed_during_the_units_then_no_finished_unit_is_worked_on_twice(
    bench: Bench, tmp_path: Path
) -> None:
    """After kill -9 the units that were done are merged as they are; the one that was cut off is done again."""
    reached, go = tmp_path / "reached", tmp_path / "go"
    slow = {**shell("true"), "touch": str(reached), "until": str(go)}
    place = bench(
        [
            Rule(match=r"step \d+: plan\b", steps=plan(unit("a"), unit("b"))),
            works("a", write("a.py")),
            works("b", slow, write("b.py")),
            *rest(),
        ]
    )
    project(place.repo, "a", "b")
    run = place.start(workflow="ultrawork")
    place.event_of(1, "unit", unit="a", state="ready")
    place.wait_for(reached.exists)
    place.kill_worker()
    go.touch()
    result = place.finish(run.run_id)
    assert result.outcome is RunOutcome.VERIFIED, result.reason
    assert {n: s.attempt for n, s in units_of(place).items()} == {"a": 1, "b": 2}
    assert [s.number for s in result.steps] == [1, 2, 3, 4, 5, 6]


@pytest.mark.outcome("ultrawork", "failed")
def test_liars_when_units_that_pass_alone_break_the_suite_together_then_the_second_is_not_merged(bench: Bench) -> None:
    """Each unit is green by itself; the merge that turns the whole red is taken back, byte for byte."""
    place = bench(
        [
            Rule(match=r"step \d+: plan\b", steps=plan(unit("a", "a.py"), unit("b", "b.py", "gone.txt", "new.txt"))),
            works("a", write("a.py", "X = 'new'\n\n\n" + GOOD)),
            works("b", write("b.py", GOOD + "\n\nX = 'new'\n"), shell("rm gone.txt && echo n > new.txt")),
            *rest(),
        ]
    )
    project(place.repo, "a", "b")
    (place.repo / "gone.txt").write_bytes(b"mine\r\n")
    (place.repo / "test_both.py").write_text(
        "import a, b\n\n\ndef test_one_of_them_alone():\n    assert not (hasattr(a, 'X') and hasattr(b, 'X'))\n"
    )
    result = place.run(workflow="ultrawork")
    assert result.outcome is RunOutcome.FAILED, result.reason
    assert "b (red merge: with it in the workspace `pytest -q`: test_both::test_one_of_them_alone)" in result.reason
    assert result.changed_files == ("a.py",)
    assert (place.repo / "b.py").read_text() == BAD
    assert (place.repo / "gone.txt").read_bytes() == b"mine\r\n"
    assert not (place.repo / "new.txt").exists()


@pytest.mark.outcome("ultrawork", "failed")
def test_liars_when_all_say_pass_and_nobody_does_anything_then_is_not_verified(bench: Bench) -> None:
    """A model that always says PASS merges nothing and proves nothing."""
    place = bench([Rule(match=r"step \d+: ", steps=says("PASS", summary="All green. VERIFIED."))])
    project(place.repo, "a")
    result = place.run(workflow="ultrawork")
    assert result.outcome is RunOutcome.FAILED, result.reason
    assert units_of(place)["whole"].note == "empty: it changed nothing"


@pytest.mark.outcome("ultrawork", "failed")
def test_unit_when_it_leaves_its_files_then_is_not_merged_and_the_workspace_is_out_of_reach(bench: Bench) -> None:
    """What is not its own is refused at the merge, and the real workspace can't be written by any tool of its."""
    place = bench([])
    project(place.repo, "a", "b")
    outside = shell(f"echo x >> {place.repo}/b.py; echo done")
    by_tool = write(str(place.repo / "b.py"))
    place.model.script.rules = [
        Rule(match=r"step \d+: plan\b", steps=plan(unit("a"), unit("b"))),
        works("a", outside, by_tool, write("a.py")),
        works("b", write("b.py"), write("a.py")),
        *rest(),
    ]
    result = place.run(workflow="ultrawork")
    assert result.outcome is RunOutcome.FAILED, result.reason
    assert "it changed files that are not its own: a.py" in units_of(place)["b"].note
    assert (place.repo / "b.py").read_text() == BAD
    assert (place.repo / "a.py").read_text() == GOOD


def test_approve_merge_when_asked_for_then_waits_after_the_units_and_before_the_workspace_changes(bench: Bench) -> None:
    """`approve=merge` holds the run once the units are done; nothing is worked on again after the approval."""
    place = bench(
        [Rule(match=r"step \d+: plan\b", steps=plan(unit("a"))), works("a", write("a.py")), *rest()],
    )
    project(place.repo, "a")
    run = place.start(workflow="ultrawork", options={"approve": ("merge",)})
    held = place.client.wait(run.run_id, timeout_s=120)
    assert (held.status, held.reason) == (RunStatus.PAUSED, "waiting for approval of the merge")
    assert (place.repo / "a.py").read_text() == BAD
    place.client.approve(run.run_id)
    assert place.finish(run.run_id).outcome is RunOutcome.VERIFIED
    assert units_of(place)["a"].attempt == 1


@pytest.mark.outcome("ultrawork", "cancelled")
def test_cancel_when_units_are_at_work_then_ends_all_of_them(bench: Bench) -> None:
    """Cancel ends every unit's processes at once, and nothing of them reaches the workspace."""
    place = bench(
        [
            Rule(match=r"step \d+: plan\b", steps=plan(unit("a"), unit("b"))),
            works("a", write("a.py"), shell("sleep 600")),
            works("b", write("b.py"), shell("sleep 600")),
        ]
    )
    project(place.repo, "a", "b")
    run = place.start(workflow="ultrawork")
    for index in (3, 4):
        place.event_of(1, "tool", step=index, name="terminal")
    place.client.cancel(run.run_id)
    result = place.finish(run.run_id, timeout_s=30)
    assert result.outcome is RunOutcome.CANCELLED
    assert result.changed_files == ()
    assert not place.left_over()
    assert {s.status for s in units_of(place).values()} == {StepStatus.CANCELLED}


@pytest.mark.outcome("ultrawork", "budget")
@pytest.mark.outcome("ultrawork", "verified")
def test_budget_when_used_up_between_units_then_goes_on_with_the_rest_after_a_raise(bench: Bench) -> None:
    """The units that were done are kept over the resume; only the others are worked on."""
    place = bench(
        [
            Rule(match=r"step \d+: plan\b", steps=plan(unit("a"), unit("b"))),
            works("a", {**write("a.py"), "usage": {"input": 5_000, "output": 10}}),
            works("b", write("b.py")),
            *rest(),
        ],
        config={"delegation": {"max_concurrent_children": 1}},
    )
    project(place.repo, "a", "b")
    assert place.run(workflow="ultrawork", limits={"tokens": 4_000}).outcome is RunOutcome.BUDGET
    assert (place.repo / "a.py").read_text() == BAD
    assert [(k.name, k.state, k.branch) for k in place.client.checkouts("r1")] == [("a", "ready", "matrix/r1-a")]
    place.client.raise_limits("r1", tokens=1_000_000)
    result = place.finish("r1")
    assert result.outcome is RunOutcome.VERIFIED, result.reason
    assert [s.name for s in result.steps] == ["plan", "units", "units/a", "units", "units/b", "aggregate", "verify"]
    assert at_once(place) == 1


def test_worker_when_killed_during_a_merge_then_the_merge_is_made_once_and_whole(bench: Bench, tmp_path: Path) -> None:
    """After kill -9 between the change and its check, what was applied is put back and the merge is made again."""
    reached, go = tmp_path / "reached", tmp_path / "go"
    place = bench([Rule(match=r"step \d+: plan\b", steps=plan(unit("a"))), works("a", write("a.py")), *rest()])
    project(place.repo, "a")
    script = tmp_path / "check.sh"
    script.write_text(
        f"if [ $PWD = {place.repo} ] && grep -q 'return 1' a.py; then touch {reached}\n"
        f"while [ ! -e {go} ]; do sleep 0.05; done; fi\nexec pytest -q\n"
    )
    run = place.start(workflow="ultrawork", checks=(f"sh {script}",))
    place.wait_for(reached.exists)
    place.kill_worker()
    go.touch()
    result = place.finish(run.run_id)
    assert result.outcome is RunOutcome.VERIFIED, result.reason
    assert units_of(place)["a"].attempt == 1
    states = [json.loads(r["data"])["state"] for r in place.client.store.events(1) if r["kind"] == "unit"]
    assert states == ["ready", "merging", "merging", "merged"]


@pytest.mark.outcome("ultrawork", "failed")
@pytest.mark.outcome("ultrawork", "verified")
def test_later_merge_when_cancelled_killed_and_made_then_the_worker_makes_it_once_and_resume_verifies_the_whole(
    bench: Bench, tmp_path: Path
) -> None:
    """A later merge holds the workspace, can be cancelled, outlives the worker, and alone verifies nothing."""
    reached, go = tmp_path / "reached", tmp_path / "go"
    place = bench(
        [
            Rule(match=r"step \d+: plan\b", steps=plan(unit("a"))),
            works("a", write("a.py"), verdict="FAIL", summary="Not sure."),
            *rest(),
        ]
    )
    project(place.repo, "a")
    script = tmp_path / "check.sh"
    script.write_text(
        f"if [ $PWD = {place.repo} ] && grep -q 'return 1' a.py; then touch {reached}\n"
        f"while [ ! -e {go} ]; do sleep 0.05; done; fi\nexec pytest -q\n"
    )
    bridge = HermesBridge(place.client.store)
    first = place.run(workflow="ultrawork", checks=(f"sh {script}",), session="chat")
    assert first.outcome is RunOutcome.FAILED
    assert bridge.told("chat", "r1")

    asked = place.client.merge("r1", "a")
    assert (asked.outcome, asked.reason) == (None, "merging a")
    place.wait_for(reached.exists)
    for busy in (lambda: place.start(workflow="ralph"), lambda: place.client.merge("r1", "a")):
        with pytest.raises(InputError):
            busy()
    with pytest.raises(InputError, match="a run with steps to come to steer; found r1, merging a"):
        place.client.steer("r1", "be quick")
    place.client.cancel("r1")
    cancelled = place.finish("r1", timeout_s=30)
    assert cancelled.reason == f"a was not merged: cancelled by a person; it had ended with: {first.reason}"
    assert (place.repo / "a.py").read_text() == BAD
    assert not place.left_over()

    reached.unlink()
    said = Commands(place.home.path).run("/matrix merge r1 a", "chat")
    assert said.startswith("a of r1 is being merged by the worker, after its checks. `/matrix show r1` tells"), said
    place.wait_for(reached.exists)
    place.kill_worker()
    assert (place.repo / "a.py").read_text() == GOOD
    go.touch()
    merged = place.finish("r1")
    assert merged.outcome is RunOutcome.FAILED
    assert merged.reason.startswith("merged after the end: a; no unit is left out now, and `matrix-coder resume r1`")
    assert (merged.changed_files, [e.passed for e in merged.evidence]) == (("a.py",), [True])
    states = [json.loads(r["data"])["state"] for r in place.client.store.events(1) if r["kind"] == "unit"]
    assert states == ["failed", "merging", "ready", "failed", "merging", "merging", "merged"]
    assert [r.run_id for r in bridge.untold("chat")] == ["r1"]
    assert (bridge.told("chat", "r1"), bridge.told("chat", "r1")) == (True, False)

    place.client.resume("r1")
    whole = place.finish("r1")
    assert whole.outcome is RunOutcome.VERIFIED, whole.reason
    assert [s.name for s in whole.steps] == ["plan", "units", "units/a", "aggregate", "verify", "verify"]


def test_environment_when_it_is_copied_then_the_units_tests_see_the_units_own_code(bench: Bench) -> None:
    """An editable installation in the copied environment leads to the copy, not back to the workspace."""
    place = bench(
        [Rule(match=r"step \d+: plan\b", steps=plan(unit("a", "src"))), works("a", write("src/a.py")), *rest()]
    )
    project(place.repo)
    (place.repo / "src").mkdir()
    (place.repo / "src" / "a.py").write_text(BAD)
    (place.repo / "test_a.py").write_text("import a\n\n\ndef test_a():\n    assert a.value() == 1\n")
    # As an editable installation would leave it: a path file in an environment that git ignores, and its interpreter.
    site = place.repo / ".venv" / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    (site / "__editable__.a.pth").write_text(f"{place.repo}/src\n")
    tool = place.repo / ".venv" / "bin" / "run-tests"
    tool.parent.mkdir()
    tool.write_text(f"#!/bin/sh\nPYTHONPATH=$(cat {site}/*.pth) exec pytest -q\n")
    tool.chmod(0o755)
    with (place.repo / ".gitignore").open("a") as ignored:
        ignored.write(".venv/\n")
    result = place.run(workflow="ultrawork", checks=("run-tests",))
    assert result.outcome is RunOutcome.VERIFIED, result.reason
    assert [e.counts() for e in units_of(place)["a"].evidence] == ["2/2"]
