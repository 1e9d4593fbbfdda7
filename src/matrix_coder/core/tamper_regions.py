"""Stretches of code in which an assertion can't fail any more: swallowed by a handler, or never reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .tamper_model import line_at
from .tamper_tokens import Source

_LOUD = frozenset({"throw", "expect", "assert", "fail", "done", "reject", "panic", "Fatal", "Error", "should"})


@dataclass(frozen=True, slots=True)
class Region:
    """Tokens from `start` to `end` whose assertions are `lost`, and `by` what."""

    start: int
    end: int
    lost: str
    by: str


def lost_at(regions: Sequence[Region], at: int) -> tuple[str, str]:
    """Why an assertion at this token can't fail; two empty texts when it can."""
    return next(((r.lost, r.by) for r in regions if r.start <= at < r.end), ("", ""))


def script_regions(source: Source, text: str) -> list[Region]:
    """The regions of a JavaScript or TypeScript file."""
    return [*_quiet_catches(source, text), *_after_returns(source, text, "script"), *_never(source, text)]


def native_regions(source: Source, text: str) -> list[Region]:
    """The regions of a Go or Rust file."""
    return [*_after_returns(source, text, "native"), *_never(source, text)]


def _quiet_catches(source: Source, text: str) -> Iterator[Region]:
    tokens = source.tokens
    for i, token in enumerate(tokens):
        if token.text != "try" or i + 1 not in source.close:
            continue
        end = source.close[i + 1]
        if end + 1 >= len(tokens) or tokens[end + 1].text != "catch":
            continue
        at = end + 2
        if at < len(tokens) and tokens[at].text == "(":
            at = source.close.get(at, at) + 1
        handler = {t.text for t in tokens[at : source.close.get(at, at)]}
        if not handler & _LOUD:
            line = tokens[end + 1].line
            yield Region(i, end, "swallowed", f"line {line}: `{line_at(text, line)}`")


def _after_returns(source: Source, text: str, kind: str) -> Iterator[Region]:
    """What follows a bare `return` in its own block."""
    tokens = source.tokens
    for opening, end in source.close.items():
        if tokens[opening].text != "{":
            continue
        i = opening + 1
        while i < end:
            if tokens[i].text == "return" and _is_bare(source, i, end, kind) and i + 1 < end:
                yield Region(i, end, "unreachable", f"line {tokens[i].line}: `{line_at(text, tokens[i].line)}`")
                break
            i = source.close.get(i, i) + 1


def _is_bare(source: Source, at: int, end: int, kind: str) -> bool:
    """Whether a `return` gives nothing and is a statement of its own, not the branch of an `if` without braces."""
    tokens = source.tokens
    after, before = tokens[at + 1], tokens[at - 1]
    alone = after.text == ";" or after.line > tokens[at].line or at + 1 == end
    guarded = kind == "script" and before.text in (")", "else")
    return alone and not guarded


def _never(source: Source, text: str) -> Iterator[Region]:
    """Blocks behind `if (false)`."""
    tokens = source.tokens
    for i, token in enumerate(tokens[:-4]):
        if token.text != "if":
            continue
        test = i + 1
        if tokens[test].text == "(":
            inner = tokens[test + 1 : source.close.get(test, test)]
            block = source.close.get(test, test) + 1
        else:
            inner, block = tokens[test : test + 1], test + 1
        if len(inner) == 1 and inner[0].text in ("false", "0") and block in source.close:
            yield Region(block, source.close[block], "unreachable", f"line {token.line}: `{line_at(text, token.line)}`")
