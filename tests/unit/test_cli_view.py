"""The live view, drawn without a host."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from matrix_coder.cli.follow import Event
from matrix_coder.cli.report import Report
from matrix_coder.cli.tables import runs_table
from matrix_coder.cli.terminal import cleaned
from matrix_coder.cli.view import Scene, clock, picture
from matrix_coder.core.models import (
    Evidence,
    RunOutcome,
    RunStatus,
    RunView,
    StepReport,
    StepStatus,
    StepVerdict,
    StepView,
    Usage,
)
from matrix_coder.engine.plan import Limits

HOSTILE = "\x1b]0;owned\x07\x1b[2J[bold red]loud[/] \u202egnirts\u2066 :boom: \x9b31m\r\n"
RED = Evidence(
    name="c", command="pytest -q", exit_code=1, duration_s=1.5, tree="t", cases={"a": "passed", "b": "failed"}
)
GREEN = replace(RED, exit_code=0, cases={"a": "passed", "b": "passed"})


def step(number: int, **more: Any) -> StepView:
    given = {"role": "executor", "status": StepStatus.DONE, "iteration": 1, "started_at": 1_000.0, "ended_at": 1_012.0}
    return StepView(number=number, **(given | more))


def said(verdict: StepVerdict, summary: str = "") -> StepReport:
    return StepReport(verdict=verdict, summary=summary)


RUN = RunView(
    run_id="r8",
    workflow="ralph",
    goal="make the tests pass",
    workspace="/srv/shop",
    checks=("pytest -q",),
    status=RunStatus.RUNNING,
    iteration=2,
    started_at=990.0,
    steps=(
        step(1, report=said(StepVerdict.PASS, "mended"), usage=Usage(input_tokens=3_000, output_tokens=201)),
        step(2, role="verify", report=said(StepVerdict.PASS), evidence=(RED,)),
        step(3, iteration=2, status=StepStatus.RUNNING, started_at=1_030.0, ended_at=0.0, attempt=2),
    ),
)
CALLS = (
    Event(kind="tool", data={"step": 1, "name": "terminal", "preview": "an old step's call", "refused": ""}),
    Event(kind="tool", data={"step": 3, "name": "patch", "preview": "calc.py", "refused": ""}),
    Event(kind="tool", data={"step": 3, "name": "terminal", "preview": "rm -rf /", "refused": "Not run: dangerous"}),
)
SCENE = Scene(
    run=RUN,
    limits=Limits(cap=5, budget_s=600.0, tokens=10_000),
    used=Usage(input_tokens=7_000, output_tokens=500, seconds=200.0),
    events=CALLS,
    now=1_041.0,
)


def drawn(scene: Scene, width: int = 100, height: int = 40, *, colour: bool = False) -> str:
    console = Console(
        file=io.StringIO(),
        width=width,
        height=height,
        force_terminal=colour,
        color_system="truecolor" if colour else None,
    )
    console.print(picture(scene, width=width, height=height))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


def test_picture_when_a_run_is_at_work_then_shows_where_it_is() -> None:
    """Header, steps with claim beside check, budgets and the tail of the child at work are all there."""
    text = drawn(SCENE)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0] == "r8 ralph running iteration 2/5"
    assert "goal make the tests pass" in lines
    assert "1 executor PASS 12 s 3,201" in lines
    assert "2 verify PASS FAIL 1/2 12 s 0" in lines
    assert "3 executor running 11 s 0" in lines
    assert any(line.startswith("iterations") and line.endswith("2 of 5") for line in lines)
    assert any(line.startswith("time") and line.endswith("3:31 of 10:00") for line in lines)
    assert any(line.startswith("tokens") and line.endswith("7,500 of 10,000") for line in lines)
    assert lines[-3:] == ["step 3 executor, attempt 2", "patch calc.py", "terminal REFUSED rm -rf /"]
    assert "an old step's call" not in text
    assert not any(line.startswith("money") for line in lines)


@pytest.mark.parametrize("width", [60, 80, 109, 110, 200])
@pytest.mark.parametrize("goal", ["short", "a goal of very many words " * 40, "目标" * 200, HOSTILE * 20])
def test_picture_when_the_terminal_has_a_width_then_no_line_is_wider(width: int, goal: str) -> None:
    """Whatever a goal, a summary or a name is made of, every line fits and none is wrapped."""
    steps = tuple(step(n, report=said(StepVerdict.PASS, goal), note=goal) for n in range(1, 30))
    scene = replace(SCENE, run=replace(RUN, goal=goal, workspace=goal, reason=goal, steps=(*steps, *RUN.steps[2:])))
    text = drawn(scene, width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert len(text.splitlines()) == len(drawn(replace(scene, run=replace(scene.run, goal="x")), width).splitlines())


def test_picture_when_the_terminal_is_narrow_then_every_step_has_its_number_and_its_words() -> None:
    """In forty columns no heading is cut; the time and the tokens of a step give way."""
    text = drawn(SCENE, 40)
    assert re.search(r"^# +step +claimed +checked *$", text, re.M)
    assert re.search(r"^2 +verify +PASS +FAIL 1/2 *$", text, re.M)


@pytest.mark.parametrize("height", [16, 24, 40, 100])
def test_picture_when_the_terminal_is_low_then_fits_in_it(height: int) -> None:
    """A view that is redrawn in place must never be higher than the terminal."""
    run = replace(RUN, steps=(*(step(n) for n in range(1, 200)), step(200, status=StepStatus.RUNNING, ended_at=0.0)))
    calls = tuple(Event(kind="tool", data={"step": 200, "name": "terminal", "preview": str(n)}) for n in range(50))
    lines = drawn(replace(SCENE, run=run, events=calls), 80, height).splitlines()
    assert len(lines) < max(height, 19)
    assert "49" in lines[-1]


def test_picture_when_texts_hold_escape_sequences_then_none_reaches_the_terminal() -> None:
    """What models and people write is shown, never obeyed: no control character, no markup, no emoji code."""
    run = replace(
        RUN,
        goal=HOSTILE,
        workspace=HOSTILE,
        reason=HOSTILE,
        checks=(HOSTILE,),
        steps=(
            step(1, report=said(StepVerdict.FAIL, HOSTILE), note=HOSTILE, name=f"units/{HOSTILE}"),
            step(3, status=StepStatus.RUNNING, ended_at=0.0),
        ),
    )
    kinds = ("tool", "waiting", "retry")
    data = {"step": 3, "name": HOSTILE, "preview": HOSTILE, "words": HOSTILE}
    text = drawn(replace(SCENE, run=run, events=tuple(Event(kind=k, data=data) for k in kinds)), 200)
    assert not [c for c in text if c != "\n" and not c.isprintable()]
    assert "[bold red]loud[/]" in text
    assert ":boom:" in text


def test_picture_when_a_check_runs_then_says_which_and_its_last_line() -> None:
    """While the engine's own check runs there is no child to show: the view tells of the check."""
    run = replace(RUN, steps=(*RUN.steps[:2], step(3, role="verify", status=StepStatus.RUNNING, ended_at=0.0)))
    text = drawn(replace(SCENE, run=run, events=(), check_line="test_calc.py ..F \x1b[31m"))
    assert "step 3 verify: the engine runs `pytest -q`" in text
    assert "test_calc.py ..F \u241b[31m" in text
    opening = drawn(replace(SCENE, run=replace(RUN, steps=()), check_line="collecting"))
    assert "the checks run on the starting tree: collecting" in opening


def test_picture_when_units_are_worked_on_side_by_side_then_each_has_its_tail() -> None:
    """Of several children at work each is shown with its own last call."""
    units = tuple(step(n, name=f"units/u{n}", status=StepStatus.RUNNING, ended_at=0.0) for n in (4, 5))
    calls = tuple(Event(kind="tool", data={"step": n, "name": "patch", "preview": f"of-{n}"}) for n in (4, 5))
    text = drawn(replace(SCENE, run=replace(RUN, steps=(*RUN.steps[:2], *units)), events=calls))
    assert [text.index(x) for x in ("step 4 u4", "of-4", "step 5 u5", "of-5")] == sorted(
        text.index(x) for x in ("step 4 u4", "of-4", "step 5 u5", "of-5")
    )


def test_picture_when_the_provider_asks_to_wait_then_counts_down() -> None:
    """A rate limit is seen with what is left of the wait."""
    waits = Event(kind="waiting", data={"step": 3, "seconds": 60, "resumes_at": 1_071.0, "words": "429"})
    assert "the provider asks to wait, 30 s more: 429" in drawn(replace(SCENE, events=(waits,)))


@pytest.mark.parametrize(
    ("status", "outcome", "reason", "last"),
    [
        (RunStatus.QUEUED, None, "", "waits for a worker"),
        (RunStatus.PAUSED, None, "waiting for approval of the plan", "waits: waiting for approval of the plan"),
    ],
)
def test_picture_when_nothing_is_at_work_then_says_why(
    status: RunStatus, outcome: RunOutcome | None, reason: str, last: str
) -> None:
    """A run that waits says for what."""
    run = replace(RUN, status=status, outcome=outcome, reason=reason, steps=RUN.steps[:2])
    assert drawn(replace(SCENE, run=run)).splitlines()[-1].rstrip() == last


@pytest.mark.parametrize("outcome", RunOutcome)
def test_picture_when_a_run_has_ended_then_says_how_and_nothing_of_a_child(outcome: RunOutcome) -> None:
    """The last state that stays on the screen names the outcome and its reason."""
    ended = replace(RUN, status=RunStatus.ENDED, outcome=outcome, reason="so it is", steps=RUN.steps[:2])
    text = drawn(replace(SCENE, run=ended))
    assert f"r8 ralph  {outcome.value}  iteration 2/5  so it is" in text
    assert "REFUSED" not in text


def test_picture_when_colours_are_drawn_then_the_claim_and_the_check_differ() -> None:
    """A red check is red, whatever was claimed beside it."""
    assert "\x1b[1;31mFAIL 1/2" in drawn(SCENE, colour=True)


def test_runs_table_when_drawn_then_a_row_for_each_run_that_fits() -> None:
    """The list tells state, iteration, cost and as much of the goal as there is room for."""
    console = Console(file=io.StringIO(), width=80, color_system=None)
    priced = replace(RUN, run_id="r7", outcome=RunOutcome.VERIFIED, status=RunStatus.ENDED, goal=HOSTILE * 9)
    console.print(runs_table([replace(RUN, usage=Usage(input_tokens=12_345)), priced]))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(cell_len, text.splitlines())) <= 80
    assert len(text.splitlines()) == 3
    assert "12k" in text
    assert "verified" in text
    assert "\x1b" not in text


def test_runs_table_when_the_terminal_is_narrow_then_the_goal_is_still_there() -> None:
    """Little room goes to what a run is for; where no run has a price, no column stands for it."""
    for width in (40, 120):
        console = Console(file=io.StringIO(), width=width, color_system=None)
        unpriced = replace(RUN, usage=Usage(input_tokens=12_345, unpriced_tokens=12_345))
        console.print(runs_table([replace(unpriced, run_id="r1234")], width=width))
        head, row = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
        assert "r1234" in row
        assert "running" in row
        assert "make the" in row
        assert "cost" not in head
    assert "12k" in row


def test_report_when_an_output_is_as_wide_as_the_terminal_then_its_lines_stay_whole() -> None:
    """What a check printed for eighty columns is not broken in eighty columns, nor moved."""
    console = Console(file=io.StringIO(), width=80, color_system=None)
    ruler = " FAILURES ".center(80, "=")
    console.print(Report(f"End of `pytest`:\n\n```\n{ruler}\n{'...':<74}[100%]\n```\n"))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert ruler in lines
    assert f"{'...':<74}[100%]" in lines


def test_cleaned_when_text_holds_controls_then_signs_stand_for_them() -> None:
    """Line ends and tabs stay, every other control, direction mark and half of a character is shown as a sign."""
    assert cleaned("a\tb\nc\x1b[0m\x7f\r\u202e\ud800\u200b") == "a\tb\nc\u241b[0m\u2421\u240d\ufffd\ufffd\ufffd"
    assert cleaned("naïve 日本 🙂") == "naïve 日本 🙂"


def test_clock_when_seconds_then_reads_well() -> None:
    """Short times in seconds, longer ones as a clock shows them."""
    assert [clock(s) for s in (0, 59.9, 60, 187, 3_723)] == ["0 s", "59 s", "1:00", "3:07", "1:02:03"]
