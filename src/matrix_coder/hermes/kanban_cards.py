"""What the host's Kanban cards say about a run. Pure text: no clock, no board, no store.

The lengths are those at which Hermes' dashboard and Switch UI cut: a title shows about 52 characters,
a card about 90 of its body, a comment about 65 a line. `claimed` is what a model said and `verified`
what the engine's own check said; a card never shows one as the other.
"""

from __future__ import annotations

import hashlib
import json
import re
import textwrap
from dataclasses import dataclass, field
from enum import StrEnum

from ..core.models import (
    Evidence,
    RunOutcome,
    RunStatus,
    RunView,
    StepReport,
    StepStatus,
    StepVerdict,
    StepView,
)

ASSIGNEE = "matrix-coder"
"""The lane of our cards. No profile has this name, so the host's dispatcher leaves the lane alone."""

AUTHOR = "matrix-coder"
CLAIM_PREFIX = "matrix_coder:"
RUN_CARD = 0
"""The step number under which a run's own card is kept; steps count from 1."""

GOAL_IN_TITLE = 44
LEAD = 90
LINE = 65
OUTPUT_LINES = 40
METADATA_CHARS = 299

Scalar = str | int | float | bool


class CardState(StrEnum):
    """Where a card of ours stands on the board: the host's own words for it."""

    RUNNING = "running"
    DONE = "done"
    BLOCKED = "blocked"


class CardEnd(StrEnum):
    """How a single specialist's turn ended."""

    DONE = "done"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A check's whole output, as a file to hang on a card."""

    filename: str
    path: str
    shown_chars: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One card as the board should show it. `line` is its result, its summary or why it is blocked."""

    key: str
    step: int
    title: str
    body: str
    state: CardState
    claimer: str
    line: str = ""
    metadata: dict[str, Scalar] = field(default_factory=dict)
    comments: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    tenant: str = ""
    priority: int = 0
    session_id: str = ""
    workspace: str = ""

    def digest(self) -> str:
        """A short fingerprint of everything that the card shows."""
        shown = (self.title, self.body, self.state, self.claimer, self.line, self.metadata, self.comments)
        return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()[:16]


def run_tag(run_id: str) -> str:
    """`r8` for run 8: what stands at the start of each of its cards."""
    return f"r{run_id}" if run_id.isdigit() else one_line(run_id, 8)


def card_key(run_id: str, step: int) -> str:
    """The idempotency key of one card of a run."""
    return f"matrix:{run_id}:{step}"


def one_line(text: str, limit: int) -> str:
    """The text without control characters and line breaks, cut at `limit` characters with an ellipsis."""
    flat = " ".join(_printable(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def fenced(text: str, *, lines: int = OUTPUT_LINES) -> str:
    """The last lines of a text, folded to what a comment shows, in a fence that the text can't close."""
    folded: list[str] = []
    for raw in _printable(text).strip("\n").split("\n"):
        folded += textwrap.wrap(raw, LINE, drop_whitespace=False, replace_whitespace=False) or [""]
    kept = folded[-lines:]
    if len(folded) > lines:
        kept.insert(0, f"… {len(folded) - lines} more lines above")
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return "\n".join((fence, *kept, fence))


def _printable(text: str) -> str:
    """Without terminal colours and control characters; tabs become spaces."""
    plain = re.sub(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)", "", text)
    plain = plain.replace("\r\n", "\n").replace("\r", "\n").expandtabs(4)
    return "".join(
        c if c == "\n" or (c.isprintable() and not 0xD800 <= ord(c) <= 0xDFFF) else " " for c in plain
    )


# One step ---------------------------------------------------------------------------------------------


def step_card(run: RunView, step: StepView) -> Card:
    """The card of one step."""
    lead = step_lead(run, step)
    return Card(
        key=card_key(run.run_id, step.number),
        step=step.number,
        title=step_title(run, step),
        body=_body(
            lead,
            goal=run.goal,
            session=run.session_id,
            rows=(f"Claimed: {claimed(step)}", f"Verified: {verified(step)}"),
        ),
        state=step_state(run, step),
        claimer=f"{CLAIM_PREFIX}{run.run_id}:{step.number}:{step.attempt}",
        line=lead,
        metadata=fit_metadata(step_metadata(step)),
        comments=step_comments(step),
        attachments=_attachments(run, step),
        tenant=f"matrix-{run.run_id}",
        session_id=run.session_id,
        workspace=run.workspace,
    )


def step_state(run: RunView, step: StepView) -> CardState:
    """Blocked only while a person is asked: a parent's progress counts `done` cards, whatever they say."""
    if step.status is StepStatus.RUNNING and run.status is not RunStatus.ENDED:
        return CardState.RUNNING
    if step.status is StepStatus.BLOCKED and run.outcome is RunOutcome.BLOCKED:
        return CardState.BLOCKED
    return CardState.DONE


def step_title(run: RunView, step: StepView) -> str:
    """`r8 · 1/5 verify · FAIL 13/15`; a later attempt says so, and twins carry their number."""
    place = f"{step.iteration}/{run.cap} {step_role(step)}"
    twins = [s for s in run.steps if (s.iteration, s.role, s.lens) == (step.iteration, step.role, step.lens)]
    if len(twins) > 1:
        place += f" #{step.number}"
    parts = [run_tag(run.run_id), place, step_label(step)]
    if step.attempt > 1:
        parts.append(f"try {step.attempt}")
    return " · ".join(p for p in parts if p)


def step_role(step: StepView) -> str:
    """`review security`, `verify`."""
    return f"{step.role} {step.lens}".strip()


def step_label(step: StepView) -> str:
    """The verdict in two words: a bare one rests on the engine's check, `says` on a model alone."""
    fixed = {
        StepStatus.RUNNING: "",
        StepStatus.BLOCKED: "BLOCKED",
        StepStatus.FAILED: "ERROR",
        StepStatus.CANCELLED: "CANCELLED",
    }
    if step.status in fixed:
        return fixed[step.status]
    claim = step.report.verdict if step.report else None
    if not step.evidence:
        return f"says {claim}" if claim else "no report"
    if not all(e.passed for e in step.evidence):
        doubt = " (claims PASS)" if claim is StepVerdict.PASS else ""
        return f"FAIL {counts(step.evidence)}{doubt}"
    return f"{claim or StepVerdict.UNVERIFIABLE} {counts(step.evidence)}"


def counts(evidence: tuple[Evidence, ...]) -> str:
    """`13/15` of the check that failed, or of all together where all passed."""
    red = next((e for e in evidence if not e.passed), None)
    if red is not None:
        return red.counts()
    if len(evidence) == 1:
        return evidence[0].counts()
    return f"{len(evidence)} checks"


def step_lead(run: RunView, step: StepView) -> str:
    """A step in one sentence: where it is, what it asks, or its verdict and why."""
    if step.status is StepStatus.RUNNING:
        if run.status is RunStatus.ENDED:
            return "Did not finish: the run ended first"
        again = f", try {step.attempt}" if step.attempt > 1 else ""
        return f"Round {step.iteration}/{run.cap}: {step_role(step)} at work{again}"
    report = step.report
    if step.status is StepStatus.BLOCKED:
        asked = next(iter(report.open_questions), "") if report else ""
        return one_line(f"Question: {asked or run.question or step.note or 'see the run'}", LEAD)
    why = step.note if step.status is not StepStatus.DONE else _red(step.evidence)
    why = why or (report.summary if report else "") or step.note
    label = step_label(step)
    return one_line(f"{label}: {why}" if why else label, LEAD)


def _red(evidence: tuple[Evidence, ...]) -> str:
    """What failed: beside it, a model's words of success would only mislead."""
    red = next((e for e in evidence if not e.passed), None)
    return "" if red is None else ", ".join(red.failing) or red.command


def claimed(step: StepView) -> str:
    """What the model said."""
    if step.report is None:
        return "nothing yet" if step.status is StepStatus.RUNNING else "nothing"
    return f"{step.report.verdict} by {step_role(step)}"


def verified(step: StepView) -> str:
    """What the engine's check said."""
    if not step.evidence:
        return "not yet" if step.status is StepStatus.RUNNING else "not checked"
    green = all(e.passed for e in step.evidence)
    names = ", ".join(e.command for e in step.evidence)
    return one_line(f"{'yes' if green else 'no'}, {counts(step.evidence)} ({names})", LINE)


def step_metadata(step: StepView) -> dict[str, Scalar]:
    """Flat facts for the board's run row, most telling first; money and time last."""
    facts: dict[str, Scalar] = {"status": step.status.value}
    if step.report:
        facts["claimed"] = step.report.verdict.value
    facts["verified"] = _verified_word(step.evidence)
    facts |= _check_facts(step.evidence)
    facts["attempt"] = step.attempt
    if step.child_session:
        facts["child_session"] = step.child_session
    if step.report and step.report.findings:
        facts["findings"] = len(step.report.findings)
    return facts | {"tokens": step.usage.tokens, "seconds": round(step.usage.seconds, 1)}


def _verified_word(evidence: tuple[Evidence, ...]) -> str:
    return "unchecked" if not evidence else "yes" if all(e.passed for e in evidence) else "no"


def _check_facts(evidence: tuple[Evidence, ...]) -> dict[str, Scalar]:
    if not evidence:
        return {}
    shown = next((e for e in evidence if not e.passed), evidence[-1])
    exit_code = "timed out" if shown.exit_code is None else shown.exit_code
    return {"check": one_line(shown.command, 60), "exit_code": exit_code, "tests": shown.counts()}


def fit_metadata(facts: dict[str, Scalar]) -> dict[str, Scalar]:
    """The facts that fit under what Hermes' page shows opened, first ones first."""
    kept: dict[str, Scalar] = {}
    for key, value in facts.items():
        if len(json.dumps(kept | {key: value}, ensure_ascii=False)) <= METADATA_CHARS:
            kept[key] = value
    return kept


def step_comments(step: StepView) -> tuple[str, ...]:
    """A comment for the claim and one for each check; none before the step ended."""
    if step.status is StepStatus.RUNNING:
        return ()
    told = [_claim_comment(step)] if step.report else []
    told += [_evidence_comment(e) for e in step.evidence]
    if step.status in (StepStatus.FAILED, StepStatus.CANCELLED) and step.note:
        told.append(f"ended: {step_label(step)}{_try(step)}\n\n{fenced(step.note)}")
    return tuple(told)


def _claim_comment(step: StepView) -> str:
    report = step.report or StepReport(verdict=StepVerdict.UNVERIFIABLE)
    rows = [report.summary] if report.summary else []
    for finding in report.findings:
        at = finding.file + (f":{finding.line}" if finding.line is not None else "")
        rows.append(" ".join(p for p in (finding.severity.value, at, one_line(finding.summary, 200)) if p))
    rows += [f"? {one_line(q, 200)}" for q in report.open_questions]
    if report.dropped_findings:
        rows.append(f"{report.dropped_findings} findings dropped: no such file and line")
    head = f"claimed: {report.verdict} by {step_role(step)}{_try(step)}"
    return f"{head}\n\n{fenced(chr(10).join(rows))}" if rows else head


def _evidence_comment(evidence: Evidence) -> str:
    word = "PASS" if evidence.passed else "FAIL"
    took = f"{evidence.duration_s:.1f} s"
    head = f"verified: {word} {evidence.counts()} · {one_line(evidence.command, 60)} · {took}"
    return f"{head}\n\n{fenced(evidence.tail)}" if evidence.tail.strip() else head


def _try(step: StepView) -> str:
    return f" · try {step.attempt}" if step.attempt > 1 else ""


def _attachments(run: RunView, step: StepView) -> tuple[Attachment, ...]:
    if step.status is StepStatus.RUNNING:
        return ()
    name = f"{run_tag(run.run_id)}-{step.number}-try{step.attempt}"
    return tuple(
        Attachment(filename=f"{name}-check{n}.txt", path=e.output_path, shown_chars=len(e.tail))
        for n, e in enumerate(step.evidence, 1)
        if e.output_path
    )


# A run ------------------------------------------------------------------------------------------------


def run_card(run: RunView) -> Card:
    """The parent card of a run: its round while it runs, its question or its outcome afterwards."""
    lead = run_lead(run)
    return Card(
        key=card_key(run.run_id, RUN_CARD),
        step=RUN_CARD,
        title=run_title(run),
        body=_body(lead, goal=run.goal, session=run.session_id, rows=_run_rows(run)),
        state=_run_state(run),
        claimer=f"{CLAIM_PREFIX}{run.run_id}",
        line=lead,
        metadata=fit_metadata(run_metadata(run)),
        comments=run_comments(run),
        tenant=f"matrix-{run.run_id}",
        priority=1,
        session_id=run.session_id,
        workspace=run.workspace,
    )


def _run_state(run: RunView) -> CardState:
    if run.status is not RunStatus.ENDED:
        return CardState.RUNNING
    return CardState.BLOCKED if run.outcome is RunOutcome.BLOCKED else CardState.DONE


def run_title(run: RunView) -> str:
    """`r8 ralph · make the tests pass`, with the outcome before the goal once there is one."""
    head = f"{run_tag(run.run_id)} {run.workflow} · "
    mark = f"{run.outcome} · " if run.status is RunStatus.ENDED and run.outcome else ""
    return (head + mark + one_line(run.goal, GOAL_IN_TITLE - len(mark))).strip(" ·")


def run_lead(run: RunView) -> str:
    """A run in one sentence."""
    if run.status is RunStatus.ENDED:
        if run.outcome is RunOutcome.BLOCKED:
            return one_line(f"Question: {run.question or run.reason or 'see the last step'}", LEAD)
        return one_line(": ".join(p for p in (str(run.outcome or "ended"), run.reason) if p), LEAD)
    if not run.steps:
        return "Waiting to start" if run.status is RunStatus.QUEUED else "Starting"
    live = [s for s in run.steps if s.status is StepStatus.RUNNING]
    at_work = f"{len(live)} specialists at work" if len(live) > 1 else ""
    at_work = at_work or (f"{step_role(live[0])} at work" if live else "between two steps")
    return f"Round {run.iteration}/{run.cap}: {at_work}"


def _run_rows(run: RunView) -> tuple[str, ...]:
    told = next((s for s in reversed(run.steps) if s.report), None)
    checked = next((s for s in reversed(run.steps) if s.evidence), None)
    rows = [
        f"Claimed: {claimed(told)}" if told else "Claimed: nothing yet",
        f"Verified: {verified(checked)}" if checked else "Verified: not yet",
        f"Rounds: {run.iteration} of at most {run.cap}",
    ]
    if run.status is RunStatus.ENDED:
        rows[1] = f"Verified: {_outcome_verified(run, checked)}"
    if run.checks:
        rows.append(f"Checks: {one_line(', '.join(run.checks), 200)}")
    return (*rows, f"Folder: {one_line(run.workspace, 200)}")


def _outcome_verified(run: RunView, checked: StepView | None) -> str:
    """Only the outcome verifies a run: a green check alone may prove nothing about the goal."""
    if run.outcome is RunOutcome.VERIFIED:
        return verified(checked) if checked else "yes"
    return f"no; last check {counts(checked.evidence)}" if checked else "no"


def run_metadata(run: RunView) -> dict[str, Scalar]:
    """Flat facts for the board's run row, most telling first."""
    facts: dict[str, Scalar] = {"outcome": str(run.outcome or "")}
    facts["verified"] = "yes" if run.outcome is RunOutcome.VERIFIED else "no"
    checked = next((s for s in reversed(run.steps) if s.evidence), None)
    facts |= _check_facts(checked.evidence) if checked else {}
    facts |= {"rounds": f"{run.iteration}/{run.cap}", "steps": len(run.steps)}
    return facts | {"tokens": run.usage.tokens, "seconds": round(run.usage.seconds, 1)}


def run_comments(run: RunView) -> tuple[str, ...]:
    """A line for each step that ended, then the question or the outcome.

    A comment stays as it was written, so none holds what may change later, such as the cap.
    """
    told = [_step_line(s) for s in run.steps if s.status is not StepStatus.RUNNING]
    if run.status is not RunStatus.ENDED or run.outcome is None:
        return tuple(told)
    if run.outcome is RunOutcome.BLOCKED:
        how = f"Answer in chat: /matrix answer {run_tag(run.run_id)} <text>"
        told.append(f"question · round {run.iteration}\n\n{fenced(run.question or run.reason)}\n\n{how}")
    else:
        why = f"\n\n{fenced(run.reason)}" if run.reason else ""
        told.append(f"outcome: {run.outcome}{why}")
    return tuple(told)


def _step_line(step: StepView) -> str:
    place = f"#{step.number} round {step.iteration} {step_role(step)}"
    return f"{place} · {step_label(step)}{_try(step)}{_took(step)}"


def _took(step: StepView) -> str:
    seconds = step.ended_at - step.started_at if step.ended_at and step.started_at else step.usage.seconds
    return f" · {seconds:.0f} s" if seconds > 0 else ""


def _body(lead: str, *, goal: str, session: str, rows: tuple[str, ...] = ()) -> str:
    lines = [one_line(lead, LEAD), f"- Goal: {one_line(goal, 300)}"]
    if session:
        lines.append(f"- Chat: {one_line(session, 80)}")
    return "\n".join((*lines, *(f"- {row}" for row in rows)))


# A single specialist ----------------------------------------------------------------------------------


def specialist_card(route: str, goal: str, session_id: str, turn: str) -> Card:
    """The one card of a specialist that answers in chat, open."""
    return Card(
        key=f"matrix:single:{session_id}:{turn}",
        step=RUN_CARD,
        title=specialist_title(route, goal),
        body=_body(f"{route} at work", goal=goal, session=session_id),
        state=CardState.RUNNING,
        claimer=f"{CLAIM_PREFIX}single",
        tenant="matrix",
        session_id=session_id,
    )


def specialist_title(route: str, goal: str, end: CardEnd | None = None) -> str:
    """`review security · done · look at the login`."""
    mark = f"{end} · " if end else ""
    return f"{one_line(route, 24)} · {mark}{one_line(goal, GOAL_IN_TITLE - len(mark))}".strip(" ·")
