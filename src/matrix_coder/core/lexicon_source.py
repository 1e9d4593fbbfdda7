"""The source of the lexicon, lexicon.toml, compiled; and the compact file that the gate reads instead.

python -m matrix_coder.core.lexicon_source      writes lexicon.json anew from lexicon.toml
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from .lexicon import COMPACT, SETS, Lexicon, Word, heads_of, noun_forms

SOURCE = Path(__file__).resolve().parent.parent / "lexicon.toml"
_SLOTS = {
    "{it}": "(?:it|this|that|these|them|this one|that one|the rest|everything)",
    "{do}": "(?:do|handle|take|fix|take care of|deal with|answer|finish)",
}
_VOWELS = frozenset("aeiou")


def split_words(text: str) -> list[str]:
    """The entries of a list as the file writes them: commas or line ends between them."""
    return [w for part in text.split("\n") for w in (x.strip() for x in part.split(",")) if w]


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


def compile_source() -> Lexicon:
    """The lexicon as its source says it."""
    with SOURCE.open("rb") as file:
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


def pack(lex: Lexicon) -> dict[str, Any]:
    """A lexicon as plain JSON values, from which `lexicon.load` makes the same one."""
    entries = [*lex.words.values(), *lex.phrases.values()]
    tags = sorted({e.tags for e in entries} | set(lex.extensions.values()))
    number = {names: at for at, names in enumerate(tags)}
    return {
        "tags": tags,
        "words": _columns(lex.words, number),
        "phrases": _columns(lex.phrases, number),
        "heads": dict(sorted(lex.heads.items())),
        "native": dict(sorted(lex.native.items())),
        "bail": lex.bail.pattern,
        "preambles": lex.preambles,
        "extensions": {ext: number[names] for ext, names in sorted(lex.extensions.items())},
        **{name: sorted(getattr(lex, name)) for name in SETS},
    }


def _columns(words: dict[str, Word], number: dict[tuple[str, ...], int]) -> dict[str, Any]:
    rows = sorted(words.items())
    return {
        "forms": "\n".join(form for form, _ in rows),
        "lemmas": "\n".join(word.lemma for _, word in rows),
        "classes": "".join(word.cls for _, word in rows),
        "tags": [number[word.tags] for _, word in rows],
    }


def text_of(lex: Lexicon) -> str:
    """The compact file of a lexicon: one key a line."""
    rows = (f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in pack(lex).items())
    return "{\n" + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    COMPACT.write_text(text_of(compile_source()), encoding="utf-8")
