"""What a token is by its shape: a path, an identifier, a flag, a version, or none of them."""

from __future__ import annotations

import re
from typing import NamedTuple

from .lexicon import Lexicon

_SHAPE = re.compile(
    r"(?P<url>(?:https?|ftp|ssh)://|www\.)"
    r"|(?P<email>[\w.+-]{1,64}@[\w-]{1,63}\.[\w.]{2,20}$)"
    r"|(?P<call>[A-Za-z_$][\w.:$]{0,80}\(\)$)"
    r"|(?P<flag>--[A-Za-z][\w-]{0,60}(?:=|$))"
    r"|(?P<short>-[A-Za-z]{1,3}$)"
    r"|(?P<error>[A-Za-z_.]{0,60}[a-z](?:Error|Exception|Warning|Fault)s?$)"
    r"|(?P<clock>\d{1,2}:\d\d(?::\d\d)?(?:am|pm)?$|\d{1,2}(?:am|pm)$)"
    r"|(?P<date>\d{1,4}[/-]\d{1,2}[/-]\d{1,4}$)"
    r"|(?P<version>v?\d{1,4}(?:\.\d{1,6}){2,3}(?:-[\w.]{1,20})?$|v\d{1,4}(?:\.\d{1,4})?$)"
    r"|(?P<number>[+-]?[$€£#]?\d[\d.,]{0,15}"
    r"(?:%|st|nd|rd|th|x|k|m|kg|g|km|cm|mm|mg|ml|lb|lbs|gb|mb|kb|ms|s|h|min)?$)"
    r"|(?P<issue>#\d{1,7}$)"
    r"|(?P<hash>(?=[0-9a-f]{0,40}\d)(?=[0-9]{0,40}[a-f])[0-9a-f]{7,40}$)"
    r"|(?P<scope>[A-Za-z_]\w{0,60}::\w{1,60})"
    r"|(?P<const>[A-Z][A-Z0-9]{0,40}_[A-Z0-9_]{1,60}$)"
    r"|(?P<snake>_{0,2}[A-Za-z][A-Za-z0-9]{0,40}_\w{1,60}$)"
    r"|(?P<camel>[a-z]{1,30}[0-9]{0,4}[A-Z]\w{0,60}$|(?:[A-Z][a-z0-9]{1,30}){2,8}$)"
    r"|(?P<at>@[\w.-]{1,60}$)"
)
_CLASSES = {
    "url": "u", "email": "e", "call": "I", "flag": "G", "short": "g", "error": "X", "clock": "t", "date": "t",
    "version": "V", "number": "#", "issue": "h", "hash": "h", "scope": "I", "const": "I", "snake": "I",
    "camel": "I", "at": "@",
}  # fmt: skip
_FRACTION = re.compile(r"\d{1,6}/\d{1,6}$")
_DOTTED = re.compile(r"[A-Za-z_$][\w$]{0,60}(?:\.[A-Za-z_$][\w$]{0,60}){1,6}(?:\(\))?$")
_SMALL_EXTENSIONS = frozenset({"c", "h", "m", "r", "d"})


class Path(NamedTuple):
    """A path or file name: its class (`F` source or tree, `f` document, `/` route, `~` neither), its domain tags."""

    cls: str
    tags: tuple[str, ...] = ()
    source: bool = False


def shape_class(token: str) -> str:
    """The class letter of a token that has the shape of something technical or numeric; else an empty text."""
    found = _SHAPE.match(token)
    if found is None or (found.lastgroup == "camel" and "/" in token):
        return ""
    return _CLASSES[str(found.lastgroup)]


def read_path(token: str, lex: Lexicon) -> Path | None:
    """The path a token is; None for URLs, fractions, dates, units, alternatives and plain words."""
    low = token.lower()
    name = low if low[1:3] == ":\\" else low.split(":", 1)[0]
    return _file(name, lex) or _tree(name, low, lex)


def _file(name: str, lex: Lexicon) -> Path | None:
    base = name.replace("\\", "/").rsplit("/", 1)[-1]
    stem, dot, ext = base.rpartition(".")
    if not dot or len(base) > 120 or stem.replace(".", "").isdigit():
        return None
    if not stem and ext not in ("env", "gitignore"):
        return None
    if ext in lex.extensions and not (len(stem) == 1 and ext in _SMALL_EXTENSIONS):
        return Path("F", lex.extensions[ext], True)
    if ext in lex.documents:
        return Path("f")
    return Path("~") if ext in lex.ordinary else None


def _tree(name: str, low: str, lex: Lexicon) -> Path | None:
    if "/" not in name or "://" in low or len(name) < 3 or _FRACTION.match(name):
        return None
    first, _, rest = name.partition("/")
    rooted = first in ("~", ".", "..") or (first == "" and "/" in rest)
    if rooted or first in lex.folders or (name.endswith("/") and first.isidentifier()):
        return Path("F")
    return Path("/") if first == "" and rest[:1].isalpha() and len(rest) > 2 else None


def is_alternative(token: str) -> bool:
    """Whether a token with a slash offers words (`REST/GraphQL`) and is no fraction."""
    return "/" in token and not _FRACTION.match(token)


def dotted_parts(token: str) -> list[str] | None:
    """The names of `a.b.c`, lower case, or None."""
    return token.lower().rstrip("()").split(".") if "." in token and _DOTTED.match(token) else None


def letters_class(token: str) -> str:
    """The class of a plain word that no list holds: acronym, name, word, or something else."""
    if not token.isalpha():
        return "~"
    return "Y" if token.isupper() else "N" if token[:1].isupper() else "x"
