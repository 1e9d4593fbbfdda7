"""The texts that reach a model, put together within a budget.

Every composition stays far below the size at which the host would replace it with a stub. Text that a
person, a file or another model wrote stands inside a fence that it can't close, and is named as data.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .errors import DefinitionError, UnknownPersona
from .names import Role
from .registry import Base, Persona, PersonaKind, StepDefinition, Surface, WorkflowDefinition, load_persona

MAX_COMPOSITION = 6_000
MAX_HANDOVER = 8_000
MAX_GOAL = 20_000

_MAX_INLINE = 1_000
_MAX_CHECKS = 20
_REMEDY = "shorten a text under personas/"


def compose(
    role: str,
    *,
    lens: str | None = None,
    domain: str | None = None,
    surface: str = Surface.CHAT,
) -> str:
    """The persona of one specialist: contract, role, lens and domain, at most `MAX_COMPOSITION` characters.

    Raises `UnknownPersona` for a name outside the catalogue or a lens on another role than review,
    `DefinitionError` when the texts are too long together.
    """
    return _bounded(_persona_texts(role, lens, domain, _surface(surface)))


def compose_step(  # noqa: PLR0913 - one flat list of what a step is told
    definition: WorkflowDefinition,
    step: str,
    *,
    goal: str,
    domain: str | None,
    iteration: int,
    cap: int,
    handover: str,
    workspace: str,
    checks: Sequence[str],
    goal_path: str = "",
) -> str:
    """What the specialist of one step of a run is told.

    What stays the same through a run stands first, what changes with the iteration last. A goal over
    `MAX_GOAL` characters is shown up to there when `goal_path` names the file that holds all of it; the
    hand-over is cut to `MAX_HANDOVER` characters, from its middle.
    """
    chosen = _step(definition, step)
    parts = [
        _step_persona(definition, chosen, domain),
        _place(workspace, checks),
        _request(goal, goal_path),
        f"## Now\nIteration {iteration} of at most {cap}.",
    ]
    if handover.strip():
        parts.append(f"## Hand-over\n{_step_text('Hand-over')}\n\n{fenced(_middle_cut(handover))}")
    return "\n\n".join(parts)


def workflow_chat_text(  # noqa: PLR0913 - one flat list of facts
    definition: WorkflowDefinition,
    *,
    run_id: str,
    workspace: str,
    checks: Sequence[str],
    cap: int,
    budget_text: str,
    watch_command: str,
    cancel_command: str,
    result_way: str = "",
) -> str:
    """What the model of the turn that started a run is told: that it runs, and how; not to do its work.

    `result_way` says how its result comes to this chat.
    """
    facts = [
        f"- Run: {inline(run_id)} ({definition.name})",
        f"- Workspace: {inline(workspace)}",
        f"- Checks: {_checks(checks)}",
        f"- Cap: {cap} {'iteration' if cap == 1 else 'iterations'}",
        f"- Budget: {budget_text}",
        f"- Watch: {inline(watch_command)}",
        f"- Stop: {inline(cancel_command)}",
        *([f"- Result: {result_way}"] if result_way else []),
    ]
    texts = [load_persona(Base.STARTED, PersonaKind.BASE).text(Surface.CHAT), definition.chat_text]
    return _bounded([*texts, "## Facts\n" + "\n".join(facts)])


def fenced(text: str) -> str:
    """`text` unchanged between two lines of a fence that no run of characters in it can close."""
    ticks, waves = _longest(text, "`"), _longest(text, "~")
    fence = "`" * max(3, ticks + 1) if ticks <= waves else "~" * max(3, waves + 1)
    return f"{fence}\n{text}\n{fence}"


def inline(text: str) -> str:
    """`text` as one code span on one line, cut to a length that can't fill a prompt."""
    line = "".join(c if c.isprintable() else " " for c in text).strip()
    line = line if len(line) <= _MAX_INLINE else line[: _MAX_INLINE - 3] + "..."
    tick = "`" * (_longest(line, "`") + 1)
    pad = " " if "`" in line else ""
    return f"{tick}{pad}{line}{pad}{tick}"


def _surface(name: str) -> Surface:
    if name in {s.value for s in Surface}:
        return Surface(name)
    raise UnknownPersona("a surface out of chat, run", repr(name)[:80], "use one of these names")


def _persona_texts(role: str, lens: str | None, domain: str | None, surface: Surface) -> list[str]:
    chosen: list[Persona] = [load_persona(Base.CONTRACT, PersonaKind.BASE), load_persona(role)]
    if lens:
        if role != Role.REVIEW:
            raise UnknownPersona("a lens on a review only", f"a lens on {role}", "leave the lens out")
        chosen.append(load_persona(lens, PersonaKind.LENS))
    if domain:
        chosen.append(load_persona(domain, PersonaKind.DOMAIN))
    return [persona.text(surface) for persona in chosen]


def _bounded(texts: Sequence[str]) -> str:
    composed = "\n\n".join(texts)
    if len(composed) <= MAX_COMPOSITION:
        return composed
    found = f"{len(composed)} in {' + '.join(str(len(t)) for t in texts)}"
    raise DefinitionError(f"a composition of at most {MAX_COMPOSITION} characters", found, _REMEDY)


def _step(definition: WorkflowDefinition, name: str) -> StepDefinition:
    if name in definition.steps:
        return definition.steps[name]
    raise UnknownPersona(
        f"a step of {definition.name} out of {', '.join(definition.steps)}",
        repr(name)[:80],
        "use one of these names",
    )


def _step_persona(definition: WorkflowDefinition, step: StepDefinition, domain: str | None) -> str:
    kind = "Writing step" if step.writes else "Reading step"
    place = f"## This step: {definition.name}, {step.name}\n{step.text}\n\n{_step_text(kind)}"
    return _bounded([*_persona_texts(step.role, step.lens, domain, Surface.RUN), place])


def _step_text(section: str) -> str:
    return load_persona(Base.STEP, PersonaKind.BASE).sections[section]


def _place(workspace: str, checks: Sequence[str]) -> str:
    return f"## Workspace\n- Root: {inline(workspace)}\n- Checks that the engine runs: {_checks(checks)}"


def _checks(checks: Sequence[str]) -> str:
    if not checks:
        return "none found, so the run can't end as `verified`"
    listed = [inline(check) for check in checks[:_MAX_CHECKS]]
    more = len(checks) - len(listed)
    return ", ".join(listed) + (f" and {more} more" if more else "")


def _request(goal: str, goal_path: str) -> str:
    note = ""
    if len(goal) > MAX_GOAL and goal_path:
        note = (
            f"\n\nThese are the first {MAX_GOAL:,} of {len(goal):,} characters. "
            f"The whole request is in {inline(goal_path)}: read it before you start."
        )
        goal = goal[:MAX_GOAL]
    return f"## Request\n{_step_text('Request')}{note}\n\n{fenced(goal)}"


def _middle_cut(text: str) -> str:
    """`text`, or `MAX_HANDOVER` characters of it: three quarters from its head, the rest from its end."""
    if len(text) <= MAX_HANDOVER:
        return text
    note = f"\n\n[{len(text) - MAX_HANDOVER:,} characters left out here; the run's record on disk has them]\n\n"
    head = MAX_HANDOVER * 3 // 4
    return text[:head] + note + text[head - MAX_HANDOVER :]


def _longest(text: str, character: str) -> int:
    return max((len(run) for run in re.findall(re.escape(character) + "+", text)), default=0)
