"""What the card of a whole run says: the parent of its steps' cards. Pure: no clock, no board, no store."""

from __future__ import annotations

from ..core.models import RunOutcome, RunStatus, RunView, StepStatus, StepView
from .kanban_cards import check_facts, claimed, counts, step_label, step_role, try_of, verified
from .kanban_text import (
    CLAIM_PREFIX,
    GOAL_IN_TITLE,
    LEAD,
    RUN_CARD,
    Card,
    CardState,
    Scalar,
    body_text,
    card_key,
    fenced,
    fit_metadata,
    one_line,
    run_tag,
)


def run_card(run: RunView) -> Card:
    """The parent card of a run: its round while it runs, its question or its outcome afterwards."""
    lead = run_lead(run)
    return Card(
        key=card_key(run.run_id, RUN_CARD),
        step=RUN_CARD,
        title=run_title(run),
        body=body_text(lead, goal=run.goal, session=run.session_id, rows=_run_rows(run), run_id=run.run_id),
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
    """Blocked is what waits for a person: an answer, an approval, or the word to go on."""
    if run.status is RunStatus.PAUSED:
        return CardState.BLOCKED
    if run.status is not RunStatus.ENDED:
        return CardState.RUNNING
    return CardState.BLOCKED if run.outcome is RunOutcome.BLOCKED else CardState.DONE


def run_title(run: RunView) -> str:
    """`r8 ralph · make the tests pass`, with what it waits for or its outcome before the goal."""
    head = f"{run_tag(run.run_id)} {run.workflow} · "
    mark = f"{run.outcome} · " if run.status is RunStatus.ENDED and run.outcome else ""
    if run.status is RunStatus.PAUSED:
        mark = "needs approval · " if _awaits_approval(run) else "paused · "
    return (head + mark + one_line(run.goal, GOAL_IN_TITLE - len(mark))).strip(" ·")


def _awaits_approval(run: RunView) -> bool:
    return "approval" in run.reason


def _way_on(run: RunView) -> str:
    """The command that lets a paused run go on."""
    return f"/matrix {'approve' if _awaits_approval(run) else 'resume'} {run_tag(run.run_id)}"


def run_lead(run: RunView) -> str:
    """A run in one sentence."""
    if run.status is RunStatus.ENDED:
        if run.outcome is RunOutcome.BLOCKED:
            return one_line(f"Question: {run.question or run.reason or 'see the last step'}", LEAD)
        return one_line(": ".join(p for p in (str(run.outcome or "ended"), run.reason) if p), LEAD)
    if run.status is RunStatus.PAUSED:
        why = one_line(run.reason or "paused", LEAD - 30)
        return f"{why[:1].upper()}{why[1:]}: {_way_on(run)}"
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
    facts |= check_facts(checked.evidence) if checked else {}
    facts |= {"rounds": f"{run.iteration}/{run.cap}", "steps": len(run.steps)}
    return facts | {"tokens": run.usage.tokens, "seconds": round(run.usage.seconds, 1)}


def run_comments(run: RunView) -> tuple[str, ...]:
    """A line for each step that ended, then what the run waits for, the question or the outcome.

    A comment stays as it was written, so none holds what may change later, such as the cap.
    """
    told = [_step_line(s) for s in run.steps if s.status is not StepStatus.RUNNING]
    if run.status is RunStatus.PAUSED:
        return (*told, f"waits · round {run.iteration}: {run.reason or 'paused'}\n\nGo on in chat: {_way_on(run)}")
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
    return f"{place} · {step_label(step)}{try_of(step)}{_took(step)}"


def _took(step: StepView) -> str:
    seconds = step.ended_at - step.started_at if step.ended_at and step.started_at else step.usage.seconds
    return f" · {seconds:.0f} s" if seconds > 0 else ""
