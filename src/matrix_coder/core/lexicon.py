"""The words of the gate: one compact file, made from lexicon.toml, read into plain dictionaries."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

COMPACT = Path(__file__).resolve().parent.parent / "lexicon.json"
SETS = (
    "matrix_nouns", "tip_invoke", "tip_leave", "talk_leads", "talk_finite", "start_words", "documents", "ordinary",
    "folders", "hosts",
)  # fmt: skip
_VOWELS = frozenset("aeiou")


class Word(NamedTuple):
    """One entry: the word as listed, its class letter, its tags."""

    lemma: str
    cls: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """Everything the gate knows about words.

    `words` maps every form of a single word to its entry; `phrases` maps a phrase, words joined by one
    space; `heads` maps a phrase's first word to the lengths its phrases have, longest first; `native` maps
    a first letter to the words of other scripts that start with it, longest first: those are found inside
    running text and looked up in `words`. `extensions` maps the extensions of source files to domain tags.
    """

    words: dict[str, Word]
    phrases: dict[str, Word]
    heads: dict[str, tuple[int, ...]]
    native: dict[str, tuple[str, ...]]
    matrix_nouns: frozenset[str]
    bail: re.Pattern[str]
    preambles: tuple[str, ...]
    tip_invoke: frozenset[str]
    tip_leave: frozenset[str]
    talk_leads: frozenset[str]
    talk_finite: frozenset[str]
    start_words: frozenset[str]
    extensions: dict[str, tuple[str, ...]]
    documents: frozenset[str]
    ordinary: frozenset[str]
    folders: frozenset[str]
    hosts: frozenset[str]

    def is_request_verb(self, word: str) -> bool:
        """Whether a word, as it stands, is the base form of a verb people use to ask for work."""
        entry = self.words.get(word)
        return entry is not None and entry.cls in "ADR" and entry.lemma == word


def noun_forms(word: str) -> tuple[str, ...]:
    """A noun and its plural."""
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return (word, word + "es")
    if word.endswith("y") and word[-2:-1] not in _VOWELS:
        return (word, word[:-1] + "ies")
    return (word, word + "s")


def heads_of(phrases: dict[str, Word]) -> dict[str, tuple[int, ...]]:
    """The lengths in words, longest first, of the phrases that start with each word."""
    lengths: dict[str, set[int]] = {}
    for phrase in phrases:
        parts = phrase.split(" ")
        lengths.setdefault(parts[0], set()).add(len(parts))
    return {head: tuple(sorted(found, reverse=True)) for head, found in lengths.items()}


_WORD_OF = partial(tuple.__new__, Word)
_in_use: list[Lexicon] = []


def lexicon() -> Lexicon:
    """The lexicon in use: this package's own, unless `use_lexicon` put another in its place."""
    return _in_use[0] if _in_use else base_lexicon()


def use_lexicon(lex: Lexicon | None) -> None:
    """Every decision of this process reads this lexicon from now on; None goes back to the package's own."""
    _in_use[:] = [] if lex is None else [lex]


@cache
def base_lexicon() -> Lexicon:
    """The package's own lexicon, read at the first call."""
    return load(json.loads(COMPACT.read_bytes()))


def load(data: dict[str, Any]) -> Lexicon:
    """The lexicon of a compact file; `lexicon_source.pack` makes one."""
    tags = [tuple(names) for names in data["tags"]]
    sets = {name: frozenset(data[name]) for name in SETS}
    return Lexicon(
        words=_entries(data["words"], tags),
        phrases=_entries(data["phrases"], tags),
        heads={head: tuple(lengths) for head, lengths in data["heads"].items()},
        native={letter: tuple(words) for letter, words in data["native"].items()},
        bail=re.compile(data["bail"]),
        preambles=tuple(data["preambles"]),
        extensions={ext: tags[at] for ext, at in data["extensions"].items()},
        **sets,
    )


def _entries(columns: dict[str, Any], tags: list[tuple[str, ...]]) -> dict[str, Word]:
    """Four columns, each in the order of the forms: building them in one sweep halves the time of a cold start."""
    rows = zip(columns["lemmas"].split("\n"), columns["classes"], map(tags.__getitem__, columns["tags"]), strict=True)
    words: Iterator[Word] = map(_WORD_OF, rows)
    return dict(zip(columns["forms"].split("\n"), words, strict=True))
