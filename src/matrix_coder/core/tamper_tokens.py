"""Source text of JavaScript, TypeScript, Go and Rust as tokens with matched brackets; what can't be read is skipped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

_COMMENT = r"//[^\n]*|/\*.*?(?:\*/|\Z)"
_NUMBER = r"\d[\w.]*(?:[eE][+-]?\d+)?|\.\d[\w]*"
_STRING = r"\"(?:\\.|[^\"\\\n])*\""
_SINGLE = r"'(?:\\.|[^'\\\n])*'"
_PUNCT = r"=>|===|!==|\*\*|==|!=|<=|>=|&&|\|\||\?\?|\?\.|\.\.\.|::|:=|->|\+\+|--|[^\s\w]"
_NAME = r"[A-Za-z_$\u0080-\uffff][\w$]*"
_REGEX = re.compile(r"/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*")
_PATTERNS = {
    "script": (rf"(?P<comment>{_COMMENT})|(?P<string>{_STRING}|{_SINGLE})", "`"),
    "go": (rf"(?P<comment>{_COMMENT})|(?P<string>{_STRING}|`[^`]*`|{_SINGLE})", ""),
    "rust": (
        rf"(?P<comment>{_COMMENT})|(?P<string>b?r(?P<h>#*)\"(?s:.*?)\"(?P=h)|b?\"(?s:\\.|[^\"\\])*\"|'(?:\\.[^']*|[^'\\])')",
        "",
    ),
}
_COMPILED = {
    kind: re.compile(rf"{start}|(?P<number>{_NUMBER})|(?P<name>{_NAME})|(?P<space>\s+)|(?P<punct>{_PUNCT})", re.S)
    for kind, (start, _) in _PATTERNS.items()
}
# After one of these a slash begins a regular expression, not a division.
_BEFORE_REGEX = frozenset(
    ["return", "typeof", "case", "in", "of", "do", "else", "void", "delete", "throw", "new", "await", "yield"]
)
# How many tokens of a value may be put in the place of its name.
_LARGEST = 24
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_LITERAL_NAMES = frozenset({"true", "false", "null", "undefined", "nil", "None", "NaN"})
_KEYWORDS = frozenset(
    [
        "if",
        "for",
        "while",
        "switch",
        "return",
        "function",
        "func",
        "fn",
        "new",
        "await",
        "async",
        "typeof",
        "match",
        "expect",
        "assert",
        "catch",
        "require",
    ]
)
_BUILTINS = _KEYWORDS | frozenset(
    [
        "String",
        "Number",
        "Boolean",
        "Array",
        "Object",
        "Math",
        "JSON",
        "stringify",
        "parse",
        "parseInt",
        "parseFloat",
        "Promise",
        "Set",
        "Map",
        "Date",
        "abs",
        "len",
        "string",
        "int",
        "float64",
        "byte",
        "append",
        "make",
        "Some",
        "Ok",
        "Err",
        "vec",
        "format",
        "to_string",
        "toString",
        "reflect",
        "DeepEqual",
    ]
)


@dataclass(frozen=True, slots=True)
class Token:
    """One word of the text: `name`, `string`, `number`, `regex` or `punct`."""

    kind: str
    text: str
    line: int

    def is_literal(self) -> bool:
        return self.kind in ("string", "number", "regex") or self.text in _LITERAL_NAMES


@dataclass(frozen=True, slots=True)
class Source:
    """A file's tokens, which bracket closes which, and its comments as lines of a number, a tab and text."""

    tokens: tuple[Token, ...]
    close: dict[int, int]
    comments: str

    def arguments(self, at: int) -> list[list[Token]]:
        """The parts between the bracket at this index and its end, parted at its own commas."""
        return split(self.tokens[at + 1 : self.close.get(at, at + 1)], ",")


def read_source(text: str, kind: str) -> Source:
    """The tokens of a text of this language."""
    tokens: list[Token] = []
    comments: list[str] = []
    at, line = 0, 1
    pattern = _COMPILED[kind]
    while at < len(text):
        end = _long_token(text, at, kind, tokens)
        if end:
            word = "regex" if text[at] == "/" else "string"
            tokens.append(Token(word, text[at:end], line))
        else:
            found = pattern.match(text, at)
            end = found.end() if found else at + 1
            if found and found.lastgroup == "comment":
                comments += [f"{line + i}\t{c}" for i, c in enumerate(found.group().splitlines())]
            elif found and found.lastgroup not in ("space", None):
                word = "string" if found.group("string") is not None else str(found.lastgroup)
                tokens.append(Token(word, found.group(), line))
        line += text.count("\n", at, end)
        at = end
    return Source(tuple(tokens), _matched(tokens), "\n".join(comments))


def _long_token(text: str, at: int, kind: str, tokens: Sequence[Token]) -> int:
    """Where a template literal or a regular expression that begins here ends; 0 when none does."""
    if kind != "script":
        return 0
    if text[at] == "`":
        return _template_end(text, at)
    if text[at] == "/" and _may_be_regex(tokens):
        found = _REGEX.match(text, at)
        return found.end() if found else 0
    return 0


def _may_be_regex(tokens: Sequence[Token]) -> bool:
    if not tokens:
        return True
    last = tokens[-1]
    if last.kind == "name":
        return last.text in _BEFORE_REGEX
    return last.kind == "punct" and last.text not in (")", "]", "}", "++", "--")


def _template_end(text: str, at: int) -> int:
    depth, i = 0, at + 1
    while i < len(text):
        if text[i] == "\\":
            i += 1
        elif depth == 0 and text[i] == "`":
            return i + 1
        elif text.startswith("${", i):
            depth += 1
            i += 1
        elif depth and text[i] == "}":
            depth -= 1
        elif depth and text[i] == "{":
            depth += 1
        i += 1
    return len(text)


def _matched(tokens: Sequence[Token]) -> dict[int, int]:
    close: dict[int, int] = {}
    stack: list[int] = []
    for i, token in enumerate(tokens):
        if token.kind != "punct":
            continue
        if token.text in _PAIRS:
            stack.append(i)
        elif token.text in _PAIRS.values():
            while stack and _PAIRS[tokens[stack[-1]].text] != token.text:
                stack.pop()
            if stack:
                close[stack.pop()] = i
    return close


def split(tokens: Sequence[Token], *marks: str) -> list[list[Token]]:
    """The parts between these marks outside any bracket; no part for nothing after the last one."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        if token.kind == "punct":
            depth += (token.text in _PAIRS) - (token.text in _PAIRS.values())
            if depth == 0 and token.text in marks:
                parts.append([])
                continue
        parts[-1].append(token)
    return parts if parts[-1] else parts[:-1]


def words(tokens: Sequence[Token]) -> str:
    """The tokens as one line in one style: quotes, semicolons, trailing commas and spaces do not show."""
    out: list[str] = []
    for token in tokens:
        text = token.text
        if token.kind == "string":
            text = _quoted(text)
        if text in (")", "]", "}") and out and out[-1] == ",":
            out.pop()
        if text != ";":
            out.append(text)
    line = " ".join(out)
    return re.sub(r"\( ([\w$]+) \) =>", r"\1 =>", line)


def _quoted(text: str) -> str:
    if text[:1] in "'`" and text[-1:] == text[:1] and "${" not in text and len(text) != 3:
        return '"' + text[1:-1].replace('"', '\\"') + '"'
    return '"' + text[1:-1] + '"' if text[:1] == "'" and text[-1:] == "'" and len(text) == 3 else text


def literals(tokens: Sequence[Token]) -> frozenset[str]:
    """The constants among the tokens; a sign belongs to its number."""
    found: set[str] = set()
    for i, token in enumerate(tokens):
        if token.is_literal():
            signed = i > 0 and tokens[i - 1].text == "-" and (i == 1 or _is_operator(tokens[i - 2]))
            found.add(("-" if signed else "") + (_quoted(token.text) if token.kind == "string" else token.text))
    return frozenset(found)


def _is_operator(token: Token) -> bool:
    return token.kind == "punct" and token.text not in (")", "]", "}")


def callees(tokens: Sequence[Token]) -> frozenset[str]:
    """The names of what is called, and of what it is called on."""
    found: set[str] = set()
    for i, token in enumerate(tokens):
        called = i + 1 < len(tokens) and tokens[i + 1].text in ("(", ".", "::", "!")
        if token.kind == "name" and called and token.text not in _BUILTINS and token.text not in _LITERAL_NAMES:
            found.add(token.text)
    return frozenset(found)


def blanked(tokens: Sequence[Token], *, values: bool) -> str:
    """The line of words with variables blanked, and constants and plain lists of them too when `values`."""
    out: list[Token] = []
    for i, token in enumerate(tokens):
        after = tokens[i + 1].text if i + 1 < len(tokens) else ""
        before = tokens[i - 1].text if i else ""
        plain = token.kind == "name" and after not in ("(", "!", "::") and before not in (".", "::")
        literal = token.is_literal()
        if (literal and values) or (plain and not literal):
            if values and out and out[-1].text == "-" and (len(out) < 2 or _is_operator(out[-2])):
                out.pop()
            out.append(Token("name", "_", token.line))
        else:
            out.append(token)
    line = words(out)
    while values and (shorter := re.sub(r"(?<![\w)\]] )[\[({] (?:_ ?[,:]? ?)*[\])}]", "_", line)) != line:
        line = shorter
    return line


def grams(tokens: Sequence[Token]) -> Counter[str]:
    """Runs of three words: two bodies that share most of them say the same, whatever their layout."""
    kept = [t.text if t.kind != "string" else _quoted(t.text) for t in tokens if t.text not in (",", ";")]
    return Counter(f"{a} {b}" for a, b in pairwise(kept)) if len(kept) > 1 else Counter(kept)


def statements(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The statements at the top of a block, as far as layout and semicolons tell."""
    current: list[Token] = []
    depth = 0
    for i, token in enumerate(tokens):
        fresh = bool(current) and depth == 0 and token.line > current[-1].line and not _continues(current[-1], token)
        if fresh or (depth == 0 and token.text == ";"):
            yield current
            current = []
        if token.text != ";" or depth:
            current.append(token)
        if token.kind == "punct":
            depth += (token.text in _PAIRS) - (token.text in _PAIRS.values())
        if i == len(tokens) - 1 and current:
            yield current


def _continues(last: Token, token: Token) -> bool:
    joins = last.kind == "punct" and last.text not in (")", "]", "}")
    return joins or (token.kind == "punct" and token.text not in ("(", "[", "{", "!", "#", "-", "+"))


def inserted(tokens: Sequence[Token], values: dict[str, list[Token]]) -> list[Token]:
    """The tokens with the values of local names in their place."""
    out: list[Token] = []
    for i, token in enumerate(tokens):
        before = tokens[i - 1].text if i else ""
        after = tokens[i + 1].text if i + 1 < len(tokens) else ""
        known = token.text in values and len(values[token.text]) <= _LARGEST
        if token.kind == "name" and known and before not in (".", "::") and after != ":":
            out += values[token.text]
        else:
            out.append(token)
    return out if len(out) <= len(tokens) + 3 * _LARGEST else list(tokens)
