"""A workflow as data: its steps, where each verdict leads, and the rules that make such a file safe to drive.

Two rules carry the promises of a run: a run ends as verified only through the engine's checks (no file can
write `end:verified`, and no FAIL or BLOCKED leads to the gate), and steps follow each other in a circle only
through `loop:`, where the cap is counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, TypeVar

from .errors import DefinitionError
from .models import RunOutcome, StepVerdict
from .names import Lens, Role, Workflow

GATE = "gate:checks"
MAX_CAP = 100
MAX_STEPS = 12

READ_ONLY_ROLES = frozenset({Role.REVIEW, Role.EXPLORE, Role.PLAN, Role.DEBUG, Role.VERIFY})
# Every other outcome is the engine's to find: a definition can't declare success, a cap or a budget.
_ENDS = frozenset({RunOutcome.BLOCKED, RunOutcome.FAILED, RunOutcome.UNVERIFIED})
_VERDICTS = tuple(v.value for v in StepVerdict)
_STEP_NAME = re.compile(r"[a-z][a-z_-]{0,31}")
_REQUIRED = frozenset({"name", "cap", "steps", "start", "transitions"})
_OPTIONAL = frozenset({"loop_start", "summary", "stalled", "green_ends"})

_E = TypeVar("_E", bound=StrEnum)
_Raw: TypeAlias = Mapping[str, object]
_Graph: TypeAlias = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDefinition:
    """One step: its specialist, whether that may change the workspace, and what it is told of the loop."""

    name: str
    role: Role
    writes: bool
    lens: Lens | None = None
    fan_out: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowDefinition:
    """One workflow, validated.

    `transitions[step][verdict]` is a step's name, `loop:<step>` (the next iteration starts there),
    `end:<outcome>` or `gate:checks` (green ends the run, red goes where that step's FAIL goes). `stalled` names
    the step that looks for the cause once when two iterations end alike; with `green_ends` a suite that is green
    from the start ends the run at once. `source` is the whole text it was parsed from: a run keeps that and
    parses it again.
    """

    name: Workflow
    cap: int
    start: str
    loop_start: str
    steps: Mapping[str, StepDefinition]
    transitions: Mapping[str, Mapping[str, str]]
    chat_text: str
    source: str
    summary: str = ""
    stalled: str = ""
    green_ends: bool = False


def malformed(where: str, expected: str, found: object) -> DefinitionError:
    """The one line for a file that breaks its form."""
    return DefinitionError(f"{where}: {expected}", shown(found), "mend the file, or reinstall the plugin")


def shown(value: object) -> str:
    """`value` in a few printable characters, whatever it is."""
    if isinstance(value, (list, dict, set, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    text = repr(value) if isinstance(value, (str, int, float, bool, type(None))) else type(value).__name__
    return text if len(text) <= 80 else text[:77] + "..."


def build_workflow(front: _Raw, sections: Mapping[str, str], source: str) -> WorkflowDefinition:
    """The definition in a file's front matter and body; raises `DefinitionError` when it can't be driven."""
    name = _member(Workflow, front.get("name"), "workflow", "name")
    where = f"workflow {name}"
    _keys(where, front, _REQUIRED, _OPTIONAL)
    steps = _steps(where, front["steps"], sections)
    start = _step_name(where, "start", front["start"], steps)
    loop_start = _step_name(where, "loop_start", front.get("loop_start", start), steps)
    transitions = _transitions(where, front["transitions"], steps)
    stalled = _step_name(where, "stalled", front["stalled"], steps) if "stalled" in front else ""
    _check_reach(where, [start, stalled] if stalled else [start], loop_start, transitions)
    _check_counted(where, transitions)
    return WorkflowDefinition(
        name=name,
        cap=_cap(where, front["cap"]),
        start=start,
        loop_start=loop_start,
        steps=steps,
        transitions=transitions,
        chat_text=_section(where, sections, "Chat"),
        source=source,
        summary=str(front.get("summary", "")),
        stalled=stalled,
        green_ends=_flag(where, "green_ends", front.get("green_ends", False)),
    )


def _member(kind: type[_E], value: object, where: str, key: str) -> _E:
    if isinstance(value, str) and value in {m.value for m in kind}:
        return kind(value)
    raise malformed(where, f"{key} to be one of {', '.join(kind)}", value)


def _keys(where: str, found: _Raw, required: frozenset[str], optional: frozenset[str]) -> None:
    for key in sorted(required - found.keys()):
        raise malformed(where, f"the key `{key}`", f"no `{key}`")
    for key in found.keys() - required - optional:
        raise malformed(where, f"only the keys {', '.join(sorted(required | optional))}", key)


def _mapping(where: str, expected: str, value: object) -> dict[str, object]:
    if isinstance(value, dict) and value and all(isinstance(k, str) for k in value):
        return value
    raise malformed(where, expected, value)


def _cap(where: str, value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_CAP:
        return value
    raise malformed(where, f"cap to be a whole number from 1 to {MAX_CAP}", value)


def _section(where: str, sections: Mapping[str, str], heading: str) -> str:
    text = sections.get(heading, "")
    if text:
        return text
    raise malformed(where, f"a section `## {heading}` with text", "none")


def _steps(where: str, value: object, sections: Mapping[str, str]) -> dict[str, StepDefinition]:
    raw = _mapping(where, "steps to map each step's name to its role", value)
    if len(raw) > MAX_STEPS:
        raise malformed(where, f"at most {MAX_STEPS} steps", raw)
    steps = {name: _step(where, name, entry, sections) for name, entry in raw.items()}
    for heading in sections.keys() - {"Chat"} - {f"Step: {name}" for name in steps}:
        raise malformed(where, "only the sections `## Chat` and one `## Step: <name>` a step", heading)
    return steps


def _step(where: str, name: str, value: object, sections: Mapping[str, str]) -> StepDefinition:
    if not _STEP_NAME.fullmatch(name):
        raise malformed(where, "a step's name in lower-case letters", name)
    where = f"{where}, step {name}"
    entry = _mapping(where, "a mapping with role and writes", value)
    _keys(where, entry, frozenset({"role", "writes"}), frozenset({"lens", "fan_out"}))
    role = _member(Role, entry["role"], where, "role")
    writes = _flag(where, "writes", entry["writes"])
    if writes and role in READ_ONLY_ROLES:
        raise malformed(where, f"writes: false, since {role} only reads in a run", writes)
    lens = _member(Lens, entry["lens"], where, "lens") if "lens" in entry else None
    if lens is not None and role is not Role.REVIEW:
        raise malformed(where, "a lens on a review only", lens.value)
    return StepDefinition(
        name=name,
        role=role,
        writes=writes,
        lens=lens,
        fan_out=_flag(where, "fan_out", entry.get("fan_out", False)),
        text=_section(where, sections, f"Step: {name}"),
    )


def _flag(where: str, key: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise malformed(where, f"{key} to be true or false", value)


def _step_name(where: str, key: str, value: object, steps: Mapping[str, StepDefinition]) -> str:
    if isinstance(value, str) and value in steps:
        return value
    raise malformed(where, f"{key} to be one of the steps {', '.join(steps)}", value)


def _transitions(where: str, value: object, steps: Mapping[str, StepDefinition]) -> dict[str, dict[str, str]]:
    raw = _mapping(where, "transitions to map each step to its verdicts", value)
    _keys(f"{where}, transitions", raw, frozenset(steps), frozenset())
    return {step: _verdicts(f"{where}, transitions of {step}", raw[step], steps) for step in steps}


def _verdicts(where: str, value: object, steps: Mapping[str, StepDefinition]) -> dict[str, str]:
    raw = _mapping(where, f"a target for each of {', '.join(_VERDICTS)}", value)
    _keys(where, raw, frozenset(_VERDICTS), frozenset())
    return {verdict: _target(where, verdict, raw[verdict], steps) for verdict in _VERDICTS}


def _target(where: str, verdict: str, value: object, steps: Mapping[str, StepDefinition]) -> str:
    if value == GATE and verdict in (StepVerdict.FAIL, StepVerdict.BLOCKED):
        raise malformed(where, f"{verdict} to lead away from {GATE}, which can end in success", GATE)
    if isinstance(value, str) and value in _targets(steps):
        return value
    ends = ", ".join(sorted(f"end:{o}" for o in _ENDS))
    expected = f"{verdict} to lead to a step ({', '.join(steps)}), loop:<step>, {GATE} or {ends}"
    raise malformed(where, expected, value)


def _targets(steps: Mapping[str, StepDefinition]) -> set[str]:
    return {GATE, *steps, *(f"loop:{s}" for s in steps), *(f"end:{o}" for o in _ENDS)}


def _check_reach(where: str, starts: list[str], loop_start: str, transitions: _Graph) -> None:
    """Every step can be reached from where a run may start or stall, and so can the gate or an end."""
    seen: set[str] = set()
    start, todo = starts[0], list(starts)
    while todo:
        step = todo.pop()
        if step in seen:
            continue
        seen.add(step)
        targets = transitions[step].values()
        todo += [loop_start if t == GATE else t.removeprefix("loop:") for t in targets if not t.startswith("end:")]
    for step in transitions.keys() - seen:
        raise malformed(where, f"every step to be reachable from {start}", step)
    if not any(t == GATE for step in transitions.values() for t in step.values()):
        raise malformed(where, f"some verdict to lead to {GATE}, the only way to a verified end", "none")


def _check_counted(where: str, transitions: _Graph) -> None:
    """No circle of plain steps: only `loop:` counts against the cap."""
    open_steps = dict(transitions)
    while open_steps:
        done = [s for s, t in open_steps.items() if not any(target in open_steps for target in t.values())]
        if not done:
            circle = " and ".join(sorted(open_steps))
            raise malformed(where, "steps to lead back only through loop:, where the cap counts", circle)
        for step in done:
            del open_steps[step]
