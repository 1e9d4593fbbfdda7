"""What one step hands to the next: bounded, newest first, with the outputs that matter.

The whole record stays on disk. What a specialist wrote stays on one line, so that it can't pass for the engine's words.
"""

from __future__ import annotations

from .models import Evidence, StepReport, StepView
from .prompts import fenced
from .render import one_line
from .workflow import is_green

MAX_HANDOVER = 12_000
STEPS_TOLD = 4
_TAIL = 2_500
_FAILING = 20


def handover(
    *,
    previous: tuple[StepView, ...],
    evidence: tuple[Evidence, ...],
    diff_stat: str,
    notes: tuple[str, ...] = (),
) -> str:
    """The text for the next step: the engine's checks, the last steps' reports, the change so far.

    `previous` are the finished steps, oldest first; `evidence` what the checks say about the tree as it is now,
    or said last; `notes` what the engine has to say itself.
    """
    parts = [f"- {note}" for note in notes]
    parts += [_evidence_text(e) for e in evidence]
    parts += [_step_text(s) for s in reversed(previous[-STEPS_TOLD:])]
    if diff_stat:
        parts.append(f"Changed since the run began:\n{diff_stat[:2_000]}")
    text = "\n\n".join(p for p in parts if p)
    return text if len(text) <= MAX_HANDOVER else text[:MAX_HANDOVER] + "\n[the rest is in the run's record]"


def _evidence_text(evidence: Evidence) -> str:
    state = "passes" if is_green(evidence) else "fails"
    lines = [f"The engine ran `{evidence.command}`: it {state} ({evidence.counts()})."]
    if evidence.failing:
        lines.append("Failing: " + ", ".join(evidence.failing[:_FAILING]))
    if not is_green(evidence):
        lines.append(f"The end of its output:\n{fenced(evidence.tail[-_TAIL:])}")
    return "\n".join(lines)


def _step_text(step: StepView) -> str:
    report = step.report
    if report is None:
        return ""
    who = f"Step {step.number} ({step.role}, iteration {step.iteration})"
    lines = [f"{who} said {report.verdict}: {one_line(report.summary)}"]
    lines += _report_lines(report)
    return "\n".join(lines)


def _report_lines(report: StepReport) -> list[str]:
    lines = []
    for f in report.findings[:20]:
        where = f" ({one_line(f.file)}{f':{f.line}' if f.line else ''})" if f.file else ""
        lines.append(f"- {f.severity}: {one_line(f.summary)}{where}")
    lines += [f"- open question: {one_line(q)}" for q in report.open_questions[:5]]
    if report.recommendation:
        lines.append(f"Recommended: {one_line(report.recommendation)}")
    return lines
