"""The explicit grammar: `matrix <role> [<lens>] [@<domain>] [:] <goal>` and the workflow header."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .decision import Decision, GateOutcome, OptionValue, Route, Signal
from .gate_options import ACCEPTED, OptionError, parse_options
from .lexicon import Lexicon, lexicon
from .names import Domain, Lens, Role, Workflow

TRIGGER = "matrix"
_ROLES = {r.value: r for r in Role}
_LENSES = {x.value: x for x in Lens}
_DOMAINS = {d.value: d for d in Domain}
_WORKFLOWS = {w.value: w for w in Workflow}
_WORD = re.compile(r"[A-Za-z]{1,16}(?=[\s:@]|\Z)")
_DOMAIN = re.compile(r"@([A-Za-z][\w-]{0,40})(?=[\s:]|\Z)")
_TALK_WORD = re.compile(r"[\w'-]+|[^\w\s]")
_CODE_SHAPE = re.compile(r"[\w-]/[\w-]|\w\.\w|\w_\w|\(\)")
_POLITE = frozenset({"please", "can", "could", "would", "you", "pls"})
_RELATIVE = frozenset({"that", "which", "who", "because", "if", "when", "until", "so", "where", "whose", "while"})


@dataclass(slots=True)
class _Head:
    """A header while it is read: what is left of the text, and whether a colon has ended it."""

    rest: str
    ended: bool = False
    role: Role = Role.REVIEW
    workflow: Workflow | None = None
    lens: Lens | None = None
    domain: Domain | None = None
    options: dict[str, OptionValue] = field(default_factory=dict)

    def colon(self) -> None:
        """Take the colon that ends the header, glued or alone."""
        bare = self.rest.lstrip()
        if bare.startswith(":"):
            self.rest, self.ended = bare[1:], True


def is_trigger(text: str) -> bool:
    """Whether stripped text starts with the trigger word, and not with `matrix` as a plain noun."""
    if text[:6].lower() != TRIGGER or not (len(text) == 6 or text[6].isspace() or text[6] in ":@"):
        return False
    after = text[6:80].lower().split()
    nouns = lexicon().matrix_nouns
    words = [w.rstrip(".,;!?") for w in after[:4]]
    return not any(" ".join(words[:n]) in nouns for n in range(1, len(words) + 1))


def parse_trigger(message: str) -> Decision | None:
    """The explicit decision of a message that starts with the trigger word, else None."""
    text = message.strip()
    if not is_trigger(text):
        return None
    head = _Head(text[6:])
    try:
        _read(head)
    except OptionError as exc:
        return _refuse(head, text, str(exc))
    return _decide(head, text)


def _read(head: _Head) -> None:
    head.colon()
    for step in (_read_name, _read_spaced_lens, _read_domain, _read_options, _Head.colon):
        if not head.ended:
            step(head)


def _read_name(head: _Head) -> None:
    head.rest = head.rest.lstrip()
    word = _WORD.match(head.rest)
    name = word[0].lower() if word else ""
    if name in _WORKFLOWS:
        head.workflow = _WORKFLOWS[name]
    elif name in _ROLES:
        head.role = _ROLES[name]
    else:
        if not head.rest.startswith("@"):
            head.ended = True
        return
    assert word is not None
    head.rest = head.rest[word.end() :]
    if head.rest.startswith(":"):
        _read_compact_lens(head)


def _read_compact_lens(head: _Head) -> None:
    """After `role:` either a glued lens, which another role drops, or the goal."""
    word = _WORD.match(head.rest[1:])
    lens = _LENSES.get(word[0].lower()) if word and head.workflow is None else None
    if lens is None:
        head.colon()
        return
    assert word is not None
    head.rest = head.rest[1 + word.end() :]
    if head.role is Role.REVIEW:
        head.lens = lens


def _read_spaced_lens(head: _Head) -> None:
    if head.workflow is not None or head.role is not Role.REVIEW or head.lens is not None:
        return
    bare = head.rest.lstrip()
    word = _WORD.match(bare)
    if word and bare is not head.rest and word[0].lower() in _LENSES:
        head.lens, head.rest = _LENSES[word[0].lower()], bare[word.end() :]


def _read_domain(head: _Head) -> None:
    bare = head.rest.lstrip()
    found = _DOMAIN.match(bare)
    if found and found[1].lower() in _DOMAINS:
        head.domain, head.rest = _DOMAINS[found[1].lower()], bare[found.end() :]


def _read_options(head: _Head) -> None:
    if head.workflow is not None:
        head.options, head.rest, head.ended = parse_options(head.rest.lstrip())


def _decide(head: _Head, text: str) -> Decision:
    goal = head.rest.strip()
    header = text[: len(text) - len(head.rest)].rstrip()
    signal = (Signal(header, (0, len(header)), "explicit header", head.workflow or head.role),)
    if head.workflow is None:
        route = Route(role=head.role, lens=head.lens, domain=head.domain)
        return Decision(
            outcome=GateOutcome.EXPLICIT,
            role=route.role.value,
            lens=route.lens.value if route.lens else None,
            domain=route.domain.value if route.domain else None,
            goal=goal,
            route=route.name,
            signals=signal,
        )
    answer = _question(head, goal)
    return Decision(
        outcome=GateOutcome.EXPLICIT,
        role=head.workflow.value,
        workflow=True,
        domain=head.domain.value if head.domain else None,
        goal=goal,
        route=head.workflow.value + (f"@{head.domain}" if head.domain else ""),
        signals=signal,
        asks=bool(answer),
        answer=answer,
        options=head.options,
    )


def _refuse(head: _Head, text: str, why: str) -> Decision:
    assert head.workflow is not None
    name = head.workflow.value
    return Decision(
        outcome=GateOutcome.EXPLICIT,
        role=name,
        workflow=True,
        domain=head.domain.value if head.domain else None,
        goal=head.rest.strip(),
        route=name + (f"@{head.domain}" if head.domain else ""),
        signals=(Signal(text[:80], (0, min(80, len(text))), "workflow options", "asks"),),
        asks=True,
        answer=f"Nothing was started: {why}. Accepted: {ACCEPTED}.",
    )


def _question(head: _Head, goal: str) -> str:
    """What to say instead of starting a workflow, or an empty text when it starts."""
    assert head.workflow is not None
    name = head.workflow.value
    if not goal:
        return f"Nothing was started: {name} needs a goal. This starts it: matrix {name}: <goal>"
    if not head.ended and not head.options and is_workflow_talk(goal):
        line = " ".join(goal.split())[:120]
        return f"Nothing was started, that reads as talk about {name}. This would start it: matrix {name}: {line}"
    return ""


def is_workflow_talk(goal: str) -> bool:
    """Whether the text after a workflow's name, without a colon, is not plainly a goal: a wrong start costs hours."""
    lex = lexicon()
    text = goal[:400].lower().replace("’", "'")
    words = _TALK_WORD.findall(text)
    if words[:1] == [","]:
        words = words[1:]
    while words and words[0] in _POLITE:
        words = words[1:]
    first = words[0] if words else "?"
    if first in lex.talk_leads or not (first[0].isalnum() or first in "`\"'@/.([<"):
        return True
    if first in lex.start_words or lex.is_request_verb(first):
        return False
    if goal.rstrip().endswith("?") or _has_finite_verb(words[1:7], lex.talk_finite):
        return True
    return not _names_work(text, lex)


def _names_work(text: str, lex: Lexicon) -> bool:
    """Whether a goal that opens with a noun says what to do, or names a file or an identifier."""
    sentence = re.split(r"[.!?]\s|\n", text, maxsplit=1)[0]
    if ":" in sentence[:60] or _CODE_SHAPE.search(sentence):
        return True
    return any(lex.is_request_verb(w) for w in _TALK_WORD.findall(sentence)[1:10])


def _has_finite_verb(words: list[str], finite: frozenset[str]) -> bool:
    for before, word in zip(["", *words], words, strict=False):
        if before in _RELATIVE:
            return False
        if word in finite:
            return True
    return False
