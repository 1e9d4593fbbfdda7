"""A team's own words for the gate: read from the text of a small TOML file, checked, and laid over the lexicon."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .errors import InputError
from .gate_features import tokens_of
from .lexicon import Lexicon, Word, base_lexicon, heads_of, noun_forms, use_lexicon
from .names import Domain

MOST_CHARS = 64_000
MOST_WORDS = 500
LONGEST = 80
_KEYS = ("terms", "ordinary", "two_sense", "domains")
_CLASSES = {"terms": "S", "ordinary": "E", "two_sense": "W"}
# Words that hold sentences together and chat: as a term, one of them would make half of all talk coding.
_SMALL = frozenset("dmopiqvrjnytazC")


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamWords:
    """What a team adds, as lower-case phrases with one space between words.

    `terms` are unmistakably technical; `ordinary` phrases never count as technical, nor do the words inside
    them; `two_sense` words are technical where their neighbours say so; `domains` maps a technology to its domain.
    """

    terms: tuple[str, ...] = ()
    ordinary: tuple[str, ...] = ()
    two_sense: tuple[str, ...] = ()
    domains: dict[str, Domain] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.terms) + len(self.ordinary) + len(self.two_sense) + len(self.domains)


def parse_words(text: str) -> TeamWords:
    """The words that a file's text lists; InputError says what is wrong with it."""
    import tomllib  # noqa: PLC0415 - most homes have no such file

    if len(text) > MOST_CHARS:
        raise InputError(f"at most {MOST_CHARS:,} characters", f"{len(text):,}", "keep the words that matter")
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError("TOML", str(error) or type(error).__name__, 'write lists such as terms = ["orbit"]') from error
    unknown = [key for key in data if key not in _KEYS]
    if unknown:
        raise InputError(f"the keys {', '.join(_KEYS)}", repr(unknown[0]), "rename it or take it out")
    lists = {key: _phrases(key, data.get(key, [])) for key in _CLASSES}
    words = TeamWords(**lists, domains=_domains(data.get("domains", {})))
    _check_doubles(words)
    return words


def use_words(words: TeamWords | None) -> None:
    """From now on this process routes with these words as well; None takes them away."""
    use_lexicon(with_words(base_lexicon(), words) if words else None)


def with_words(lex: Lexicon, team: TeamWords) -> Lexicon:
    """A lexicon with a team's words laid over its own."""
    words, phrases, native = dict(lex.words), dict(lex.phrases), dict(lex.native)
    entries = [(text, Word(text, cls, ())) for key, cls in _CLASSES.items() for text in getattr(team, key)]
    entries += [(text, Word(text, "L", (domain.value,))) for text, domain in team.domains.items()]
    for text, entry in entries:
        for form in noun_forms(text) if text.isascii() else (text,):
            (phrases if " " in form else words)[form] = entry
        if text[0] >= "\u2e80" and " " not in text:
            longer = sorted({*native.get(text[0], ()), text}, key=lambda w: (-len(w), w))
            native[text[0]] = tuple(longer)
    return replace(lex, words=words, phrases=phrases, heads=heads_of(phrases), native=native)


def _phrases(where: str, found: object) -> tuple[str, ...]:
    if not isinstance(found, list):
        raise InputError(
            f"a list of words in {where}", type(found).__name__, f'write {where} = ["orbit", "warp drive"]'
        )
    if len(found) > MOST_WORDS:
        raise InputError(f"at most {MOST_WORDS} entries in {where}", str(len(found)), "keep the words that matter")
    return tuple(_phrase(where, entry) for entry in found)


def _phrase(where: str, entry: object) -> str:
    """An entry as the gate reads it: lower case, one space between words."""
    if not isinstance(entry, str):
        raise InputError(f"text in {where}", repr(entry)[:LONGEST], "put it in quotation marks")
    text = " ".join(tokens_of(entry.lower()))
    if not 2 <= len(text) <= LONGEST or not any(c.isalpha() for c in text):
        raise InputError(
            f"2 to {LONGEST} characters with a letter in {where}", repr(entry)[:LONGEST], "change that entry"
        )
    known = base_lexicon().words.get(text)
    if where != "ordinary" and known is not None and known.cls in _SMALL:
        raise InputError(
            f"words of your own in {where}", f"{entry!r}, a word of all talk", "take it out or say more of it"
        )
    return text


def _domains(found: object) -> dict[str, Domain]:
    if not isinstance(found, dict):
        raise InputError(
            "a table in domains", type(found).__name__, 'write [domains] and below it frontend = ["orbit ui"]'
        )
    out: dict[str, Domain] = {}
    for name, entries in found.items():
        if name not in [d.value for d in Domain]:
            raise InputError(f"domains among {', '.join(Domain)}", repr(name), "rename it or take it out")
        out |= dict.fromkeys(_phrases(f"domains.{name}", entries), Domain(name))
    return out


def _check_doubles(words: TeamWords) -> None:
    seen: set[str] = set()
    for text in (*words.terms, *words.ordinary, *words.two_sense, *words.domains):
        if text in seen:
            raise InputError("each entry once", f"{text!r} twice", "take one out")
        seen.add(text)
