"""The votes of the gate in words that people read, with the place in the message that each one quotes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from .decision import Signal
from .gate_features import Reading
from .gate_score import lead_of
from .gate_view import Mask

Span = tuple[int, int]
NOWHERE: Span = (0, 0)
WHOLE = "the whole message"
_KINDS_OF_WORD = {
    "S": "a technical word", "L": "a technology", "M": "a name that may be a technology", "D": "a technical verb",
    "W": "a word that may be technical", "U": "a part of a screen", "A": "a verb for work", "Q": "a fault",
    "R": "a word for a specialist's work", "X": "an error", "b": "what programs are about", "E": "daily life",
    "O": "a text to write", "H": "an assistant's errand", "K": "a career, an opinion or a concept", "C": "chat",
    "d": "an article", "m": "a person's own", "o": "ours", "p": "a person", "i": "a pointer", "q": "a question word",
    "v": "a helping verb", "r": "a preposition", "j": "a joining word", "n": "a negation", "y": "a polite word",
    "t": "a time", "a": "an adjective", "z": "a small word", "1": "a verb in -s", "2": "talk about work already done",
    "3": "a verb in -ing", "x": "a word in no list", "N": "a name", "Y": "an acronym", "k": "another script",
    "~": "another sign", "F": "a code file", "f": "a document", "/": "a path", "I": "looks like an identifier",
    "G": "a command's option", "g": "a command's short option", "V": "a version", "u": "a web address",
    "e": "an e-mail address", "#": "a number", "h": "an issue or a commit", "@": "a handle",
    "B": "text in backticks",
    "'": "text in quotation marks", "^": "the start", "$": "the end", "?": "a question mark",
}  # fmt: skip
_ACTS = {
    "told": "talk about work already done", "wish": "a wish", "says": "someone tells of something",
    "asks": "a question", "noun": "opens with a thing", "state": "a statement", "bare": "no words",
    "thenA": "an order after some words",
    "thenD": "an order after some words", "thenR": "a specialist's work, asked for after some words",
}  # fmt: skip
_LEADING = frozenset({"firstA", "firstD", "firstR", "firstH", "firstK", "firstQ", "aux"})
_STANDS_FOR = {"tick": "B", "said": "'"}
_HANGS_ON = {"asks": "?", "codefile": "F", "symptom": "Q"}
_RANK = {cls: at for at, cls in enumerate("XFIDSLQGMWUEOHKCARV2nNYqx1b3")}
_TAGS = {
    "symptom": "a fault is described", "mechanical": "a mechanical edit", "sensitive": "something sensitive",
    "asks": "ends with a question mark", "codefile": "a code file", "noask": "nothing but pasted text",
    "native": "another script than Latin",
}  # fmt: skip
_MASKED = {
    "fence": "a fenced block", "code": "lines of code", "trace": "a stack trace", "log": "log lines", "diff": "a diff",
    "shell": "a shell session", "table": "a table", "quote": "quoted lines", "tick": "text in backticks",
    "said": "text in quotation marks", "long": "the middle of a long text",
}  # fmt: skip
_QUESTIONS = frozenset({"why", "where", "how", "is", "are", "does", "do", "what", "which", "can", "who", "when"})
_NEXT = frozenset(".!?;,j:")


class Vote(NamedTuple):
    """One feature and its weight."""

    weight: float
    code: str


def masked_words(kind: str) -> str:
    """What a kind of pasted text is called."""
    return _MASKED.get(kind, kind)


def token_spans(text: str, reading: Reading, masks: Iterable[Mask]) -> list[Span]:
    """Where each word of the reading stands in the message; NOWHERE for one that was not found."""
    low = text.lower().replace("’", "'")
    if len(low) != len(text):
        return [NOWHERE] * len(reading.surfaces)
    apart: dict[str, list[Span]] = {}
    for (start, end), kind in masks:
        low = low[:start] + " " * (end - start) + low[end:]
        apart.setdefault(_STANDS_FOR.get(kind, ""), []).append((start, end))
    spans, at = [], 0
    for surface, cls in zip(reading.surfaces, reading.classes, strict=True):
        inline = next((s for s in apart.get(cls, ()) if s[0] >= at), NOWHERE)
        span = inline if inline != NOWHERE else _find(low, surface, at)
        at = span[1] or at
        spans.append(span)
    return spans


def _find(low: str, surface: str, at: int) -> Span:
    start = low.find(surface, at)
    while start > 0 and low[start - 1].isalnum() and surface[:1].isalnum() and low[start] < "\u2e80":
        start = low.find(surface, start + 1)
    if start >= 0:
        return (start, start + len(surface))
    parts = surface.split()
    found = re.compile(r"\s+".join(map(re.escape, parts))).search(low, at) if len(parts) > 1 else None
    return found.span() if found else NOWHERE


def signals(votes: Sequence[Vote], text: str, reading: Reading, spans: list[Span]) -> list[Signal]:
    """The votes as signals: those that quote the message first, each group strongest first.

    A vote for words beside each other counts for the most telling of them, so that each word is one signal.
    """
    groups: dict[int | str, list[Vote]] = {}
    for vote in votes:
        groups.setdefault(_about(vote.code, reading), []).append(vote)
    out = [_signal(about, group, text, reading, spans) for about, group in groups.items()]
    return sorted(out, key=lambda s: (s.span == NOWHERE, -abs(s.weight), s.span))


def _signal(about: int | str, group: list[Vote], text: str, reading: Reading, spans: list[Span]) -> Signal:
    weight = sum(v.weight for v in group)
    span = spans[about] if isinstance(about, int) else NOWHERE
    rule = _word(about, reading) if isinstance(about, int) else about
    quoted = text[slice(*span)] if span != NOWHERE else WHOLE
    codes = " | ".join(v.code for v in group)
    return Signal(quoted, span, rule, "coding" if weight > 0 else "not coding", weight, codes)


def _about(code: str, reading: Reading) -> int | str:
    """The word that a feature is about, by its number; else what it says of the whole message."""
    kind, value = code[0], code[1:]
    if not value or kind not in "=#^":
        return _telling(_places(code, reading), reading)
    if kind == "#":
        return _whole(value, reading)
    at = lead_of(reading)
    if kind == "^":
        return _telling(range(at, min(at + 1 + (reading.lemmas[at] != value), len(reading.lemmas))), reading)
    found = ("^" + "".join(reading.classes) + "$").find(value) - 1
    return _telling(range(max(found, 0), min(found + len(value), len(reading.lemmas))), reading)


def _places(words: str, reading: Reading) -> range:
    """Which words a feature of one word or two neighbours quotes."""
    lemmas = reading.lemmas
    if words in lemmas:
        at = lemmas.index(words)
        return range(at, at + 1)
    pairs = (i for i, pair in enumerate(pairwise(lemmas)) if " ".join(pair) == words)
    at = next(pairs, -1)
    return range(at, at + 2) if at >= 0 else range(0)


def _telling(places: range, reading: Reading) -> int | str:
    """The word that says most."""
    return min(places, key=lambda i: _RANK.get(reading.classes[i], len(_RANK)), default="a word")


def _word(index: int, reading: Reading) -> str:
    cls, lemma = reading.classes[index], reading.lemmas[index]
    first = lemma.split(" ")[0]
    if index == lead_of(reading):
        if first in _QUESTIONS:
            return f"a question that starts with {first}"
        if cls in "ADR" and reading.surfaces[index] == lemma:
            return "an order to the agent"
    return _KINDS_OF_WORD.get(cls, "punctuation")


def _whole(code: str, reading: Reading) -> int | str:
    """What a fact about the whole message is about: a word where it hangs on one."""
    name, _, value = code.partition(":")
    act = value.split("/")[0] if name == "act" else ""
    if act in _LEADING and reading.lemmas:
        return lead_of(reading)
    cls = value if name == "has" else "2" if act == "told" else _HANGS_ON.get(code, "")
    if cls and cls in reading.classes:
        return reading.classes.index(cls)
    if act:
        return _ACTS.get(act, "a question" if act.startswith("wh") else "what kind of message it is")
    if name in ("k", "pasted"):
        inline = [at for at, cls in enumerate(reading.classes) if cls in _STANDS_FOR.get(value, "B'")]
        if inline and (value in _STANDS_FOR or set(reading.kinds) <= set(_STANDS_FOR)):
            return inline[0]
        return masked_words(value) if name == "k" else "what was pasted"
    return _count(code)


def _count(code: str) -> str:
    bare = code.rstrip("+?")
    if bare in _TAGS:
        return _TAGS[bare]
    if bare.startswith(("tech", "lean")):
        return "how many words are technical"
    return "its length" if re.fullmatch(r"n\d+", code) else f"words about {bare}"


def later_requests(reading: Reading, spans: list[Span]) -> list[Span]:
    """The requests after the first: each from its verb to the end of its clause."""
    row, out, asked = reading.classes, [], False
    for at, cls in enumerate(row):
        starts = at == lead_of(reading) or row[at - 1] in _NEXT or (row[at - 1] == "y" and at > 1)
        if cls in "ADRH" and starts and reading.surfaces[at] == reading.lemmas[at] and spans[at] != NOWHERE:
            if asked:
                out.append((spans[at][0], _clause_end(at, row, spans)))
            asked = True
    return out


def _clause_end(at: int, row: list[str], spans: list[Span]) -> int:
    end = spans[at][1]
    for index in range(at + 1, len(row)):
        if row[index] in ".!?;" or (row[index] in ",j" and row[index + 1 : index + 2] in (["A"], ["D"], ["R"], ["j"])):
            break
        end = max(end, spans[index][1])
    return end
