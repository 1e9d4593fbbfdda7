"""A run's result as text: the report that a person reads, and the one line that a chat shows."""

from __future__ import annotations

from dataclasses import asdict
from typing import cast

from .models import Evidence, RunOutcome, RunView, SpecialistResult, StepStatus, StepView, Usage
from .money import money_words, unpriced_words
from .prompts import fenced
from .serde import Json, plain
from .workflow import is_green

_NEXT = {
    RunOutcome.VERIFIED: "Look at the diff and commit it.",
    RunOutcome.UNVERIFIED: "Look at the diff yourself, or start again with a check that fails until the goal is met.",
    RunOutcome.CAP_REACHED: "Read the last failure above. `matrix-coder raise {run} cap={more}` lets it go on.",
    RunOutcome.STALLED: "Read the last failure above; the loop was not getting nearer. Mend that by hand, or start "
    "again with a goal that names it.",
    RunOutcome.BLOCKED: 'Answer it, and the run goes on: `matrix-coder answer {run} "text"`.',
    RunOutcome.BUDGET: "`matrix-coder raise {run} tokens=...`, `budget=...` or `money=...` lets it go on.",
    RunOutcome.TAMPERED: "Look at what changed in the tests before you take anything from this run.",
    RunOutcome.CANCELLED: "What was changed before the stop is still there.",
    RunOutcome.FAILED: "Mend what the reason names; `matrix-coder resume {run}` tries its last step again.",
}
# The same where no file differs from the start: there is no diff to look at.
_NEXT_UNCHANGED = _NEXT | {
    RunOutcome.VERIFIED: "Nothing: no file was changed, so there is nothing to commit.",
    RunOutcome.UNVERIFIED: "Start again with a check that fails until the goal is met.",
    RunOutcome.CANCELLED: "Nothing: no file was changed before the stop.",
}


def one_line(text: str) -> str:
    """`text` on one line: what a specialist wrote must not look like a heading or a table of the report."""
    return " ".join(text.split())


def counted(number: int, thing: str) -> str:
    """`1 file`, `2 files`, `1,000 files`."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def headline(run: RunView | SpecialistResult) -> str:
    """One line: the run, how it ended and why."""
    outcome = run.outcome.value if run.outcome else "live"
    return f"{run.run_id} {run.workflow}: {outcome}" + (f" - {one_line(run.reason)}" if run.reason else "")


def report_markdown(result: SpecialistResult, *, diff_stat: str = "") -> str:
    """The final report: asked, done, verified and by what, claimed but not verified, cost, what next."""
    blocks = [
        f"# {result.run_id} {result.workflow}: {result.outcome}",
        f"**Why:** {one_line(result.reason) or 'no reason was given'}",
        *([f"**Question for you:** {one_line(result.question)}"] if result.question else []),
        "## Asked\n\n" + _quoted(result.goal),
        "## Done\n\n" + _done(result, diff_stat),
        "## Verified, by the engine's own checks\n\n" + _verified(result),
        *(["## Units\n\n" + _units(result.steps)] if any(s.unit for s in result.steps) else []),
        "## Claimed by the specialists, not proof\n\n" + _claimed(result.steps),
        "## Cost\n\n" + _cost(result),
        "## Next\n\n" + _next(result),
    ]
    return "\n\n".join(blocks) + "\n"


def _next(result: SpecialistResult) -> str:
    run = result.run_id
    words = _NEXT if result.changed_files else _NEXT_UNCHANGED
    parts = [words[result.outcome].format(run=run, more=result.cap + 3)]
    if any(s.unit and s.status is StepStatus.FAILED for s in result.steps):
        parts.append(f"`matrix-coder checkouts {run}` lists what is kept of the units that were left out.")
    if result.changed_files and result.origin:
        parts.append(
            f"The run worked in a checkout of its own: `matrix-coder diff {run}` shows "
            f"what it changed, `matrix-coder take {run}` brings that into {result.origin}."
        )
    elif result.changed_files:
        parts.append(f"`matrix-coder diff {run}` shows what the run changed, `matrix-coder undo {run}` puts that back.")
    return " ".join(parts)


def report_json(result: SpecialistResult) -> dict[str, Json]:
    """The same as plain JSON data; `cost` sums up the usage of its steps by role and by iteration."""
    cost = {name: {key: asdict(used) for key, (_, used) in rows.items()} for name, rows in _shares(result).items()}
    return cast("dict[str, Json]", plain(asdict(result) | {"cost": cost}))


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())


def _done(result: SpecialistResult, diff_stat: str) -> str:
    if not result.changed_files:
        return "No file differs from the start."
    names = "\n".join(one_line(name) for name in result.changed_files)
    differ = "differs" if len(result.changed_files) == 1 else "differ"
    return f"{counted(len(result.changed_files), 'file')} {differ} from the start:\n\n{fenced(diff_stat or names)}"


def _verified(result: SpecialistResult) -> str:
    if not result.evidence:
        return "Nothing: no check ran on the final tree."
    rows = ["| check | starting tree | final tree | tree | seconds |", "|---|---|---|---|---|"]
    before = {e.name: e for e in result.baseline}
    rows += [_check_row(before.get(e.name), e) for e in result.evidence]
    red = [e for e in result.evidence if not is_green(e)]
    tails = [f"End of `{one_line(e.command)}`:\n\n{fenced(e.tail[-2_000:].rstrip())}" for e in red]
    return "\n".join(rows) + "".join(f"\n\n{t}" for t in tails)


def _check_row(before: Evidence | None, after: Evidence) -> str:
    start = f"{_state(before)}" if before else "not run"
    command = one_line(after.command).replace("|", "\\|")
    return f"| `{command}` | {start} | {_state(after)} | {after.tree[:12]} | {after.duration_s:.1f} |"


def _state(evidence: Evidence) -> str:
    return f"{'pass' if is_green(evidence) else 'FAIL'} ({evidence.counts()})"


def _units(steps: tuple[StepView, ...]) -> str:
    """The last word on each unit."""
    last = {s.unit: s for s in steps if s.unit}
    return "\n".join(f"- {name} - {one_line(s.note) or s.status.value}" for name, s in last.items())


def _claimed(steps: tuple[StepView, ...]) -> str:
    rows = [f"{i}. {line}" for i, line in enumerate((_step_line(s) for s in steps), 1)]
    return "\n".join(rows) or "No step ran."


def _step_line(step: StepView) -> str:
    verdict = step.report.verdict.value if step.report else step.status.value
    who = f"{step.role} of unit {step.unit}" if step.unit else step.role
    said = f": {one_line(step.report.summary)}" if step.report and step.report.summary else ""
    return f"iteration {step.iteration}, {who} - {verdict}{said}" + (
        f" [{one_line(step.note)}]" if step.note and not step.unit else ""
    )


def _cost(result: SpecialistResult) -> str:
    usage = result.usage
    money = money_words(usage)
    lines = [
        f"{result.iterations} of {result.cap} iterations, {counted(len(result.steps), 'step')}, "
        f"{usage.input_tokens:,} tokens in and {usage.output_tokens:,} out, {usage.seconds:.0f} s of specialists' work"
        + (f", {money} by the host's estimate." if money else ".")
    ]
    if unpriced := unpriced_words(usage, result.money_usd):
        lines.append(f"{unpriced}.")
    return "\n\n".join([*lines, *([_shares_table(result)] if result.steps else [])])


def _shares_table(result: SpecialistResult) -> str:
    rows = ["| what it cost | steps | tokens | money | seconds |", "|---|---|---|---|---|"]
    by = _shares(result)
    named = [*by["by_role"].items(), *((f"iteration {n}", share) for n, share in by["by_iteration"].items())]
    rows += [
        f"| {one_line(name)} | {steps} | {used.tokens:,} | {money_words(used) or '-'} | {used.seconds:.0f} |"
        for name, (steps, used) in named
    ]
    return "\n".join(rows)


def _shares(result: SpecialistResult) -> dict[str, dict[str, tuple[int, Usage]]]:
    """How many steps each role and each iteration took, and what they used."""
    shares: dict[str, dict[str, tuple[int, Usage]]] = {"by_role": {}, "by_iteration": {}}
    for step in result.steps:
        for rows, key in ((shares["by_role"], step.role), (shares["by_iteration"], str(step.iteration))):
            steps, used = rows.get(key, (0, Usage()))
            rows[key] = (steps + 1, used + step.usage)
    return shares
