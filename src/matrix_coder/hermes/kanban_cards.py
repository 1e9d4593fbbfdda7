"""What the host's Kanban cards say about a step and about a single specialist. Pure: no clock, no board, no store."""

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
            run_id=run.run_id,
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
    return CardState.BLOCKED if _asks(run, step) else CardState.DONE


def _asks(run: RunView, step: StepView) -> bool:
    """The step's question is still open: the run did not go on after it, and is not at work on anything else."""
    if step.status is not StepStatus.BLOCKED or any(s.number > step.number and not s.unit for s in run.steps):
        return False
    if run.status is RunStatus.ENDED:
        return run.outcome is RunOutcome.BLOCKED
    return all(s.status is not StepStatus.RUNNING for s in run.steps)


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
    facts |= check_facts(step.evidence)
    facts["attempt"] = step.attempt
    if step.child_session:
        facts["child_session"] = step.child_session
    if step.report and step.report.findings:
        facts["findings"] = len(step.report.findings)
    return facts | {"tokens": step.usage.tokens, "seconds": round(step.usage.seconds, 1)}


def _verified_word(evidence: tuple[Evidence, ...]) -> str:
    return "unchecked" if not evidence else "yes" if all(e.passed for e in evidence) else "no"


def check_facts(evidence: tuple[Evidence, ...]) -> dict[str, Scalar]:
    """The check that failed, or the last one: what it was, how it exited, how many passed."""
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
        told.append(f"ended: {step_label(step)}{try_of(step)}\n\n{fenced(step.note)}")
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
    head = f"claimed: {report.verdict} by {step_role(step)}{try_of(step)}"
    return f"{head}\n\n{fenced(chr(10).join(rows))}" if rows else head


def _evidence_comment(evidence: Evidence) -> str:
    word = "PASS" if evidence.passed else "FAIL"
    took = f"{evidence.duration_s:.1f} s"
    head = f"verified: {word} {evidence.counts()} · {one_line(evidence.command, 60)} · {took}"
    return f"{head}\n\n{fenced(evidence.tail)}" if evidence.tail.strip() else head


def try_of(step: StepView) -> str:
    """` · try 2`; nothing for the first."""
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
