"""A message as the scorer reads it: words, their classes in a row, and what they vote for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .gate_shapes import dotted_parts, is_alternative, letters_class, read_path, shape_class
from .gate_view import View
from .lexicon import Lexicon, Word
from .names import Role

MAX_TOKENS = 160
_PASTE_TOKENS = 60
_TOKEN = re.compile(r"[\w'’@#$~/\\.:+*%&-]+(?:\(\))?|[^\w\s]")
_TOKEN_NATIVE = re.compile(
    r"[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]|[\uac00-\ud7af]+|[\u0900-\u0dff]+|[\u0600-\u06ff]+"
    r"|[a-zA-Z0-9_\u00c0-\u052f\u1e00-\u1eff'’@#$~/\\.:+*%&-]+(?:\(\))?|[^\w\s]|\w"
)
_ROLE_TAGS = frozenset(r.value for r in Role)
_PATH_TAGS = frozenset({"security", "sensitive", "mechanical"})
_PUNCT_CLASS = {
    ".": ".", "?": "?", "!": "!", ",": ",", ":": ":", ";": ",", "`": "B", '"': "'", "(": "(", ")": ")",
}  # fmt: skip
_STRIP = ".:'’*_-&/\\%+"
_SMALL_WORDS = frozenset("dpijvqrCEtmo")


@dataclass(slots=True)
class Reading:
    """The words of one message in a row.

    `lemmas`, `surfaces` and `classes` run in parallel; `tags` counts what the words vote for;
    `roles` lists the roles they name, in order; `pasted` and `paste_tags` tell of pasted text.
    """

    lemmas: list[str] = field(default_factory=list)
    surfaces: list[str] = field(default_factory=list)
    classes: list[str] = field(default_factory=list)
    tags: dict[str, int] = field(default_factory=dict)
    roles: list[str] = field(default_factory=list)
    pasted: dict[str, int] = field(default_factory=dict)
    paste_tags: dict[str, int] = field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    words: int = 0
    code_file: bool = False
    latin: bool = True

    def put(self, lemma: str, surface: str, cls: str) -> None:
        """Add one word to the row."""
        self.lemmas.append(lemma)
        self.surfaces.append(surface)
        self.classes.append(cls)

    def add(self, entry: Word, surface: str) -> None:
        """Add one known word and its votes."""
        self.put(entry[0], surface, entry[1])
        for tag in entry[2]:
            self.vote(tag)

    def vote(self, tag: str, count: int = 1) -> None:
        """Count a vote."""
        self.tags[tag] = self.tags.get(tag, 0) + count
        if tag in _ROLE_TAGS:
            self.roles.append(tag)


def read(seen: View, lex: Lexicon) -> Reading:
    """The reading of a view."""
    out = Reading(kinds=seen.kinds)
    _read_text(seen.ask, lex, out, MAX_TOKENS)
    if seen.paste:
        pasted = Reading()
        _read_text(seen.paste, lex, pasted, _PASTE_TOKENS)
        for cls in pasted.classes:
            out.pasted[cls] = out.pasted.get(cls, 0) + 1
        out.paste_tags = pasted.tags
        out.code_file = out.code_file or ("tick" in seen.kinds and pasted.code_file)
    return out


def tokens_of(text: str) -> list[str]:
    """The tokens of a text, as the gate looks them up."""
    text = text.replace("’", "'")
    return _TOKEN.findall(text) if text.isascii() or text[:1] >= "\u2e80" else _TOKEN_NATIVE.findall(text)


def _read_text(text: str, lex: Lexicon, out: Reading, limit: int) -> None:
    if "’" in text:
        text = text.replace("’", "'")
    out.latin = text.isascii()
    tokens = _TOKEN.findall(text) if out.latin else _native_tokens(text, lex)
    if len(tokens) > limit:
        tokens = tokens[: limit * 2 // 3] + tokens[-limit // 3 :]
    lows = [t.lower() for t in tokens]
    words, heads = lex.words, lex.heads
    at, count = 0, len(tokens)
    while at < count:
        low = lows[at]
        step, surface, entry = 1, low, None
        lengths = heads.get(low)
        if lengths is not None:
            step, surface, entry = _phrase(lows, at, lengths, lex)
        if entry is None:
            entry = words.get(low)
        if entry is not None:
            out.add(entry, surface)
            out.words += step
        else:
            _read_unknown(tokens[at], low, lex, out)
        at += step


def _phrase(lows: list[str], at: int, lengths: tuple[int, ...], lex: Lexicon) -> tuple[int, str, Word | None]:
    """The longest phrase that starts here: how many tokens it takes, its text, its entry."""
    get = lex.phrases.get
    for length in lengths:
        text = " ".join(lows[at : at + length])
        entry = get(text) or get(text.rstrip(".:'"))
        if entry is not None:
            return length, text, entry
    return 1, lows[at], None


def _native_tokens(text: str, lex: Lexicon) -> list[str]:
    """Tokens of text that is not plain ASCII: words of other scripts are cut out of running text first."""
    tokens: list[str] = []
    low, first = text.lower(), lex.native
    if len(low) != len(text):
        text = low
    at = done = 0
    while at < len(low):
        word = _native_word(low, at, first.get(low[at], ()))
        if word:
            tokens += _TOKEN_NATIVE.findall(text, done, at)
            tokens.append(word)
            at = done = at + len(word)
        else:
            at += 1
    return tokens + _TOKEN_NATIVE.findall(text, done)


def _native_word(low: str, at: int, words: tuple[str, ...]) -> str:
    """The listed word that starts here; scripts with spaces want a word's start."""
    if not words or (at and low[at] < "\u2e80" and low[at - 1].isalpha()):
        return ""
    return next((w for w in words if low.startswith(w, at)), "")


def _read_unknown(token: str, low: str, lex: Lexicon, out: Reading) -> None:
    if len(token) == 1 and not token.isalnum():
        out.put(token, token, _PUNCT_CLASS.get(token, "~"))
        return
    out.words += 1
    core = low.strip(_STRIP)
    bare = token.rstrip(".:'")
    entry = lex.words.get(core) if core != low else None
    if entry is None and "-" in core:
        entry = lex.phrases.get(core.replace("-", " "))
    if entry is not None and not ("/" in low and read_path(bare, lex)):
        out.add(entry, core)
    elif low[0] > "\u05ff":
        out.put(low, low, "k")
    else:
        cls = _class_of(bare, low, lex, out)
        if cls:
            out.put(core or low, core or low, cls)
    if low[-1] in ".:":
        out.put(low[-1], low[-1], low[-1])


def _class_of(token: str, low: str, lex: Lexicon, out: Reading) -> str:
    """The class letter of a token that is in no list; an empty text when its parts were read instead."""
    if low.isalpha() and (token.islower() or out.classes[-1:] in ([], ["."])):
        return "x"
    found = shape_class(token)
    if found:
        return found
    path = read_path(token, lex)
    if path is not None:
        _read_path_votes(token, path.tags, lex, out)
        out.code_file = out.code_file or path.source
        return path.cls
    if is_alternative(token):
        return _read_alternatives(low, lex, out)
    parts = dotted_parts(token)
    if parts is not None:
        return "u" if parts[-1] in lex.hosts else _read_dotted(token, parts, lex, out)
    return letters_class(token)


def _read_path_votes(token: str, tags: tuple[str, ...], lex: Lexicon, out: Reading) -> None:
    """The names inside a path vote for a lens and for sensitivity, its extension for a domain, none for a role."""
    for tag in tags:
        out.vote(tag, 2)
    for part in re.split(r"[/\\._-]", token.lower())[:8]:
        entry = lex.words.get(part)
        for tag in entry.tags if entry is not None else ():
            if tag in _PATH_TAGS:
                out.vote(tag)


def _read_alternatives(low: str, lex: Lexicon, out: Reading) -> str:
    """`REST/GraphQL`, `and/or`: the words on both sides."""
    parts = [p for p in low.split("/")[:4] if p]
    known = [(lex.words.get(p), p) for p in parts]
    for entry, part in known:
        if entry is not None:
            out.add(entry, part)
    return "" if any(entry for entry, _ in known) else "~"


def _read_dotted(token: str, parts: list[str], lex: Lexicon, out: Reading) -> str:
    """`df.loc` is an identifier; `done.thanks` is two words with a lost space."""
    entries = [lex.words.get(p) for p in parts]
    small = [e for e in entries if e is not None and e.cls in _SMALL_WORDS]
    if len(parts) == 2 and len(small) == 2:
        for entry, part in zip(small, parts, strict=True):
            out.add(entry, part)
        return ""
    return "~" if len(token) <= 4 else "I"
