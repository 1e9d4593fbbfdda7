"""The gate: one decision for one message, from its text alone."""

from __future__ import annotations

import re
from typing import NamedTuple

from .decision import Decision, GateOutcome, Reasons, Route, Signal
from .gate_explain import NOWHERE, WHOLE, Vote, later_requests, masked_words, signals, token_spans
from .gate_features import Reading, read
from .gate_floor import floor_rule
from .gate_header import parse_trigger
from .gate_route import implicit_intake_gate, infer_lens, named_role
from .gate_score import (
    best_domain,
    coding_score,
    domain_scores,
    lead_of,
    route_features,
    scale_of,
    weights,
    whole_features,
    word_features,
)
from .gate_view import HEAD_CHARS, View, bounded, masks, view
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
_SHOWN, _VOTES_EACH = 8, 3
_SURE = 0.5
_NAMING = frozenset("SLXIFGWMUDQ")
_CLEAR, _NAMED_START, _NONE_START = 4, 2.0, 3.0


class _Read(NamedTuple):
    seen: View
    reading: Reading
    words: list[str]
    whole: list[str]
    scale: float
    score: float
    rule: str = ""
    lift: float = 0.0


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
        return Decision(outcome=GateOutcome.NONE, goal=text, signals=Reasons(lambda: _declined(text, got)))
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
    if score < _SURE:
        rule = "a code file is named in the request" if reading.code_file else floor_rule(reading)
        if rule:
            return _Read(seen, reading, words, whole, scale, _SURE, rule, _SURE - score)
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


def _declined(text: str, got: _Read | None) -> tuple[Signal, ...]:
    """Why a message is left alone: the phrase that opts out, else the votes."""
    if got is not None:
        return _signals(text, got)
    short = bounded(text)
    span = _bail(short)
    if span is None:
        return ()
    if len(short.lower()) != len(short):  # a letter that is longer in lower case moves all that follows
        return (Signal(WHOLE, NOWHERE, "bail phrase", "not coding"),)
    moved = len(text) - len(short) if span[0] > HEAD_CHARS else 0
    span = (span[0] + moved, span[1] + moved)
    return (Signal(text[slice(*span)], span, "bail phrase", "not coding"),)


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
        signals=Reasons(lambda: _signals(text, got)),
    )


def _signals(text: str, got: _Read, shown: int = _SHOWN) -> tuple[Signal, ...]:
    """The rule that decided, if one did, then the strongest votes; those that quote the message come first."""
    get, scale = weights().coding.get, got.scale
    votes = [Vote(v * scale, f) for f in got.words if (v := get(f))]
    votes += [Vote(v, f) for f in got.whole if (v := get(f))]
    votes.sort(key=_strength)
    spans = _spans(text, got)
    found = signals(votes[: _VOTES_EACH * shown], text, got.reading, spans)
    if got.rule:
        span = _rule_span(got.reading, spans)
        found.insert(
            0, Signal(text[slice(*span)] if span != NOWHERE else text[:80], span, got.rule, "coding", got.lift)
        )
    return tuple(found[:shown])


def _strength(vote: Vote) -> tuple[float, str]:
    return (-abs(vote.weight), vote.code)


def _spans(text: str, got: _Read) -> list[tuple[int, int]]:
    """Where the words stand; of a long message only its head is searched."""
    head = text[:HEAD_CHARS]
    return token_spans(head, got.reading, masks(head) if got.seen.kinds else ())


def _rule_span(reading: Reading, spans: list[tuple[int, int]]) -> tuple[int, int]:
    """From the first word of the request to the technical word that the rule found."""
    at = lead_of(reading)
    term = next((i for i, cls in enumerate(reading.classes) if i > at and cls in _NAMING), at)
    found = [s for s in (spans[at], spans[term]) if s != NOWHERE] if spans else []
    return (found[0][0], found[-1][1]) if found and found[0][0] <= found[-1][0] else NOWHERE


def explain(message: str, *, session_id: str = "", platform: str = "") -> dict[str, object]:
    """The decision with every vote, what was masked, and the runner-up role, as plain JSON values."""
    text = message.strip()
    decision = decide(message, session_id=session_id, platform=platform)
    out = decision.as_dict()
    if decision.outcome in (GateOutcome.SKIP, GateOutcome.EXPLICIT):
        return out
    got = _implicit(text)
    if got is None:
        return out
    scores = _role_scores(got, route_features(got.reading))
    ranked = sorted(((score, name) for name, score in scores.items()), reverse=True)
    every = Decision(outcome=decision.outcome, signals=_signals(text, got, 60))
    out["signals"] = every.as_dict()["signals"]
    out["codes"] = [s.code for s in every.signals]
    out["score"] = round(got.score, 3)
    out["roles"] = {name: round(score, 3) for score, name in ranked}
    out["runner_up"] = ranked[1][1]
    out["domains"] = domain_scores(got.reading)
    out["masked"] = [masked_words(kind) for kind in got.seen.kinds]
    out["set_apart"] = _set_apart(text, got)
    out["later"] = [text[slice(*span)] for span in later_requests(got.reading, _spans(text, got))]
    out["classes"] = "".join(got.reading.classes)
    return out


def _set_apart(text: str, got: _Read) -> list[dict[str, object]]:
    """Each part that was masked: its place, its first characters, and what it looks like."""
    found = masks(text[:HEAD_CHARS]) if got.seen.kinds else []
    return [
        {"span": list(span), "text": " ".join(text[slice(*span)].split())[:80], "why": masked_words(kind)}
        for span, kind in found
    ]
