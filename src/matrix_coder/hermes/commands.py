"""What `/matrix ...` answers, as plain text that reads well with and without Markdown."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..core.decision import Decision
from ..core.errors import InputError, MatrixError
from ..core.models import Evidence, RunOutcome, RunStatus, RunView, StepView
from ..core.render import headline
from ..engine.paths import hermes_home, state_dir

HELP = """\
matrix <role> [<lens>] [@<domain>]: goal    bring in a specialist for this turn
matrix ralph [key=value ...]: goal          start a loop (cap=3 check="pytest -q" budget=30m tokens=200k in=PATH)

/matrix runs           the newest runs          /matrix status         this session's runs
/matrix show R         one run, step by step    /matrix cancel R       stop a run and all it started
/matrix why            why the last message was routed as it was
/matrix help           this text

The same in a terminal: matrix-coder --help, or hermes matrix --help."""


class Commands:
    """The commands over one HERMES_HOME. Each takes the words after its name and returns text; raises MatrixError."""

    def __init__(self, home: Path | None = None, last_decision: Callable[[str], Decision | None] | None = None) -> None:
        self.home = home or hermes_home()
        self._last_decision = last_decision

    def run(self, text: str, session_id: str) -> str:
        """The answer to `/matrix ...`, or to what stands after it; an error is an answer of one line."""
        try:
            words = shlex.split(text.strip().removeprefix("/matrix"))
        except ValueError:
            words = text.split()
        name, rest = (words[0].lower(), words[1:]) if words else ("help", [])
        command = self._table().get(name)
        if command is None:
            return f"expected one of {', '.join(self._table())}; found {name}; `/matrix help` lists them"
        try:
            return command(rest, session_id)
        except MatrixError as error:
            return str(error)

    def _table(self) -> dict[str, Callable[[list[str], str], str]]:
        return {
            "help": lambda *_: HELP,
            "runs": self._runs,
            "status": self._status,
            "show": self._show,
            "cancel": self._cancel,
            "why": self._why,
        }

    def _client(self) -> Any:
        from ..engine.client import Client  # noqa: PLC0415 - only a command about runs opens the store

        return Client(self.home)

    def _has_store(self) -> bool:
        return (state_dir(self.home) / "runs.db").exists()

    def _runs(self, _: list[str], __: str) -> str:
        runs = self._client().runs() if self._has_store() else []
        return "\n".join(run_line(r) for r in runs) or "No runs yet. `matrix ralph: goal` starts one."

    def _status(self, _: list[str], session_id: str) -> str:
        if not session_id:
            return "This surface does not say which session it is. All runs:\n" + self._runs([], "")
        runs = self._client().runs(session_id=session_id) if self._has_store() else []
        return "\n".join(run_line(r) for r in runs) or "No runs in this session. `/matrix runs` lists all."

    def _show(self, words: list[str], _: str) -> str:
        return show_text(self._client().show(_one(words)))

    def _cancel(self, words: list[str], _: str) -> str:
        run: RunView = self._client().cancel(_one(words), "asked for with /matrix cancel")
        if run.status is RunStatus.ENDED:
            return f"{run.run_id} had ended already: {run.outcome}"
        return f"{run.run_id} is being stopped, with everything it started."

    def _why(self, words: list[str], session_id: str) -> str:
        session_id = words[0] if words else session_id
        if not session_id:
            return "This surface does not say which session it is: `/matrix why SESSION_ID`."
        decision = self._last_decision(session_id) if self._last_decision else None
        if decision is None:
            return (
                f"No message of session {session_id} was routed in this process. "
                'For any text: matrix-coder route --explain "text"'
            )
        return why_text(decision)


def _one(words: list[str]) -> str:
    if len(words) != 1:
        raise InputError("the id of one run, such as r8", " ".join(words) or "none", "`/matrix runs` lists them")
    return words[0]


def run_line(run: RunView) -> str:
    """One run in one line."""
    state = run.outcome.value if run.outcome else f"{run.status.value} {run.iteration}/{run.cap}"
    goal = " ".join(run.goal.split())
    age = _ago(run.created_at)
    return f"{run.run_id:<5} {run.workflow:<9} {state:<14} {age:>8}  {goal[:60]}"


def _ago(at: float) -> str:
    seconds = max(0, int(time.time() - at))
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def show_text(run: RunView) -> str:
    """One run with its steps: what was claimed and what was checked, side by side."""
    lines = [
        headline(run),
        f"goal: {run.goal}",
        f"workspace: {run.workspace}",
        f"checks: {', '.join(run.checks) or 'none'}",
        f"iteration {run.iteration} of {run.cap}, {run.usage.tokens:,} tokens, {run.usage.seconds:.0f} s of work",
    ]
    if run.outcome is RunOutcome.BLOCKED:
        lines.append(f"question: {run.question}")
    return "\n".join([*lines, *(step_line(s) for s in run.steps)])


def step_line(step: StepView) -> str:
    """One step in one line."""
    claimed = step.report.verdict.value if step.report else step.status.value
    checked = ", ".join(_checked(e) for e in step.evidence)
    attempt = f", attempt {step.attempt}" if step.attempt > 1 else ""
    said = f"  {step.report.summary}" if step.report and step.report.summary else ""
    return (
        f"{step.number:>3}. iteration {step.iteration} {step.role:<9} claimed {claimed}"
        + (f" | checked {checked}" if checked else "")
        + attempt
        + said
    )


def _checked(evidence: Evidence) -> str:
    return f"{'pass' if evidence.passed else 'FAIL'} {evidence.counts()}"


def why_text(decision: Decision) -> str:
    """A decision with the signals that made it."""
    lines = [f"outcome {decision.outcome} ({decision.verdict}), route {decision.route or 'none'}"]
    lines += [f"  {s.rule}: {s.text!r} at {s.span[0]} -> {s.vote}" for s in decision.signals]
    return "\n".join(lines if decision.signals else [*lines, "  no signal fired"])
