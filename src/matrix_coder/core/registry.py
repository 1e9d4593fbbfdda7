"""Personas and workflows by name: a closed set, validated before any path is touched, read once.

The texts are the Markdown files under `personas/`. A name outside the enums of `names.py` never becomes part
of a path, so the catalogue can't be walked out of.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from .definition import StepDefinition, WorkflowDefinition, build_workflow, malformed, shown
from .errors import UnknownPersona
from .names import Domain, Lens, Role, Workflow

if TYPE_CHECKING:
    from yaml.nodes import Node

__all__ = [
    "Base",
    "Persona",
    "PersonaKind",
    "StepDefinition",
    "Surface",
    "WorkflowDefinition",
    "load_persona",
    "load_workflow",
    "parse_persona",
    "parse_workflow",
]

MAX_SOURCE = 64_000

_E = TypeVar("_E", bound=StrEnum)

_ROOT = Path(__file__).resolve().parent.parent / "personas"
_FRONT = re.compile(r"\A---\n(.*?\n)---\n(.*)\Z", re.DOTALL)
_FENCE = re.compile(r"(`{3,}|~{3,})")
_KEYS = frozenset({"name", "kind", "summary"})


class Surface(StrEnum):
    """Where a persona speaks: in a person's turn, or in one step of a run."""

    CHAT = "chat"
    RUN = "run"


class PersonaKind(StrEnum):
    """What a text adds to a composition."""

    BASE = "base"
    ROLE = "role"
    LENS = "lens"
    DOMAIN = "domain"


class Base(StrEnum):
    """The texts that every composition shares."""

    CONTRACT = "contract"
    STEP = "step"
    STARTED = "started"


_FOLDERS: dict[PersonaKind, tuple[type[StrEnum], str]] = {
    PersonaKind.BASE: (Base, "_base"),
    PersonaKind.ROLE: (Role, "roles"),
    PersonaKind.LENS: (Lens, "review-lenses"),
    PersonaKind.DOMAIN: (Domain, "domains"),
}
_OTHER_SURFACE = {Surface.CHAT: "In a run", Surface.RUN: "In chat"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """One text of the catalogue: each `##` heading with its text; the heading of the lead is empty."""

    name: str
    kind: PersonaKind
    summary: str
    sections: Mapping[str, str]

    def text(self, surface: Surface) -> str:
        """The text as it stands in a composition for `surface`: the other surface's section is left out."""
        other = _OTHER_SURFACE[surface]
        parts = (f"## {h}\n{t}" if h else t for h, t in self.sections.items() if h != other)
        return "\n\n".join(parts)


def load_persona(name: str, kind: str = PersonaKind.ROLE) -> Persona:
    """The persona `name` of `kind` (base, role, lens or domain).

    Raises `UnknownPersona` for a name outside the catalogue, `DefinitionError` for a malformed file.
    """
    known = _member(PersonaKind, "kind of persona", kind)
    return _load_persona(known, _member(_FOLDERS[known][0], known, name))


def load_workflow(name: str) -> WorkflowDefinition:
    """The workflow `name` as the plugin ships it.

    Raises `UnknownPersona` for a name outside the catalogue, `DefinitionError` for a malformed file.
    """
    return _load_workflow(_member(Workflow, "workflow", name))


def parse_workflow(text: str) -> WorkflowDefinition:
    """The workflow written in `text`: a file of the catalogue, or the copy that a run carries.

    Raises `DefinitionError`, in one line, when it breaks the schema.
    """
    front, body = _split("workflow", text)
    return build_workflow(front, _sections("workflow", body), text)


def parse_persona(name: str, kind: PersonaKind, text: str) -> Persona:
    """The persona written in `text`; raises `DefinitionError` when its front matter is not that persona's."""
    where = f"persona {kind}/{name}"
    front, body = _split(where, text)
    for key in sorted(_KEYS ^ front.keys()):
        raise malformed(where, f"exactly the keys {', '.join(sorted(_KEYS))}", key)
    for key, value in (("name", name), ("kind", kind.value)):
        if front[key] != value:
            raise malformed(where, f"{key}: {value}", front[key])
    summary = front["summary"]
    if not isinstance(summary, str) or not summary:
        raise malformed(where, "summary to be a line of text", summary)
    sections = _sections(where, body)
    if not sections:
        raise malformed(where, "a text after the front matter", "none")
    return Persona(name=name, kind=kind, summary=summary, sections=sections)


def _member(names: type[_E], what: str, name: object) -> _E:
    if isinstance(name, str) and name in {m.value for m in names}:
        return names(name)
    raise UnknownPersona(f"a {what} out of {', '.join(names)}", shown(name), "use one of these names")


@cache
def _load_persona(kind: PersonaKind, name: StrEnum) -> Persona:
    return parse_persona(name.value, kind, _read(_FOLDERS[kind][1], name.value))


@cache
def _load_workflow(name: StrEnum) -> WorkflowDefinition:
    definition = parse_workflow(_read("workflows", name.value))
    if definition.name != name:
        raise malformed(f"workflow {name}", f"name: {name}", definition.name.value)
    return definition


def _read(folder: str, name: str) -> str:
    try:
        return (_ROOT / folder / f"{name}.md").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise malformed(f"personas/{folder}/{name}.md", "a readable UTF-8 file", type(error).__name__) from error


def _split(where: str, text: str) -> tuple[dict[str, object], str]:
    """Front matter and body of a Markdown file."""
    if len(text) > MAX_SOURCE:
        raise malformed(where, f"at most {MAX_SOURCE} characters", len(text))
    found = _FRONT.match(text.replace("\r\n", "\n"))
    if found is None:
        raise malformed(where, "front matter between two lines of ---", text[:40])
    return _front_matter(where, found.group(1)), found.group(2)


def _front_matter(where: str, text: str) -> dict[str, object]:
    # Imported here: a turn that injects nothing must not pay for a YAML parser.
    import yaml  # noqa: PLC0415

    try:
        _refuse_repeats(where, yaml.compose(text, Loader=yaml.SafeLoader))
        front = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" at line {mark.line + 2}" if mark is not None else ""
        raise malformed(where, "front matter in YAML", f"{type(error).__name__}{line}") from error
    if isinstance(front, dict) and all(isinstance(key, str) for key in front):
        return front
    raise malformed(where, "front matter to be a mapping", front)


def _refuse_repeats(where: str, root: Node | None) -> None:
    """A key that stands twice in one mapping is a mistake; YAML alone would keep the last without a word."""
    todo: list[Node | None] = [root]
    seen: set[int] = set()
    while todo:
        node = todo.pop()
        if node is None or id(node) in seen or not isinstance(node.value, list):
            continue
        seen.add(id(node))
        pairs = [item for item in node.value if isinstance(item, tuple)]
        keys = [key.value for key, _ in pairs if isinstance(key.value, str)]
        for key in {key for key in keys if keys.count(key) > 1}:
            raise malformed(where, "each key once", key)
        todo += [part for pair in pairs for part in pair] if pairs else node.value


def _sections(where: str, body: str) -> dict[str, str]:
    """Each `##` heading of the body with its text, in order; the heading of the lead is empty."""
    found: dict[str, list[str]] = {"": []}
    heading, fence = "", ""
    for line in body.splitlines():
        fence = _fence_after(fence, line)
        if not fence and line.startswith("## "):
            heading = line[3:].strip()
            if heading in found:
                raise malformed(where, "each section once", f"## {heading}")
            found[heading] = []
        else:
            found[heading].append(line)
    texts = {name: "\n".join(lines).strip() for name, lines in found.items()}
    return {name: text for name, text in texts.items() if text}


def _fence_after(fence: str, line: str) -> str:
    """The code fence that is open after `line`, given the one open before it; empty when none is."""
    mark = _FENCE.match(line.strip())
    if mark is None:
        return fence
    if not fence:
        return mark.group(1)
    return "" if mark.group(1).startswith(fence) and line.strip() == mark.group(1) else fence
