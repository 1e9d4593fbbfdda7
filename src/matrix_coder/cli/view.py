"""The live view of a run as something that rich draws, of what is known alone: no clock, store or terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..core.models import Evidence, RunOutcome, RunStatus, RunView, StepStatus, StepView, Usage
from ..core.money import dollars
from ..core.workflow import is_green
from ..engine.plan import Limits
from .follow import Event
from .terminal import one_line

_WIDE = 110
_NARROW = 50
_MOST_STEPS = 10
_MOST_CALLS = 6
# Lines that are there whatever happens: header, bars, blank lines between the parts and behind them.
_FRAME = 14


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What the view shows. `now` is seconds since the epoch; `check_line` is the last line that a check has printed."""

    run: RunView
    limits: Limits
    used: Usage
    events: Sequence[Event] = ()
    now: float = 0.0
    check_line: str = ""


def picture(scene: Scene, *, width: int, height: int) -> RenderableType:
    """The view, at most `width` wide; on a low screen fewer steps and calls are shown."""
    room = max(4, height - _FRAME)
    calls = min(_MOST_CALLS, room // 2)
    parts: list[RenderableType] = [_header(scene)]
    steps = scene.run.steps[-min(_MOST_STEPS, room - calls) :]
    if steps:
        parts.append(_steps(steps, scene.now, width))
    parts += [_budgets(scene, width), *_doing(scene, calls)]
    return Group(*(Padding(p, (0, 0, 1 if p is not parts[-1] else 0, 0)) for p in parts))


def state_text(run: RunView) -> Text:
    """The outcome of a run, or where it is, in its colour."""
    return Text(run.outcome or run.status, style=_OUTCOMES.get(run.outcome) or _STATES[run.status])


_OUTCOMES: dict[RunOutcome | None, str] = {
    RunOutcome.VERIFIED: "bold green",
    RunOutcome.UNVERIFIED: "yellow",
    RunOutcome.CAP_REACHED: "yellow",
    RunOutcome.STALLED: "yellow",
    RunOutcome.BLOCKED: "magenta",
    RunOutcome.BUDGET: "yellow",
    RunOutcome.TAMPERED: "bold red",
    RunOutcome.CANCELLED: "dim",
    RunOutcome.FAILED: "red",
}
_STATES = {
    RunStatus.QUEUED: "dim",
    RunStatus.RUNNING: "cyan",
    RunStatus.PAUSED: "magenta",
    RunStatus.ENDED: "",
}
_CLAIMS = {"PASS": "", "FAIL": "red", "BLOCKED": "magenta", "UNVERIFIABLE": "yellow", "running": "cyan"}


# -- header


def _header(scene: Scene) -> RenderableType:
    run = scene.run
    first = Text.assemble((run.run_id, "bold"), " ", run.workflow, "  ", state_text(run), "  ")
    first.append(f"iteration {run.iteration}/{scene.limits.cap}", style="bold")
    if run.reason:
        first.append(f"  {one_line(run.reason)}")
    checks = ", ".join(run.checks) or "none: nothing can be verified"
    lines = [first, _labelled("goal", run.goal), _labelled("in", run.workspace), _labelled("checks", checks)]
    return Group(*(_cut(line) for line in lines))


def _labelled(label: str, text: str) -> Text:
    return Text.assemble((f"{label} ", "dim"), one_line(text))


def _cut(line: Text) -> Text:
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


# -- steps


def _steps(steps: Sequence[StepView], now: float, width: int) -> RenderableType:
    wide, narrow = width >= _WIDE, width < _NARROW
    table = Table(box=None, expand=wide, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("#", justify="right", no_wrap=True)
    table.add_column("step", no_wrap=True, max_width=18, overflow="ellipsis")
    table.add_column("claimed", no_wrap=True)
    table.add_column("checked", no_wrap=True, max_width=24, overflow="ellipsis")
    if not narrow:
        table.add_column("time", justify="right", no_wrap=True)
        table.add_column("tokens", justify="right", no_wrap=True)
    if wide:
        table.add_column("said", no_wrap=True, overflow="ellipsis", ratio=1)
    for step in steps:
        cells = [*_cells(step), *([] if narrow else _measured(step, now)), *([_said(step)] if wide else [])]
        table.add_row(*cells)
    return table


def _cells(step: StepView) -> list[Text]:
    claim = step.report.verdict.value if step.report else step.status.value
    return [
        Text(str(step.number)),
        Text(one_line(step.unit or step.role)),
        Text(claim, style=_CLAIMS.get(claim, "dim")),
        _checked(step.evidence),
    ]


def _measured(step: StepView, now: float) -> list[Text]:
    return [Text(_lasted(step, now)), Text(f"{step.usage.tokens:,}")]


def _said(step: StepView) -> Text:
    return Text(one_line(step.report.summary if step.report else step.note), style="dim")


def _checked(evidence: Sequence[Evidence]) -> Text:
    parts = [
        Text(
            f"{'pass' if is_green(e) else 'FAIL'} {one_line(e.counts())}", style="green" if is_green(e) else "bold red"
        )
        for e in evidence
    ]
    return Text(", ").join(parts)


def _lasted(step: StepView, now: float) -> str:
    if not step.started_at:
        return ""
    return clock(max(0.0, (step.ended_at or (now if step.status is StepStatus.RUNNING else 0)) - step.started_at))


def clock(seconds: float) -> str:
    """`41 s`, `3:07` or `1:02:03`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, rest = divmod(whole, 3_600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


# -- budgets


def _budgets(scene: Scene, width: int) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    for label, share, text in _shares(scene):
        bar = ProgressBar(
            total=1.0,
            completed=min(1.0, share),
            width=max(10, min(40, width - 46)),
            complete_style=_heat(share),
            finished_style=_heat(share),
        )
        grid.add_row(Text(label, style="dim"), bar, _cut(Text(text)))
    return grid


def _shares(scene: Scene) -> list[tuple[str, float, str]]:
    used, limits, run = scene.used, scene.limits, scene.run
    seconds = used.seconds + _under_way(scene)
    rows = [
        ("iterations", run.iteration / limits.cap, f"{run.iteration} of {limits.cap}"),
        ("time", seconds / limits.budget_s, f"{clock(seconds)} of {clock(limits.budget_s)}"),
        ("tokens", used.tokens / limits.tokens, f"{used.tokens:,} of {limits.tokens:,}"),
    ]
    if most := limits.money_usd:
        unknown = f", {used.unpriced_tokens:,} tokens without a price" if used.unpriced_tokens else ""
        rows.append(("money", used.cost_usd / most, f"{dollars(used.cost_usd)} of {dollars(most)}{unknown}"))
    return rows


def _under_way(scene: Scene) -> float:
    """Seconds of the steps at work that the store does not count yet."""
    return sum(
        max(0.0, scene.now - s.started_at - s.usage.seconds - sum(e.duration_s for e in s.evidence))
        for s in scene.run.steps
        if s.status is StepStatus.RUNNING and s.started_at and scene.run.outcome is None
    )


def _heat(share: float) -> str:
    return "red" if share >= 0.9 else "yellow" if share >= 0.7 else "green"


# -- what happens now


def _doing(scene: Scene, calls: int) -> list[RenderableType]:
    """The tail of each child at work, and what else is going on; nothing for a run that has ended."""
    run = scene.run
    if run.status is RunStatus.ENDED:
        return []
    if run.status is not RunStatus.RUNNING:
        waits = "waits for a worker" if run.status is RunStatus.QUEUED else f"waits: {one_line(run.reason)}"
        return [_cut(Text(waits, style="magenta"))]
    at_work = [s for s in run.steps if s.status is StepStatus.RUNNING]
    if not at_work:
        return [_checking(scene, "the checks run on the starting tree" if not run.steps else "between two steps")]
    children = [s for s in at_work if s.unit] or at_work
    each = max(1, calls // len(children) - 1) if len(children) > 1 else calls
    return [Group(*(line for s in children[-max(1, calls) :] for line in _child(scene, s, each)))]


def _child(scene: Scene, step: StepView, calls: int) -> list[RenderableType]:
    own = [e for e in scene.events if e.data.get("step") == step.number]
    head = Text.assemble((f"step {step.number} ", "bold"), (one_line(step.unit or step.role), "bold"))
    if step.attempt > 1:
        head.append(f", attempt {step.attempt}", style="yellow")
    if step.role == "verify" and not step.evidence and not any(e.kind == "tool" for e in own):
        checks = ", ".join(f"`{one_line(c)}`" for c in scene.run.checks) or "no check"
        return [_cut(head.append(f": the engine runs {checks}")), _checking(scene, "")]
    told = [line for line in (_call(e, scene.now) for e in own[-4 * calls :]) if line is not None]
    return [_cut(head), *(_cut(line) for line in told[-calls:])] if told else [_cut(head.append(": starts"))]


def _checking(scene: Scene, words: str) -> RenderableType:
    text = Text(words, style="cyan")
    if scene.check_line:
        text.append(f"{': ' if words else '  '}{one_line(scene.check_line)}", style="dim")
    return _cut(text)


def _call(event: Event, now: float) -> Text | None:
    data = event.data
    if event.kind == "tool":
        text = Text.assemble("  ", (one_line(str(data.get("name") or "?")), "cyan"), " ")
        if data.get("refused"):
            text.append("REFUSED ", style="bold red")
        return text.append(one_line(str(data.get("preview") or "")))
    if event.kind == "waiting":
        left = max(0.0, float(data.get("resumes_at") or 0) - now)
        return Text(f"  the provider asks to wait, {clock(left)} more: {one_line(str(data.get('words')))}", "yellow")
    if event.kind == "retry":
        return Text(f"  trying again: {one_line(str(data.get('words')))}", "yellow")
    if event.kind == "report":
        return Text("  handed its report in", "green")
    return None
