"""The gate: one decision for one message, from its text alone."""

from __future__ import annotations

import re
from typing import NamedTuple

from .decision import Decision, GateOutcome, Route, Signal
from .gate_features import Reading, read
from .gate_floor import floor_rule
from .gate_header import parse_trigger
from .gate_route import implicit_intake_gate, infer_lens, named_role
from .gate_score import (
    best_domain,
    coding_score,
    domain_scores,
    route_features,
    scale_of,
    weights,
    whole_features,
    word_features,
)
from .gate_view import View, bounded, view
from .lexicon import lexicon
from .names import Domain, Role

__all__ = [
    "answers_tip",
    "decide",
    "explain",
    "has_coding_intent",
    "implicit_intake_gate",
    "is_host_text",
    "parse_trigger",
    "score_of",
]

_NO_PERSON = frozenset({"subagent", "cron", "curator"})
_NEGATED = re.compile(r"(?:n't|\bnot|\bnever|\bno) (?:\w+ ){0,2}\Z")
_ADDRESS = re.compile(r"(?:(?:hey|hi|hello|ok|okay|dear) )?hermes\s*[,:!-]\s*", re.IGNORECASE)
_SHOWN = 8
_SURE = 0.5
_STRONG = 0.2
_CLEAR, _NAMED_START, _NONE_START = 4, 2.0, 3.0


class _Read(NamedTuple):
    seen: View
    reading: Reading
    words: list[str]
    whole: list[str]
    scale: float
    score: float


def is_host_text(text: str, *, session_id: str = "", platform: str = "") -> bool:
    """Whether a turn is not a person's, as far as its text, session id and platform can tell."""
    return session_id.startswith("cron_") or platform in _NO_PERSON or text.startswith(lexicon().preambles)


def decide(message: str, *, session_id: str = "", platform: str = "") -> Decision:
    """The decision for one message. Pure: the same arguments give the same decision."""
    text = message.strip()
    if is_host_text(text, session_id=session_id, platform=platform):
        return Decision(outcome=GateOutcome.SKIP)
    explicit = parse_trigger(text)
    if explicit is not None:
        return explicit
    got = _implicit(text)
    if got is None or got.score <= 0:
        return Decision(outcome=GateOutcome.NONE, goal=text)
    return _route(text, got)


def has_coding_intent(message: str) -> tuple[Signal, ...] | None:
    """The signals that say a message asks for work on code, strongest first, or None when it does not."""
    text = message.strip()
    got = _implicit(text)
    if got is None or got.score <= 0:
        return None
    return _signals(text, got)


def score_of(message: str) -> float:
    """The score of a message on the implicit path: above zero it asks for work on code."""
    text = message.strip()
    if is_host_text(text) or parse_trigger(text) is not None:
        return float("-inf")
    got = _implicit(text)
    return got.score if got is not None else float("-inf")


def answers_tip(message: str) -> str | None:
    """What a message answers to the tip of the turn before: `invoke`, `leave`, or None."""
    if len(message) > 80:
        return None
    words = " ".join(re.sub(r"[^\w\s']", " ", message.lower().replace("’", "'")).split())
    plain = re.sub(
        r"\A(?:(?:yes|yeah|yep|ok|okay|sure|no|nah|nope|please|hermes|then|just|actually|well) )+", "", words
    )
    plain = re.sub(r"(?: (?:please|then|thanks|thank you|instead|now|ok))+\Z", "", plain)
    lex = lexicon()
    for text in (words, plain):
        if text in lex.tip_invoke:
            return "invoke"
        if text in lex.tip_leave:
            return "leave"
    return None


def _bail(text: str) -> tuple[int, int] | None:
    """Where a bail phrase stands that is not negated."""
    low = text.lower().replace("’", "'")
    if "direct" not in low and "hermes" not in low and "matrix" not in low:
        return None
    for found in lexicon().bail.finditer(low):
        if not _NEGATED.search(low[max(0, found.start() - 40) : found.start()]):
            return found.span()
    return None


def _implicit(text: str) -> _Read | None:
    """The scored reading of a message; None when it is empty or opts out."""
    short = bounded(text)
    if not short or _bail(short) is not None:
        return None
    address = _ADDRESS.match(short)
    seen = view(short[address.end() :] if address else short)
    reading = read(seen, lexicon())
    words, whole, scale = word_features(reading), whole_features(reading), scale_of(reading)
    score = coding_score(words, whole, scale, weights())
    if score < _SURE and (reading.code_file or floor_rule(reading)):
        score = _SURE
    return _Read(seen, reading, words, whole, scale, score)


def _role_scores(got: _Read, more: list[str]) -> dict[str, float]:
    return weights().roles.scores(got.words, got.whole + more, got.scale)


def _role(got: _Read, more: list[str]) -> Role:
    named = named_role(got.reading)
    if named is not None:
        return named
    scores = _role_scores(got, more)
    return Role(max(scores, key=lambda name: scores[name]))


def _domain(got: _Read, more: list[str]) -> Domain | None:
    """The stack that the words name clearly; else the votes decide, against a head start for what is named or none."""
    named = best_domain(got.reading)
    if named and domain_scores(got.reading)[named] >= _CLEAR:
        return Domain(named)
    scores = weights().domains.scores(got.words, got.whole + more, got.scale)
    scores[named or "none"] += _NAMED_START if named else _NONE_START
    name = max(scores, key=lambda name: scores[name])
    return None if name == "none" else Domain(name)


def _route(text: str, got: _Read) -> Decision:
    more = route_features(got.reading)
    role = _role(got, more)
    direct = implicit_intake_gate(role, got.reading)
    lens = infer_lens(got.reading) if role is Role.REVIEW else None
    route = Route(role=role, lens=lens, domain=_domain(got, more))
    return Decision(
        outcome=GateOutcome.DIRECT if direct else GateOutcome.MATRIX,
        role=route.role.value,
        lens=route.lens.value if route.lens else None,
        domain=route.domain.value if route.domain else None,
        goal=text,
        route=route.name,
        signals=_signals(text, got),
    )


def _signals(text: str, got: _Read, shown: int = _SHOWN) -> tuple[Signal, ...]:
    """The strongest votes, each with the place in the message where its first word stands."""
    get, floor = weights().coding.get, _STRONG if shown == _SHOWN else 0.0
    votes = [(v * got.scale, f) for f in got.words if abs(v := get(f, 0.0)) > floor]
    votes += [(v, f) for f in got.whole if abs(v := get(f, 0.0)) > floor]
    if not votes and floor:
        return _signals(text, got, _SHOWN + 1)
    votes.sort(key=lambda v: (-abs(v[0]), v[1]))
    return tuple(_signal(text, got.reading, feature, weight) for weight, feature in votes[:shown])


def _signal(text: str, reading: Reading, feature: str, weight: float) -> Signal:
    vote = "coding" if weight > 0 else "not coding"
    if feature[0] in "=#":
        rule = "word classes" if feature[0] == "=" else "whole message"
        return Signal(feature, (0, 0), rule, vote, weight)
    rule = "word" if " " not in feature else "neighbours"
    first = feature.lstrip("^").split(" ")[0]
    surface = next((s for s, lem in zip(reading.surfaces, reading.lemmas, strict=True) if lem == first), first)
    low = text.lower()
    start = (low if len(low) == len(text) else text).find(surface)
    span = (start, start + len(surface)) if start >= 0 else (0, 0)
    return Signal(feature, span, "first word" if feature[0] == "^" else rule, vote, weight)


def explain(message: str, *, session_id: str = "", platform: str = "") -> dict[str, object]:
    """The decision with every vote, what was masked, and the runner-up role, as plain JSON values."""
    text = message.strip()
    decision = decide(message, session_id=session_id, platform=platform)
    out = decision.as_dict()
    if decision.outcome in (GateOutcome.SKIP, GateOutcome.EXPLICIT):
        return out
    span = _bail(bounded(text)) if text else None
    if span is not None:
        out["signals"] = [
            {"text": text[slice(*span)], "span": list(span), "rule": "bail phrase", "vote": "not coding", "weight": 0.0}
        ]
        return out
    got = _implicit(text)
    if got is None:
        return out
    scores = _role_scores(got, route_features(got.reading))
    ranked = sorted(((score, name) for name, score in scores.items()), reverse=True)
    every = Decision(outcome=decision.outcome, signals=_signals(text, got, 60)).as_dict()
    out["signals"] = every["signals"]
    out["score"] = round(got.score, 3)
    out["roles"] = {name: round(score, 3) for score, name in ranked}
    out["runner_up"] = ranked[1][1]
    out["domains"] = domain_scores(got.reading)
    out["masked"] = list(got.seen.kinds)
    out["classes"] = "".join(got.reading.classes)
    return out
