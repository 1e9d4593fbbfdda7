"""What an assertion of JavaScript, TypeScript, Go or Rust says, from its tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .tamper_model import Assertion, Rank
from .tamper_tokens import Token, blanked, callees, literals, split, words

_OPERATORS = {
    "===": ("==", Rank.EXACT),
    "==": ("==", Rank.EXACT),
    "!==": ("!=", Rank.ANYTHING),
    "!=": ("!=", Rank.ANYTHING),
    "<": ("<", Rank.SOME),
    "<=": ("<=", Rank.SOME),
    ">": (">", Rank.SOME),
    ">=": (">=", Rank.SOME),
}
_OPPOSITE = {"===": "!==", "==": "!=", "!==": "===", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One claim: an operator over one or two sides."""

    operator: str
    rank: Rank
    subject: Sequence[Token]
    expected: Sequence[Token] = field(default=())
    tolerance: float = 0.0

    def assertion(self, *, line: int, text: str, file: str) -> Assertion:
        sides = [words(self.subject), *([words(self.expected)] if self.expected else [])]
        if self.operator in ("==", "!=", "~="):
            sides.sort()
        both = [*self.subject, *self.expected]
        shapes = sorted(blanked(s, values=True) for s in (self.subject, self.expected))
        frames = sorted(blanked(s, values=False) for s in (self.subject, self.expected))
        return Assertion(
            key=f"{self.operator} {' | '.join(sides)}" + (f" ±{self.tolerance:g}" if self.tolerance else ""),
            rank=self.rank,
            subject=words(self.subject),
            expected=words(self.expected),
            shape=f"{self.operator} {' | '.join(shapes)}",
            frame=f"{self.operator} {' | '.join(frames)}",
            line=line,
            text=text,
            file=file,
            callees=callees(both),
            literals=literals(both),
            tolerance=self.tolerance,
        )


def equality(left: Sequence[Token], right: Sequence[Token]) -> Said:
    """That both sides are the same; the side that calls something is the subject."""
    if words(left) == words(right):
        return Said(operator="always", rank=Rank.ALWAYS, subject=left, expected=right)
    subject, expected = (left, right) if _weight(left) >= _weight(right) else (right, left)
    return Said(operator="==", rank=Rank.EXACT, subject=subject, expected=expected)


def near(left: Sequence[Token], right: Sequence[Token], tolerance: float) -> Said:
    """That both sides differ by no more than this."""
    subject, expected = (left, right) if _weight(left) >= _weight(right) else (right, left)
    return Said(operator="~=", rank=Rank.NEAR, subject=subject, expected=expected, tolerance=tolerance)


def _weight(tokens: Sequence[Token]) -> int:
    called = any(t.text == "(" for t in tokens)
    return 3 * called + sum(t.kind == "name" and not t.is_literal() for t in tokens[:1])


def condition(tokens: Sequence[Token], *, negated: bool = False) -> Iterator[Said]:
    """What it says that a condition holds, or that it does not."""
    tokens = _bare(tokens)
    both, either = split(tokens, "&&"), split(tokens, "||")
    if len(either) > 1:
        yield from _several(either, tokens, every=negated, negated=negated)
    elif len(both) > 1:
        yield from _several(both, tokens, every=not negated, negated=negated)
    elif tokens and tokens[0].text == "!" and len(_bare(tokens[1:])) <= len(tokens) - 1:
        yield from _not(tokens, negated)
    else:
        yield _simple(tokens, negated)


def _not(tokens: Sequence[Token], negated: bool) -> Iterator[Said]:
    rest = tokens[1:]
    compared = any(len(split(rest, o)) > 1 for o in _OPERATORS)
    if compared:
        yield _simple(tokens, negated)
    else:
        yield from condition(rest, negated=not negated)


def _bare(tokens: Sequence[Token]) -> Sequence[Token]:
    """Without brackets around the whole."""
    while len(tokens) > 1 and tokens[0].text == "(" and tokens[-1].text == ")":
        depth = 0
        for i, token in enumerate(tokens):
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0 and i < len(tokens) - 1:
                return tokens
        tokens = tokens[1:-1]
    return tokens


def _several(parts: Sequence[Sequence[Token]], whole: Sequence[Token], *, every: bool, negated: bool) -> Iterator[Said]:
    said = [list(condition(p, negated=negated)) for p in parts]
    if every:
        for part in said:
            yield from part
        return
    always = any(s.rank is Rank.ALWAYS for part in said for s in part)
    rank = Rank.ALWAYS if always else Rank.ANYTHING
    yield Said(operator="not or" if negated else "or", rank=rank, subject=whole)


def _simple(tokens: Sequence[Token], negated: bool) -> Said:
    for sign in _OPERATORS:
        sides = split(tokens, sign)
        if len(sides) == 2:
            return _compared(_OPPOSITE[sign] if negated else sign, sides[0], sides[1])
    if len(tokens) == 1 and tokens[0].is_literal():
        truth = tokens[0].text not in ("false", "0", "null", "nil", "undefined", "''", '""', "NaN", "None")
        return Said(
            operator="always" if truth is not negated else "never",
            rank=Rank.ALWAYS if truth is not negated else Rank.EXACT,
            subject=tokens,
        )
    return Said(operator="not" if negated else "true", rank=Rank.SOME, subject=tokens)


def _compared(sign: str, left: Sequence[Token], right: Sequence[Token]) -> Said:
    operator, rank = _OPERATORS[sign]
    if operator == "==":
        return equality(left, right)
    width = number(right)
    difference = _difference(left)
    if operator in ("<", "<=") and width is not None and difference is not None:
        return near(*difference, width)
    subject, expected = (left, right) if _weight(left) >= _weight(right) else (right, left)
    return Said(operator=operator, rank=rank, subject=subject, expected=expected)


def _difference(tokens: Sequence[Token]) -> tuple[list[Token], list[Token]] | None:
    """The two sides of `Math.abs(a - b)`, `math.Abs(a - b)` or `(a - b).abs()`."""
    names = [t.text for t in tokens]
    if "abs" not in names and "Abs" not in names:
        return None
    start = names.index("(") if "(" in names else -1
    depth = 0
    for end in range(start, len(tokens)):
        depth += (names[end] == "(") - (names[end] == ")")
        if depth == 0:
            sides = split(tokens[start + 1 : end], "-")
            return (sides[0], sides[1]) if len(sides) == 2 else None
    return None


def number(tokens: Sequence[Token]) -> float | None:
    """The number that the tokens are, if they are one."""
    text = "".join(t.text for t in tokens).replace("_", "")
    for ending in ("f64", "f32", "n"):
        text = text.removesuffix(ending)
    try:
        return float(text)
    except ValueError:
        return None
