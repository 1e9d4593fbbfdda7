"""What the host's Kanban cards say about a run. Pure: no clock, no board, no store."""

from __future__ import annotations

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
from .kanban_text import (
    CLAIM_PREFIX,
    GOAL_IN_TITLE,
    GOAL_OF_SPECIALIST,
    LEAD,
    LINE,
    RUN_CARD,
    Attachment,
    Card,
    CardEnd,
    CardState,
    Scalar,
    body_text,
    card_key,
    fenced,
    fit_metadata,
    one_line,
    run_tag,
)

# One step ---------------------------------------------------------------------------------------------


def step_card(run: RunView, step: StepView) -> Card:
    """The card of one step."""
    lead = step_lead(run, step)
    return Card(
        key=card_key(run.run_id, step.number),
        step=step.number,
        title=step_title(run, step),
        body=body_text(
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
    twins = [s for s in run.steps if (s.iteration, step_role(s)) == (step.iteration, step_role(step))]
    if len(twins) > 1:
        place += f" #{step.number}"
    parts = [run_tag(run.run_id), place, step_label(step)]
    if step.attempt > 1:
        parts.append(f"try {step.attempt}")
    return " · ".join(p for p in parts if p)


def step_role(step: StepView) -> str:
    """`review security`, `verify`, `executor api` for the unit of that name."""
    return " ".join(w for w in (step.role, step.lens, step.unit) if w)


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
        body=body_text(lead, goal=run.goal, session=run.session_id, rows=_run_rows(run)),
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


# A single specialist ----------------------------------------------------------------------------------


def specialist_card(route: str, goal: str, session_id: str, turn: str) -> Card:
    """The one card of a specialist that answers in chat, open."""
    return Card(
        key=f"matrix:single:{session_id}:{turn}",
        step=RUN_CARD,
        title=specialist_title(route, goal),
        body=body_text(f"{route} at work", goal=goal, session=session_id),
        state=CardState.RUNNING,
        claimer=f"{CLAIM_PREFIX}single",
        tenant="matrix",
        session_id=session_id,
    )


def specialist_title(route: str, goal: str, end: CardEnd | None = None) -> str:
    """`review security · done · look at the login`."""
    name = one_line(route, 24) or "specialist"
    mark = f"{end} · " if end else ""
    return f"{name} · {mark}{one_line(goal, GOAL_OF_SPECIALIST - len(mark))}".strip(" ·") or "specialist"
