"""JavaScript and TypeScript assertions: `expect` with jest's and chai's matchers, `assert`, `t`, `should`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .tamper_claims import Said, condition, equality, near, number
from .tamper_model import Rank
from .tamper_tokens import Source, Token, inserted, words

_EQUAL = frozenset(
    [
        "tobe",
        "toequal",
        "tostrictequal",
        "equal",
        "equals",
        "eql",
        "eq",
        "deepequal",
        "strictequal",
        "deepstrictequal",
        "is",
        "same",
        "strictsame",
        "looseequal",
    ]
)
_UNEQUAL = frozenset(["notequal", "notstrictequal", "notdeepequal", "notdeepstrictequal", "not", "notsame"])
_RANKS: dict[str, Rank] = {
    **dict.fromkeys(("tobenull", "tobeundefined", "tobenan", "null", "undefined", "true", "false", "nan"), Rank.EXACT),
    **dict.fromkeys(("tohavebeencalledwith", "tohavebeenlastcalledwith", "tohavebeennthcalledwith"), Rank.EXACT),
    **dict.fromkeys(("tohavebeencalledtimes", "tohavebeencalledonce", "calledwith", "calledoncewith"), Rank.EXACT),
    **dict.fromkeys(("tomatchinlinesnapshot", "tothrowerrormatchinginlinesnapshot"), Rank.EXACT),
    **dict.fromkeys(("tomatchobject", "tomatchsnapshot", "tothrowerrormatchingsnapshot", "tocontainequal"), Rank.NEAR),
    **dict.fromkeys(("tocontain", "tomatch", "include", "includes", "contain", "match", "matches"), Rank.SOME),
    **dict.fromkeys(("tobegreaterthan", "tobegreaterthanorequal", "tobelessthan", "tobelessthanorequal"), Rank.SOME),
    **dict.fromkeys(("above", "below", "least", "most", "gt", "lt", "gte", "lte", "within", "empty"), Rank.SOME),
    **dict.fromkeys(
        ("tobetruthy", "tobefalsy", "tohavebeencalled", "ok", "called", "notok", "truthy", "falsy"), Rank.SOME
    ),
    **dict.fromkeys(("tobedefined", "tobeinstanceof", "exist", "a", "an", "instanceof", "exists"), Rank.ANYTHING),
    **dict.fromkeys(("tobetypeof", "doesnotthrow", "doesnotreject", "notthrows", "iferror", "pass"), Rank.ANYTHING),
}
_PROPERTIES = frozenset(["ok", "true", "false", "null", "undefined", "exist", "empty", "nan", "called", "calledonce"])
_FILLERS = frozenset(
    [
        "to",
        "be",
        "been",
        "is",
        "that",
        "which",
        "and",
        "has",
        "have",
        "with",
        "at",
        "of",
        "same",
        "but",
        "does",
        "still",
        "also",
        "deep",
        "own",
    ]
)
_LOOSE = ("anything", "any", "objectContaining", "arrayContaining", "stringContaining", "stringMatching", "closeTo")
_ASSERT_OBJECTS = frozenset({"assert", "t", "tap", "chai"})
_BARE = frozenset(
    [
        "strictEqual",
        "deepEqual",
        "deepStrictEqual",
        "notStrictEqual",
        "notDeepEqual",
        "doesNotThrow",
        "rejects",
        "throws",
        "ok",
        "equal",
    ]
)


def assertion_at(source: Source, at: int, values: dict[str, list[Token]]) -> Iterator[Said]:
    """What the assertion that begins at this token says; nothing when none begins here."""
    tokens = source.tokens
    token = tokens[at]
    if token.kind != "name":
        return
    before = tokens[at - 1].text if at else ""
    after = tokens[at + 1].text if at + 1 < len(tokens) else ""
    if token.text == "expect" and before == "." and after == "(":
        arguments = inserted(tokens[at + 2 : source.close.get(at + 1, at + 2)], values)
        yield Said(operator="call expect", rank=Rank.NEAR, subject=arguments or [token])
    elif before == ".":
        if token.text == "should" and after == ".":
            yield from _should(source, at, values)
    elif token.text in ("expect", "expectTypeOf") and after in ("(", "."):
        yield from _expect(source, at, values)
    elif token.text in _ASSERT_OBJECTS and after in ("(", "."):
        yield from _assert(source, at, values)
    elif token.text in _BARE and after == "(" and before not in ("function", "import"):
        yield from _called(token.text, source, at + 1, values)


def _expect(source: Source, at: int, values: dict[str, list[Token]]) -> Iterator[Said]:
    tokens = source.tokens
    i = at + 1
    if tokens[i].text == ".":
        if i + 2 >= len(tokens) or tokens[i + 1].text not in ("soft", "poll", "assertions", "hasAssertions"):
            return
        if tokens[i + 1].text in ("assertions", "hasAssertions"):
            yield Said(operator="count", rank=Rank.NEAR, subject=tokens[i + 1 : source.close.get(i + 2, i + 2)])
            return
        i += 2
    if i not in source.close:
        return
    subject = inserted(tokens[i + 1 : source.close[i]], values)
    chain = _chain(source, source.close[i] + 1, values)
    yield _matched(subject, chain)


def _chain(source: Source, at: int, values: dict[str, list[Token]]) -> list[tuple[str, list[list[Token]] | None]]:
    """The names behind an `expect(...)`, each with its arguments if it is called."""
    tokens = source.tokens
    chain: list[tuple[str, list[list[Token]] | None]] = []
    while at + 1 < len(tokens) and tokens[at].text in (".", "?.") and tokens[at + 1].kind == "name":
        name = tokens[at + 1].text
        at += 2
        arguments = None
        if at in source.close and tokens[at].text == "(":
            arguments = [inserted(a, values) for a in source.arguments(at)]
            at = source.close[at] + 1
        chain.append((name, arguments))
    return chain


def _matched(subject: list[Token], chain: list[tuple[str, list[list[Token]] | None]]) -> Said:
    negated = sum(name in ("not", "never") for name, _ in chain) % 2 == 1
    named = [(n.lower(), a) for n, a in chain if n not in ("not", "never", "resolves", "rejects") and n not in _FILLERS]
    matchers = [(n, a) for n, a in named if a is not None or n in _PROPERTIES]
    if not matchers:
        return Said(operator="always", rank=Rank.ALWAYS, subject=subject)
    name, arguments = matchers[-1]
    return _loosened(_said(subject, name, arguments or [], negated), arguments or [])


def _said(subject: list[Token], name: str, arguments: list[list[Token]], negated: bool) -> Said:
    first = arguments[0] if arguments else []
    if name in ("tohavelength", "lengthof", "length") and first:
        subject, name = [*subject, Token("punct", ".", 0), Token("name", "length", 0)], "tobe"
    if name in ("tobenull", "tobeundefined", "null", "undefined", "true", "false") and not negated:
        name, first = "tobe", [Token("name", name.removeprefix("tobe"), 0)]
    if name in _EQUAL and first and not negated:
        return equality(subject, first)
    if name in ("tobecloseto", "closeto", "approximately") and first and not negated:
        digits = number(arguments[1]) if len(arguments) > 1 else 2.0
        width = 0.5 * 10 ** -(digits or 0) if name == "tobecloseto" else (digits or 0.0)
        return near(subject, first, width)
    if len(subject) == 1 and subject[0].is_literal() and not negated and name in ("tobetruthy", "ok", "tobedefined"):
        return Said(operator="always", rank=Rank.ALWAYS, subject=subject)
    return Said(
        operator=f"{'not ' if negated else ''}{name}",
        rank=_rank(name, arguments, negated),
        subject=subject,
        expected=_all(arguments),
    )


def _rank(name: str, arguments: list[list[Token]], negated: bool) -> Rank:
    if name in ("tothrow", "tothrowerror", "throw", "throws", "rejects", "rejectedwith"):
        return Rank.SOME if negated or not arguments else Rank.NEAR
    if name in ("tohaveproperty", "property"):
        return Rank.SOME if negated or len(arguments) < 2 else Rank.EXACT
    if not negated:
        return _RANKS.get(name, Rank.NEAR)
    if name in ("tohavebeencalled", "tobedefined", "called", "exist"):
        return Rank.EXACT
    weak = name in _EQUAL or name in ("tobenull", "tobeundefined", "null", "undefined", "empty", "tobenan")
    return Rank.ANYTHING if weak else Rank.SOME


def _loosened(said: Said, arguments: list[list[Token]]) -> Said:
    """The claim with the rank that its arguments leave it: `expect.anything()` in them lets more pass."""
    flat = words(_all(arguments))
    if said.rank < Rank.NEAR or not any(f"expect . {w} (" in flat for w in _LOOSE):
        return said
    whole = flat.startswith(("expect . anything", "expect . any "))
    rank = Rank.ANYTHING if whole else Rank.NEAR
    return Said(operator=said.operator, rank=rank, subject=said.subject, expected=said.expected)


def _all(arguments: Sequence[Sequence[Token]]) -> list[Token]:
    out: list[Token] = []
    for argument in arguments:
        out += [*([Token("punct", ",", 0)] if out else []), *argument]
    return out


def _assert(source: Source, at: int, values: dict[str, list[Token]]) -> Iterator[Said]:
    tokens = source.tokens
    i = at + 1
    name = "ok" if tokens[at].text == "assert" else ""
    while i + 1 < len(tokens) and tokens[i].text == "." and tokens[i + 1].kind == "name":
        name = tokens[i + 1].text
        i += 2
    if name and i in source.close and tokens[i].text == "(":
        yield from _called(name, source, i, values)


def _called(name: str, source: Source, at: int, values: dict[str, list[Token]]) -> Iterator[Said]:
    """What `assert.name(...)` says."""
    arguments = [inserted(a, values) for a in source.arguments(at)]
    lowered = name.lower()
    if not arguments:
        return
    if lowered in ("ok", "true", "assert", "istrue", "truthy"):
        yield from condition(arguments[0])
    elif lowered in ("notok", "false", "isfalse", "falsy"):
        yield from condition(arguments[0], negated=True)
    elif lowered in _EQUAL and len(arguments) > 1:
        yield equality(arguments[0], arguments[1])
    elif lowered in _UNEQUAL and len(arguments) > 1:
        yield Said(operator="!=", rank=Rank.ANYTHING, subject=arguments[0], expected=arguments[1])
    elif lowered in _RANKS or lowered in ("throws", "rejects", "fail", "match", "closeto", "approximately"):
        yield _said(arguments[0], lowered, arguments[1:], False)


def _should(source: Source, at: int, values: dict[str, list[Token]]) -> Iterator[Said]:
    """What `subject.should.equal(...)` says."""
    opened = {end: start for start, end in source.close.items()}
    start = at - 1
    while start > 0:
        previous = start - 1
        if source.tokens[previous].text in (")", "]"):
            start = opened.get(previous, previous)
        elif source.tokens[previous].kind in ("name", "string", "number") or source.tokens[previous].text == ".":
            start = previous
        else:
            break
    subject = inserted(source.tokens[start : at - 1], values)
    yield _matched(subject, _chain(source, at + 1, values))
