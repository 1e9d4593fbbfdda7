"""Go and Rust test files read as tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from .tamper_claims import Said, condition, equality, near, number
from .tamper_files import Collection, found
from .tamper_model import Assertion, Case, Mark, Rank, Row, Sheet, line_at
from .tamper_regions import Region, lost_at, native_regions
from .tamper_tokens import Source, Token, grams, inserted, literals, read_source, split, statements, words

_GO_FAILS = frozenset({"Error", "Errorf", "Fatal", "Fatalf", "Fail", "FailNow"})
_GO_SKIPS = frozenset({"Skip", "Skipf", "SkipNow"})
_GO_EQUAL = frozenset({"Equal", "EqualValues", "Exactly", "JSONEq", "EqualError", "ElementsMatch", "Len", "Equalf"})
_GO_RANKS = {
    "NoError": Rank.EXACT,
    "Nil": Rank.EXACT,
    "ErrorIs": Rank.EXACT,
    "Empty": Rank.EXACT,
    "Zero": Rank.EXACT,
    "Error": Rank.SOME,
    "Contains": Rank.SOME,
    "Panics": Rank.SOME,
    "Greater": Rank.SOME,
    "Less": Rank.SOME,
    "NotNil": Rank.ANYTHING,
    "NotEmpty": Rank.ANYTHING,
    "NotEqual": Rank.ANYTHING,
    "NotZero": Rank.ANYTHING,
    "IsType": Rank.ANYTHING,
}
_RUST_TEST = re.compile(r"(^|:: )(test|rstest|test_case|wasm_bindgen_test|quickcheck|proptest)( \(|$| )")
_RUST_MACROS = frozenset(
    f"{before}{name}"
    for before in ("", "debug_", "prop_")
    for name in ("assert", "assert_eq", "assert_ne", "assert_matches", "panic", "unreachable")
)


def read_go(file: str, text: str, rules: Collection) -> Sheet:
    """The tests of a Go file."""
    source = read_source(text, "go")
    tokens = source.tokens
    regions = native_regions(source, text)
    cases = []
    for i, token in enumerate(tokens[:-2]):
        if token.text != "func" or tokens[i + 1].kind != "name" or tokens[i + 2].text != "(":
            continue
        opening = next((j for j in range(source.close.get(i + 2, i + 2) + 1, len(tokens)) if tokens[j].text == "{"), 0)
        if opening in source.close:
            name = tokens[i + 1].text
            taken = re.match(r"(Test|Fuzz|Example)(?![a-z])", name) is not None
            cases.append(_go_case(file, text, source, (i, opening), name, taken and found(file, rules) > 0, regions))
    return Sheet(file=file, cases=tuple(cases), marks=tuple(_go_marks(text)), comments=source.comments)


def _go_marks(text: str) -> Iterator[Mark]:
    for number_, line in enumerate(text.splitlines(), 1):
        if line.startswith("package "):
            return
        if re.match(r"//go:build\s|// \+build\s", line):
            machines = re.search(r"\b(linux|darwin|windows|amd64|arm64|unix|go1)", line) is not None
            yield Mark(kind="skip", line=number_, text=line.strip(), certain=not machines)


def _go_case(
    file: str, text: str, source: Source, at: tuple[int, int], name: str, taken: bool, regions: Sequence[Region]
) -> Case:
    start, opening = at
    end = source.close[opening]
    body = list(source.tokens[opening + 1 : end])
    line = source.tokens[start].line
    made = tuple(_go_assertions(file, text, source, opening, regions, _values(body, ":=")))
    return Case(
        file=file,
        name=name,
        line=line,
        text=line_at(text, line),
        collected=taken,
        assertions=made,
        marks=tuple(_go_skips(source, opening, end, text)),
        rows=tuple(_rows(source, opening, end)),
        body=grams(body),
        empty=not body or words(body) == "return",
        literals=literals(body),
        language="go",
        found=2 if file.endswith("_test.go") else 0,
    )


def _go_skips(source: Source, start: int, end: int, text: str) -> Iterator[Mark]:
    tokens = source.tokens
    for i in range(start, end - 2):
        if tokens[i + 1].text == "." and tokens[i + 2].text in _GO_SKIPS and tokens[i].kind == "name":
            line = tokens[i].line
            yield Mark(kind="skip", line=line, text=line_at(text, line))


def _go_assertions(
    file: str, text: str, source: Source, opening: int, regions: Sequence[Region], values: dict[str, list[Token]]
) -> Iterator[Assertion]:
    tokens, end = source.tokens, source.close[opening]
    tests = list(_ifs(source, opening, end))
    for i in range(opening + 1, end - 3):
        if tokens[i].kind != "name" or tokens[i + 1].text != "." or tokens[i + 3].text != "(":
            continue
        owner, name = tokens[i].text, tokens[i + 2].text
        if owner in ("assert", "require") and tokens[i - 1].text != ".":
            arguments = [inserted(a, values) for a in source.arguments(i + 3)][1:]
            yield from _placed(_testify(name, arguments), file, text, tokens[i].line, regions, i)
        elif name in _GO_FAILS and owner in ("t", "b", "tt", "tb", "f"):
            around = [t for t in tests if t[1] < i < t[2]]
            if around:
                head, _, _ = max(around, key=lambda t: t[1])
                inner, local = _head(head, values)
                yield from _placed(
                    condition(inserted(inner, local), negated=True), file, text, head[0].line, regions, i
                )
            else:
                fails = [Said(operator="fail", rank=Rank.NEAR, subject=tokens[i + 2 : i + 3])]
                yield from _placed(fails, file, text, tokens[i].line, regions, i)


def _ifs(source: Source, start: int, end: int) -> Iterator[tuple[list[Token], int, int]]:
    """The conditions of a function with the blocks that they guard."""
    tokens = source.tokens
    for i in range(start, end):
        if tokens[i].text == "if":
            block = i + 1
            while block < end and tokens[block].text != "{":
                block = source.close.get(block, block) + 1
            if block in source.close and tokens[i + 1 : block]:
                yield list(tokens[i + 1 : block]), block, source.close[block]


def _head(head: list[Token], values: dict[str, list[Token]]) -> tuple[list[Token], dict[str, list[Token]]]:
    """The condition of `if v := f(); v != w`, and the values that hold in it."""
    parts = split(head, ";")
    if len(parts) == 2:
        return parts[1], values | _values(parts[0], ":=")
    return head, values


def _testify(name: str, arguments: list[list[Token]]) -> Iterator[Said]:
    name = name.removesuffix("f") if name.endswith("f") and name != "f" else name
    if name in _GO_EQUAL and len(arguments) > 1:
        yield equality(arguments[1], arguments[0])
    elif name in ("InDelta", "InEpsilon") and len(arguments) > 2:
        yield near(arguments[1], arguments[0], number(arguments[2]) or 0.0)
    elif name in ("True", "False") and arguments:
        yield from condition(arguments[0], negated=name == "False")
    elif arguments:
        joined = [t for a in arguments[1:] for t in a]
        yield Said(operator=name, rank=_GO_RANKS.get(name, Rank.NEAR), subject=arguments[0], expected=joined)


def _placed(
    claims: Iterator[Said] | Sequence[Said], file: str, text: str, line: int, regions: Sequence[Region], at: int
) -> Iterator[Assertion]:
    lost, by = lost_at(regions, at)
    for said in claims:
        yield replace(said.assertion(line=line, text=line_at(text, line), file=file), lost=lost, lost_by=by)


def _rows(source: Source, start: int, end: int) -> Iterator[Row]:
    """The elements of tables: groups of values that stand in a group of values."""
    tokens = source.tokens
    for i, close in source.close.items():
        if not start < i < end or tokens[i].text != "{":
            continue
        element = tokens[i - 1].text in ("{", ",", ":") and tokens[close + 1].text in ("}", ",", ";")
        inner = tokens[i + 1 : close]
        plain = not any(t.text in ("func", "return", "=", ":=", "struct") for t in inner)
        if element and inner and plain:
            values = [part[2:] if part[1:2] and part[1].text == ":" else part for part in split(inner, ",")]
            yield Row(key=" , ".join(map(words, values)), line=tokens[i].line, literals=literals(inner))


def _values(body: Sequence[Token], sign: str) -> dict[str, list[Token]]:
    """Names that are given one value in a block, with its tokens."""
    values: dict[str, list[Token]] = {}
    stored: list[str] = []
    for statement in statements(body):
        flat = [t for t in statement if t.text != "mut"]
        flat = flat[1:] if flat and flat[0].text in ("let", "var") else flat
        if len(flat) > 2 and flat[0].kind == "name" and flat[1].text in (sign, "="):
            stored.append(flat[0].text)
            if not any(t.text in ("{", "func", "|") for t in flat[2:]):
                values[flat[0].text] = inserted(flat[2:], values)
    return {n: v for n, v in values.items() if stored.count(n) == 1}


# -- Rust


def read_rust(file: str, text: str, rules: Collection) -> Sheet:
    """The tests of a Rust file, those inside of code included; helpers only where they stand among tests."""
    source = read_source(text, "rust")
    tokens = source.tokens
    regions = native_regions(source, text)
    modules = list(_modules(source, text))
    cases = []
    for i, token in enumerate(tokens[:-2]):
        if token.text != "fn" or tokens[i + 1].kind != "name":
            continue
        opening = next((j for j in range(i + 2, len(tokens)) if tokens[j].text in ("{", ";")), 0)
        if opening not in source.close:
            continue
        attributes = _attributes(source, i)
        around = [m for m in modules if m[0] < i < m[1]]
        test = any(_RUST_TEST.search(words(a)) for a in attributes)
        beside = bool(around) or "tests/" in f"{file}"
        if test or beside:
            marks = [m for _, _, ms in around for m in ms] + _rust_marks(attributes, text)
            cases.append(_rust_case(file, text, source, (i, opening), test, marks, attributes, regions))
    return Sheet(file=file, cases=tuple(cases), comments=source.comments)


def _attributes(source: Source, at: int) -> list[list[Token]]:
    """The insides of the `#[...]` in front of an item, the nearest first."""
    opened = {end: start for start, end in source.close.items()}
    tokens = source.tokens
    i = at - 1
    while i > 0 and tokens[i].text in ("pub", "async", "unsafe", "const", "extern"):
        i -= 1
    found_: list[list[Token]] = []
    while i > 0 and tokens[i].text == "]" and i in opened and tokens[opened[i] - 1].text == "#":
        found_.append(list(tokens[opened[i] + 1 : i]))
        i = opened[i] - 2
    return found_


def _modules(source: Source, text: str) -> Iterator[tuple[int, int, list[Mark]]]:
    """The modules that hold tests, by their attribute or name, and what switches them off."""
    tokens = source.tokens
    for i, token in enumerate(tokens[:-2]):
        if token.text == "mod" and tokens[i + 2].text == "{" and i + 2 in source.close:
            attributes = _attributes(source, i)
            named = tokens[i + 1].text in ("test", "tests") or any("test" in words(a) for a in attributes)
            if named:
                yield i + 2, source.close[i + 2], _rust_marks(attributes, text)


def _rust_marks(attributes: Sequence[Sequence[Token]], text: str) -> list[Mark]:
    marks = []
    for attribute in attributes:
        said = words(attribute)
        line = attribute[0].line if attribute else 1
        shown = line_at(text, line)
        if said.startswith(("ignore", "cfg_attr")) and "ignore" in said:
            marks.append(Mark(kind="skip", line=line, text=shown))
        elif said.startswith("should_panic"):
            marks.append(Mark(kind="xfail", line=line, text=shown))
        elif said.startswith("cfg (") and said != "cfg ( test )":
            machine = re.search(r"target_|unix|windows|feature", said) is not None
            marks.append(Mark(kind="skip", line=line, text=shown, certain=not machine))
    return marks


def _rust_case(
    file: str,
    text: str,
    source: Source,
    at: tuple[int, int],
    test: bool,
    marks: Sequence[Mark],
    attributes: Sequence[Sequence[Token]],
    regions: Sequence[Region],
) -> Case:
    start, opening = at
    end = source.close[opening]
    body = list(source.tokens[opening + 1 : end])
    line = source.tokens[start].line
    given = [a for a in attributes if words(a[:1]) in ("case", "test_case") and len(a) > 2]
    return Case(
        file=file,
        name=source.tokens[start + 1].text,
        line=line,
        text=line_at(text, line),
        collected=test,
        assertions=tuple(_rust_assertions(file, text, source, opening, regions, _values(body, "="))),
        marks=tuple(marks),
        rows=(
            *(Row(key=words(a[1:]), line=a[0].line, literals=literals(a)) for a in reversed(given)),
            *_tuples(source, opening, end),
        ),
        body=grams(body),
        empty=not body or words(body) == "return",
        literals=literals(body),
        language="rust",
    )


def _tuples(source: Source, start: int, end: int) -> Iterator[Row]:
    """The elements of a list of tuples."""
    tokens = source.tokens
    for i, close in source.close.items():
        if start < i < end and tokens[i].text == "(" and tokens[i - 1].text in ("[", ","):
            inner = tokens[i + 1 : close]
            after = tokens[close + 1].text if close + 1 < len(tokens) else ""
            if after in (",", "]") and inner and len(split(inner, ",")) > 1 and any(t.is_literal() for t in inner):
                yield Row(key=words(inner), line=tokens[i].line, literals=literals(inner))


def _rust_assertions(
    file: str, text: str, source: Source, opening: int, regions: Sequence[Region], values: dict[str, list[Token]]
) -> Iterator[Assertion]:
    tokens, end = source.tokens, source.close[opening]
    tests = list(_ifs(source, opening, end))
    for i in range(opening + 1, end - 2):
        name = tokens[i].text
        if name not in _RUST_MACROS or tokens[i + 1].text != "!" or i + 2 not in source.close:
            continue
        arguments = [inserted(a, values) for a in source.arguments(i + 2)]
        around = [t for t in tests if t[1] < i < t[2]]
        if name in ("panic", "unreachable"):
            if around:
                head, _, _ = max(around, key=lambda t: t[1])
                said = condition(inserted(head, values), negated=True)
                yield from _placed(said, file, text, head[0].line, regions, i)
            continue
        yield from _placed(_rust_said(name, arguments), file, text, tokens[i].line, regions, i)


def _rust_said(name: str, arguments: list[list[Token]]) -> Iterator[Said]:
    if name.endswith("assert_eq") and len(arguments) > 1:
        yield equality(arguments[0], arguments[1])
    elif name.endswith("assert_ne") and len(arguments) > 1:
        yield Said(operator="!=", rank=Rank.ANYTHING, subject=arguments[0], expected=arguments[1])
    elif name == "assert_matches" and len(arguments) > 1:
        yield Said(operator="matches", rank=Rank.NEAR, subject=arguments[0], expected=arguments[1])
    elif arguments:
        yield from condition(arguments[0])
