"""What `/matrix ...` answers, as plain text that reads well with and without Markdown."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.decision import Decision
from ..core.errors import InputError, MatrixError
from ..core.gate_options import OptionError, read_option
from ..core.models import Evidence, RunOutcome, RunStatus, RunView, StepView
from ..core.money import money_words, unpriced_words
from ..core.render import counted, headline, one_line
from ..core.shown import cleaned
from ..engine.paths import hermes_home, state_dir
from .candidates import chosen, chosen_and_text
from .preferences import SWITCH, Preferences
from .troubles import store_troubles

if TYPE_CHECKING:
    from ..engine.kept import Kept

HELP = """\
matrix <role> [<lens>] [@<domain>]: goal    bring in a specialist for this turn
matrix ralph [key=value ...]: goal          start a loop (cap=3 check="pytest -q" budget=30m money=5 in=PATH);
                                            autopilot, ultraqa and ultrawork start alike

/matrix runs           the newest runs          /matrix status         this session's runs
/matrix show R         one run, step by step    /matrix diff R [STEP]  what it changed
/matrix cancel R       stop it for good         /matrix pause R        wait before the next step
/matrix resume R       let it go on             /matrix steer R text   tell the next step something
/matrix answer R text  answer a blocked run     /matrix approve R      approve what it waits for
/matrix raise R cap=8 tokens=4m budget=3h money=10   the only way up for its limits
/matrix undo R [STEP]  put back what it changed /matrix merge R UNIT   take a unit that was left out
/matrix why            why the last message was routed so
/matrix doctor         look at everything that a run needs; what is in the way, and what to do

/matrix checkouts R    what it keeps apart      /matrix drop R UNIT    remove one of those for good
/matrix take R         bring what an isolated run (isolate=yes) changed into its repository
/matrix off | on       infer no specialists in this session; explicit triggers always work
/matrix never "phrase" infer nothing from messages that hold it; /matrix forget "phrase" takes that back

show, steer, answer, approve, pause, resume and cancel need no R where this session has one run that can be meant.

The same in a terminal: matrix-coder --help, or hermes matrix --help."""


_SPOKEN = re.compile(r"\s*(steer|answer)(?:\s+(r?\d+(?=\s)))?(?:\s+(.*))?\Z", re.IGNORECASE | re.DOTALL)


class Commands:
    """The commands over one HERMES_HOME. Each takes the words after its name and returns text; raises MatrixError."""

    def __init__(
        self,
        home: Path | None = None,
        last_decision: Callable[[str], Decision | None] | None = None,
        *,
        prefix: str = "/matrix",
    ) -> None:
        self.home = home or hermes_home()
        self._last_decision = last_decision
        # What stands before a command where the answer is read: a terminal has no `/matrix`.
        self._prefix = prefix

    def run(self, text: str, session_id: str) -> str:
        """The answer to `/matrix ...`, or to what stands after it; an error is an answer of one line.

        A chat may hand it to a terminal, so nothing in it is there to be obeyed.
        """
        return cleaned(self._said(text, session_id))

    def _said(self, text: str, session_id: str) -> str:
        line = text.strip().removeprefix("/matrix")
        words = _words(line)
        name, rest = (words[0].lower(), words[1:]) if words else ("help", [])
        if name not in self._table():
            return f"expected one of {', '.join(self._table())}; found {name}; `/matrix help` lists them"
        try:
            return self.call(name, rest, session_id)
        except MatrixError as error:
            return str(error)

    def call(self, name: str, words: list[str], session_id: str) -> str:
        """The answer to one command. Raises MatrixError; KeyError for a name that is none."""
        with store_troubles():
            return self._table()[name](words, session_id)

    def _table(self) -> dict[str, Callable[[list[str], str], str]]:
        return {
            "help": lambda *_: HELP,
            "runs": self._runs,
            "status": self._status,
            "show": self._show,
            "diff": self._diff,
            "cancel": self._cancel,
            "pause": self._pause,
            "resume": self._resume,
            "steer": self._steer,
            "answer": self._answer,
            "approve": self._approve,
            "raise": self._raise,
            "undo": self._undo,
            "take": self._take,
            "merge": self._merge,
            "checkouts": self._checkouts,
            "drop": self._drop,
            "why": self._why,
            "doctor": self._doctor,
            "off": lambda _, session: self._switch(session, on=False),
            "on": lambda _, session: self._switch(session, on=True),
            "never": self._never,
            "forget": self._forget,
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

    def _of_session(self, session_id: str) -> list[RunView]:
        """The session's runs, newest first; all where the session is not known."""
        return list(self._client().runs(session_id=session_id)) if self._has_store() else []

    def _meant(self, command: str, words: list[str], session_id: str) -> str:
        return chosen(command, words, session_id, self._of_session)

    def _show(self, words: list[str], session_id: str) -> str:
        run_id = self._meant("show", words, session_id)
        return show_text(self._client().show(run_id))

    def _cancel(self, words: list[str], session_id: str) -> str:
        run_id = self._meant("cancel", words, session_id)
        run: RunView = self._client().cancel(run_id, "asked for with /matrix cancel")
        if run.status is RunStatus.ENDED:
            return f"{run.run_id} had ended already: {run.outcome}"
        return f"{run.run_id} is being stopped, with everything it started."

    def _diff(self, words: list[str], _: str) -> str:
        run_id, step = _run_and_step(words)
        return str(self._client().diff(run_id, step)) or "Nothing differs."

    def _pause(self, words: list[str], session_id: str) -> str:
        run: RunView = self._client().pause(self._meant("pause", words, session_id))
        return f"{run.run_id} will wait before its next step; `{self._prefix} resume {run.run_id}` lets it go on."

    def _resume(self, words: list[str], session_id: str) -> str:
        return self._goes_on(self._client().resume(self._meant("resume", words, session_id)))

    def _approve(self, words: list[str], session_id: str) -> str:
        return self._goes_on(self._client().approve(self._meant("approve", words, session_id)))

    def _steer(self, words: list[str], session_id: str) -> str:
        run: RunView = self._client().steer(*chosen_and_text("steer", words, session_id, self._of_session))
        return f"The next step of {run.run_id} will be told."

    def _answer(self, words: list[str], session_id: str) -> str:
        return self._goes_on(self._client().answer(*chosen_and_text("answer", words, session_id, self._of_session)))

    def _raise(self, words: list[str], _: str) -> str:
        run: RunView = self._client().raise_limits(_one(words[:1]), **limit_options(words[1:]))
        return f"{run.run_id} may use more now: cap {run.cap}." + (" It goes on." if run.outcome is None else "")

    def _undo(self, words: list[str], _: str) -> str:
        run_id, step = _run_and_step(words)
        paths = self._client().undo(run_id, step)
        return _files(paths, "put back") if paths else "There was nothing to put back."

    def _merge(self, words: list[str], _: str) -> str:
        if len(words) != 2:
            raise InputError("a run and one of its units, such as r8 api", " ".join(words) or "none", "name both")
        run: RunView = self._client().merge(*words)
        return (
            f"{words[1]} of {run.run_id} is being merged by the worker, after its checks. "
            f"`{self._prefix} show {run.run_id}` tells how it ended; `{self._prefix} cancel {run.run_id}` stops it."
        )

    def _checkouts(self, words: list[str], _: str) -> str:
        run_id = _one(words)
        return "\n".join(kept_line(k) for k in self._client().checkouts(run_id)) or f"{run_id} keeps no checkout."

    def _drop(self, words: list[str], _: str) -> str:
        if len(words) not in (1, 2):
            found = " ".join(words) or "none"
            raise InputError("a run and one of its units, such as r8 api", found, "`/matrix checkouts R` lists them")
        gone = self._client().drop(*words)
        return f"Dropped for good: {gone.path}"

    def _take(self, words: list[str], _: str) -> str:
        paths = self._client().take(_one(words))
        return _files(paths, "brought") if paths else "There was nothing to bring."

    @staticmethod
    def _goes_on(run: RunView) -> str:
        return f"{run.run_id} goes on."

    def _switch(self, session_id: str, *, on: bool) -> str:
        if not session_id:
            raise InputError(
                "a session",
                "none yet, or a surface that does not say which it is",
                f"send a message first, or set {SWITCH}=0",
            )
        Preferences(self.home).switch(session_id, on)
        return (
            "Specialists are inferred in this session again."
            if on
            else (
                "No specialists are inferred in this session; explicit triggers still work. `/matrix on` takes it back."
            )
        )

    def _never(self, words: list[str], _: str) -> str:
        Preferences(self.home).never(" ".join(words))
        return f"Nothing is inferred any more from messages that hold {' '.join(words)!r}."

    def _forget(self, words: list[str], _: str) -> str:
        preferences = Preferences(self.home)
        if not words:
            return "Nothing is inferred from: " + (", ".join(map(repr, preferences.phrases())) or "no phrase yet")
        preferences.forget(" ".join(words))
        return f"Forgotten: {' '.join(words)!r}."

    def _doctor(self, _: list[str], __: str) -> str:
        from .doctor import doctor_text, examine  # noqa: PLC0415 - looks into every part of the package
        from .surface import working_directory  # noqa: PLC0415

        return doctor_text(examine(self.home, Path(working_directory())))

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


def _files(paths: Sequence[str], done: str) -> str:
    return f"{counted(len(paths), 'file')} {done}: {', '.join(paths[:20])}" + (", ..." if len(paths) > 20 else "")


def _words(line: str) -> list[str]:
    """The words of a command line; a text for a run stays one word, to the letter."""
    spoken = _SPOKEN.match(line)
    if spoken:
        return [word for word in spoken.groups() if word]
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _one(words: list[str]) -> str:
    if len(words) != 1:
        raise InputError("the id of one run, such as r8", " ".join(words) or "none", "`/matrix runs` lists them")
    return words[0]


def _run_and_step(words: list[str]) -> tuple[str, int | None]:
    if len(words) == 2 and words[1].isascii() and words[1].isdigit():
        return words[0], int(words[1])
    return _one(words), None


def limit_options(words: list[str]) -> dict[str, float]:
    """`cap=8 tokens=4m budget=3h money=10` as the client takes it. Raises InputError."""
    names = {"cap": "cap", "tokens": "tokens", "budget": "budget_s", "money": "money_usd"}
    found: dict[str, float] = {}
    for word in words:
        key, _, raw = word.partition("=")
        try:
            if key not in names:
                raise OptionError(f"{word} is none of cap=, tokens=, budget=, money=")
            value = read_option(key, raw)
        except OptionError as error:
            raise InputError(
                "limits such as cap=8 tokens=4m budget=3h money=10", str(error), "write them so"
            ) from error
        found[names[key]] = value if isinstance(value, (int, float)) else 0
    if not found:
        raise InputError("a limit to raise, such as cap=8", "none", "name one")
    return found


def run_line(run: RunView) -> str:
    """One run in one line."""
    state = run.outcome.value if run.outcome else f"{run.status.value} {run.iteration}/{run.cap}"
    age = ago(run.created_at)
    return f"{run.run_id:<5} {run.workflow:<9} {state:<14} {age:>8}  {one_line(run.goal)[:60]}"


def ago(at: float) -> str:
    """How long ago a time (seconds since the epoch) is, in its largest unit."""
    seconds = max(0, int(time.time() - at))
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def show_text(run: RunView) -> str:
    """One run with its steps: what was claimed and what was checked, side by side."""
    used = [f"{run.usage.tokens:,} tokens", money_words(run.usage), f"{run.usage.seconds:.0f} s of work"]
    lines = [
        headline(run),
        f"goal: {one_line(run.goal)}",
        f"workspace: {one_line(run.workspace)}",
        f"checks: {one_line(', '.join(run.checks)) or 'none'}",
        ", ".join([f"iteration {run.iteration} of {run.cap}", *filter(None, used)]),
    ]
    if unpriced := unpriced_words(run.usage, run.money_usd):
        lines.append(unpriced)
    if run.outcome is RunOutcome.BLOCKED:
        lines.append(f"question: {one_line(run.question)}")
    return "\n".join([*lines, *(step_line(s) for s in run.steps)])


def kept_line(kept: Kept) -> str:
    """A checkout that is kept, in one line."""
    branch = f", branch {kept.branch}" if kept.branch else ""
    take = f"; take it with `{kept.command}`" if kept.command else ""
    name = kept.name or "its own"
    return f"{name:<9} {kept.state:<12} {size_words(kept.size):>8} {ago(kept.since):>7}  {kept.path}{branch}{take}"


def size_words(size: int) -> str:
    """A number of bytes in its largest unit."""
    for unit, one in (("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10)):
        if size >= one:
            return f"{size / one:.1f} {unit}"
    return f"{size} B"


def step_line(step: StepView) -> str:
    """One step in one line."""
    claimed = f"claimed {step.report.verdict}" if step.report else step.status.value
    checked = ", ".join(_checked(e) for e in step.evidence)
    attempt = f", attempt {step.attempt}" if step.attempt > 1 else ""
    said = f"  {one_line(step.report.summary)}" if step.report and step.report.summary else ""
    return (
        f"{step.number:>3}. iteration {step.iteration} {(step.unit or step.role):<9} {claimed}"
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
