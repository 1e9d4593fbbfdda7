"""A message as the scorer reads it: words, their classes in a row, tags, shapes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

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
_EXTENSIONS: dict[str, tuple[str, ...]] = {
    ext: tags
    for tags, names in {
        (): "py pyi pyx rb go rs java kt kts scala clj cljs hs ml mli fs cs vb c h cc cpp cxx hpp hh m mm swift dart lua pl pm php r jl js ts mjs cjs mts cts"
        " coffee ex exs erl hrl nim zig sol asm wat groovy gradle ipynb gd tscn godot cmake mk proto thrift graphql gql lock toml ini cfg conf env properties bat ps1 vim el lisp scm rkt pas f90 cob vhd sv tex bib sty log jsonl ndjson avro patch diff jar war whl gemspec podspec csproj sln xcodeproj plist rst adoc",
        ("frontend",): "jsx tsx vue svelte astro css scss sass less html htm xhtml ejs hbs pug",
        ("data-db",): "sql psql ddl dbml prisma sqlite db parquet",
        ("infra-cli",): "sh bash zsh fish tf tfvars hcl dockerfile service nix",
    }.items()
    for ext in names.split()
}
_SOFT_EXTENSIONS = frozenset("md mdx json yaml yml xml csv tsv txt svg".split())
_DIRS = frozenset(
    "src lib libs app apps test tests spec specs docs doc scripts bin etc usr var opt tmp home pkg packages cmd internal components api server client config configs"
    " core models views utils helpers public static assets migrations services controllers routes hooks plugins modules node_modules scenes vendor tools build dist".split()
)
_TLDS = frozenset(
    "com org net io dev app ai co uk de fr es edu gov info example xyz me tv eu ch nl ru jp cn in".split()
)
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
    r"|(?P<number>[+-]?[$€£#]?\d[\d.,]{0,15}(?:%|st|nd|rd|th|x|k|m|kg|g|km|cm|mm|mg|ml|lb|lbs|gb|mb|kb|ms|s|h|min)?$)"
    r"|(?P<issue>#\d{1,7}$)"
    r"|(?P<hash>(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}$)"
    r"|(?P<scope>[A-Za-z_]\w{0,60}::\w{1,60})"
    r"|(?P<const>[A-Z][A-Z0-9]{0,40}_[A-Z0-9_]{1,60}$)"
    r"|(?P<snake>_{0,2}[A-Za-z][A-Za-z0-9]{0,40}_\w{1,60}$)"
    r"|(?P<camel>[a-z]{1,30}[0-9]{0,4}[A-Z]\w{0,60}$|(?:[A-Z][a-z0-9]{1,30}){2,8}$)"
    r"|(?P<at>@[\w.-]{1,60}$)"
)
_SHAPE_CLASS = {
    "url": "u", "email": "e", "call": "I", "flag": "G", "short": "g", "error": "X", "clock": "t", "date": "t", "version": "V",
    "number": "#", "issue": "h", "hash": "h", "scope": "I", "const": "I", "snake": "I", "camel": "I", "at": "@",
}  # fmt: skip
_FRACTION = re.compile(r"\d{1,6}/\d{1,6}$")
_DOTTED = re.compile(r"[A-Za-z_$][\w$]{0,60}(?:\.[A-Za-z_$][\w$]{0,60}){1,6}(?:\(\))?$")
_ROLE_TAGS = frozenset(r.value for r in Role)
_PATH_TAGS = frozenset({"security", "sensitive", "mechanical"})
_PUNCT_CLASS = {".": ".", "?": "?", "!": "!", ",": ",", ":": ":", ";": ",", "`": "B", '"': "'", "(": "(", ")": ")"}
_STRIP = ".:'’*_-&/\\%+"


@dataclass(slots=True)
class Reading:
    """The words of one message in a row.

    `lemmas`, `surfaces` and `classes` run in parallel; `tags` counts what the words vote for;
    `roles` lists the roles they name, in order; `pasted` counts the classes seen in pasted text.
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
    soft_path: bool = False
    latin: bool = True


def read(seen: View, lex: Lexicon) -> Reading:
    """The reading of a view."""
    out = Reading(kinds=seen.kinds)
    _read_text(seen.ask, lex, out)
    if seen.paste:
        pasted = Reading()
        _read_text(seen.paste, lex, pasted, _PASTE_TOKENS)
        for cls in pasted.classes:
            out.pasted[cls] = out.pasted.get(cls, 0) + 1
        out.paste_tags = pasted.tags
        if "tick" in seen.kinds:
            out.code_file = out.code_file or pasted.code_file
    return out


def _read_text(text: str, lex: Lexicon, out: Reading, limit: int = MAX_TOKENS) -> None:
    if "’" in text:
        text = text.replace("’", "'")
    if text.isascii():
        tokens = _TOKEN.findall(text)
    else:
        out.latin = False
        tokens = _native_tokens(text, lex)
    if len(tokens) > limit:
        tokens = tokens[: limit * 2 // 3] + tokens[-limit // 3 :]
    lows = [t.lower() for t in tokens]
    words, heads, phrases = lex.words, lex.heads, lex.phrases
    add_lemma, add_surface, add_class = out.lemmas.append, out.surfaces.append, out.classes.append
    tags = out.tags
    i, n = 0, len(tokens)
    while i < n:
        low = lows[i]
        step, entry = 1, None
        lengths = heads.get(low)
        if lengths is not None:
            for length in lengths:
                if i + length <= n + 1:
                    key = " ".join(lows[i : i + length])
                    entry = phrases.get(key) or phrases.get(key.rstrip(".:'"))
                    if entry is not None:
                        step = length
                        break
        if entry is None:
            entry = words.get(low)
        if entry is not None:
            add_lemma(entry[0])
            add_surface(low if step == 1 else key)
            add_class(entry[1])
            for tag in entry[2]:
                tags[tag] = tags.get(tag, 0) + 1
                if tag in _ROLE_TAGS:
                    out.roles.append(tag)
            if entry[1] not in "'B":
                out.words += step
        else:
            _read_unknown(tokens[i], low, lex, out)
        i += step


def _native_tokens(text: str, lex: Lexicon) -> list[str]:
    """Tokens of text that is not plain ASCII: words of other scripts are cut out of running text first."""
    tokens: list[str] = []
    low, first = text.lower(), lex.native
    if len(low) != len(text):
        text = low
    at = done = 0
    while at < len(low):
        words = first.get(low[at])
        if words is not None and not (at and low[at] < "\u2e80" and low[at - 1].isalpha()):
            for word in words:
                if low.startswith(word, at):
                    tokens += _TOKEN_NATIVE.findall(text, done, at)
                    tokens.append(word)
                    at = done = at + len(word)
                    break
            else:
                at += 1
        else:
            at += 1
    return tokens + _TOKEN_NATIVE.findall(text, done)


def _add(out: Reading, entry: Word, surface: str) -> None:
    out.lemmas.append(entry.lemma)
    out.surfaces.append(surface)
    out.classes.append(entry.cls)
    for tag in entry.tags:
        out.tags[tag] = out.tags.get(tag, 0) + 1
        if tag in _ROLE_TAGS:
            out.roles.append(tag)


def _read_unknown(token: str, low: str, lex: Lexicon, out: Reading) -> None:
    if len(token) == 1 and not token.isalnum():
        out.classes.append(_PUNCT_CLASS.get(token, "~"))
        out.lemmas.append(token)
        out.surfaces.append(token)
        return
    out.words += 1
    core = low.strip(_STRIP)
    end = low[-1] if low[-1] in ".:" else ""
    entry = lex.words.get(core) if core != low or "-" in core else None
    if entry is None and "-" in core:
        entry = lex.phrases.get(core.replace("-", " "))
    if entry is not None and not ("/" in low and _path_class(token.rstrip(".:'"), core, out)):
        _add(out, entry, core)
    else:
        cls = (
            "x"
            if low.isalpha() and (token.islower() or out.classes[-1:] in ([], ["."]))
            else _shape(token.rstrip(".:'"), lex, out)
        )
        if cls:
            out.lemmas.append(core or low)
            out.surfaces.append(core or low)
            out.classes.append(cls)
    if end:
        out.lemmas.append(end)
        out.surfaces.append(end)
        out.classes.append(end)


def _shape(token: str, lex: Lexicon, out: Reading) -> str:
    """The class letter of a token that is in no list; an empty text when its parts were read instead."""
    found = _SHAPE.match(token)
    if found is not None and not (found.lastgroup == "camel" and "/" in token):
        return _SHAPE_CLASS[str(found.lastgroup)]
    path = _path_class(token, token.lower(), out)
    if path:
        _read_parts(token, lex, out)
        return path
    if "/" in token and not _FRACTION.match(token):
        return _read_alternatives(token, lex, out)
    if "." in token and _DOTTED.match(token):
        parts = token.lower().rstrip("()").split(".")
        return "u" if parts[-1] in _TLDS else _read_dotted(token, parts, lex, out)
    if token.isalpha():
        return "Y" if token.isupper() else ("N" if token[:1].isupper() else "x")
    return "~"


def _path_class(token: str, low: str, out: Reading) -> str:
    """`F` for a source file or a path into a tree, `f` for a document, `/` for a route; else an empty text."""
    name = low.split(":", 1)[0] if not low[1:3] == ":\\" else low
    base = name.replace("\\", "/").rsplit("/", 1)[-1]
    stem, dot, ext = base.rpartition(".")
    if dot and (stem or ext in ("env", "gitignore")) and len(base) <= 120 and not stem.replace(".", "").isdigit():
        if ext in _EXTENSIONS and not (len(stem) == 1 and ext in ("e", "m", "c", "h", "r")):
            out.code_file = True
            for tag in _EXTENSIONS[ext]:
                out.tags[tag] = out.tags.get(tag, 0) + 2
            return "F"
        if ext in _SOFT_EXTENSIONS:
            out.soft_path = True
            return "f"
    if "/" not in name or "://" in name or len(name) < 3 or _FRACTION.match(name):
        return ""
    first, _, rest = name.partition("/")
    if (
        first in ("~", ".", "..")
        or (first == "" and "/" in rest)
        or first in _DIRS
        or name.endswith("/")
        and first.isidentifier()
    ):
        out.soft_path = True
        return "F"
    return "/" if first == "" and rest[:1].isalpha() and len(rest) > 2 else ""


def _read_parts(token: str, lex: Lexicon, out: Reading) -> None:
    """The names inside a path vote for a lens and for sensitivity, never for a role."""
    for part in re.split(r"[/\\._-]", token.lower())[:8]:
        entry = lex.words.get(part)
        if entry is not None:
            for tag in entry.tags:
                if tag in _PATH_TAGS:
                    out.tags[tag] = out.tags.get(tag, 0) + 1


def _read_alternatives(token: str, lex: Lexicon, out: Reading) -> str:
    """`REST/GraphQL`, `and/or`: the words on both sides."""
    known = [lex.words.get(p) for p in token.lower().split("/")[:4] if p]
    for entry, part in zip(known, token.lower().split("/"), strict=False):
        if entry is not None:
            _add(out, entry, part)
    return "" if any(known) else "~"


def _read_dotted(token: str, parts: list[str], lex: Lexicon, out: Reading) -> str:
    """`df.loc` is an identifier; `done.thanks` is two words with a lost space."""
    entries = [lex.words.get(p) for p in parts]
    if len(parts) == 2 and all(e is not None and e.cls in "dpijvqrCEtmo" for e in entries):
        for entry, part in zip(entries, parts, strict=True):
            assert entry is not None
            _add(out, entry, part)
        return ""
    return "" if len(token) <= 4 else "I"
