"""The words of the gate: read once from lexicon.toml, compiled into plain dictionaries."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

_DATA = Path(__file__).resolve().parent.parent / "lexicon.toml"
_SLOTS = {
    "{it}": "(?:it|this|that|these|them|this one|that one|the rest|everything)",
    "{do}": "(?:do|handle|take|fix|take care of|deal with|answer|finish)",
}
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


def split_words(text: str) -> list[str]:
    """The entries of a list as the file writes them: commas or line ends between them."""
    return [w for part in text.split("\n") for w in (x.strip() for x in part.split(",")) if w]


def noun_forms(word: str) -> tuple[str, ...]:
    """A noun and its plural."""
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return (word, word + "es")
    if word.endswith("y") and word[-2:-1] not in _VOWELS:
        return (word, word[:-1] + "ies")
    return (word, word + "s")


def verb_forms(word: str) -> tuple[str, ...]:
    """A verb and its regular forms, of a phrase the first word's."""
    verb, _, rest = word.partition(" ")
    rest = f" {rest}" if rest else ""
    stem = verb
    if verb.endswith("e"):
        stem = verb[:-1]
    elif len(verb) > 2 and verb[-1] not in "aeiouwxyhs" and verb[-2] in _VOWELS and verb[-3] not in _VOWELS:
        short = len(verb) <= 4 or verb[-3:] in ("bug", "mit", "fer", "nup")
        stem = verb + verb[-1] if short else verb
    past = stem + "ed"
    if verb.endswith("y") and verb[-2:-1] not in _VOWELS:
        past = verb[:-1] + "ied"
    third = noun_forms(verb)[1]
    return (word, third + rest, past + rest, stem + "ing" + rest)


_TENSES = ("", "1", "2", "3")
_FORMS = {"noun": noun_forms, "verb": verb_forms}


def _add_group(group: dict[str, object], words: dict[str, Word], phrases: dict[str, Word]) -> None:
    cls, tags = str(group["class"]), group.get("tags", [])
    assert isinstance(tags, list)
    make = _FORMS.get(str(group.get("forms", "")))
    verbal = make is verb_forms and cls in "ADRH"
    for lemma in split_words(str(group["words"])):
        entry = Word(lemma, cls, tuple(tags))
        for at, form in enumerate(make(lemma) if make else (lemma,)):
            target = phrases if " " in form else words
            if at == 0:
                target[form] = entry
            elif form not in target:
                target[form] = Word(lemma, _TENSES[at], ()) if verbal else entry


def heads_of(phrases: dict[str, Word]) -> dict[str, tuple[int, ...]]:
    """The lengths in words, longest first, of the phrases that start with each word."""
    lengths: dict[str, set[int]] = {}
    for phrase in phrases:
        parts = phrase.split(" ")
        lengths.setdefault(parts[0], set()).add(len(parts))
    return {head: tuple(sorted(found, reverse=True)) for head, found in lengths.items()}


def _by_first_letter(native: dict[str, Word]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for word in sorted(native, key=len, reverse=True):
        found.setdefault(word[0], []).append(word)
    return {letter: tuple(words) for letter, words in found.items()}


def _bail_pattern(phrases: list[str]) -> re.Pattern[str]:
    parts = [
        re.sub(r"\{\w+\}", lambda m: _SLOTS[m[0]], re.escape(p).replace(r"\{", "{").replace(r"\}", "}"))
        for p in phrases
    ]
    body = "|".join(p.replace(r"\ ", r"\s{1,3}").replace(" ", r"\s{1,3}") for p in parts)
    return re.compile(rf"(?<!\w)(?:{body})(?!\w)")


_in_use: list[Lexicon] = []


def lexicon() -> Lexicon:
    """The lexicon in use: this package's own, unless `use_lexicon` put another in its place."""
    return _in_use[0] if _in_use else base_lexicon()


def use_lexicon(lex: Lexicon | None) -> None:
    """Every decision of this process reads this lexicon from now on; None goes back to the package's own."""
    _in_use[:] = [] if lex is None else [lex]


@cache
def base_lexicon() -> Lexicon:
    """The package's own lexicon, compiled at the first call."""
    with _DATA.open("rb") as file:
        data = tomllib.load(file)
    words: dict[str, Word] = {}
    phrases: dict[str, Word] = {}
    native: dict[str, Word] = {}
    for group in data["groups"].values():
        if group.get("script"):
            _add_group(group, native, native)
        else:
            _add_group(group, words, phrases)
    talk, source = data["workflow_talk"], data["files"]["source"]
    return Lexicon(
        words=words | native,
        phrases=phrases,
        heads=heads_of(phrases),
        native=_by_first_letter(native),
        matrix_nouns=frozenset(split_words(data["trigger"]["nouns"])),
        bail=_bail_pattern(split_words(data["bail"]["phrases"])),
        preambles=tuple(data["preambles"]["starts"]),
        tip_invoke=frozenset(split_words(data["tip"]["invoke"])),
        tip_leave=frozenset(split_words(data["tip"]["leave"])),
        talk_leads=frozenset(split_words(talk["leads"])),
        talk_finite=frozenset(split_words(talk["finite"])),
        start_words=frozenset(split_words(talk["starts"])),
        extensions={ext: tuple(g.get("tags", ())) for g in source for ext in split_words(g["extensions"])},
        documents=frozenset(split_words(data["files"]["documents"])),
        ordinary=frozenset(split_words(data["files"]["ordinary"])),
        folders=frozenset(split_words(data["files"]["folders"])),
        hosts=frozenset(split_words(data["files"]["hosts"])),
    )
