"""A JavaScript or TypeScript test file read as tests: jest, vitest, mocha with chai, node:test, plain asserts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .tamper_files import Collection, found
from .tamper_model import TOP, Assertion, Case, Mark, Row, Sheet, line_at
from .tamper_regions import Region, lost_at, script_regions
from .tamper_scriptassert import assertion_at
from .tamper_tokens import Source, Token, grams, inserted, literals, read_source, split, statements, words

_GROUPS = frozenset({"describe", "suite", "context", "xdescribe", "fdescribe", "xcontext"})
_TESTS = frozenset({"it", "test", "specify", "xit", "xtest", "fit", "xspecify", "ftest"})
_OFF = frozenset({"skip", "todo", "fixme"})
_TURNED = frozenset({"fails", "failing", "fail"})
_WITH_ARGUMENT = frozenset({"each", "for", "skipIf", "runIf"})
_SKIPPERS = frozenset({"this", "t", "ctx", "context", "test", "it", "task"})
_MOCKERS = frozenset({"jest", "vi", "vitest", "mock", "td", "sinon"})


@dataclass(frozen=True, slots=True)
class _Block:
    """One `describe(...)` or `it(...)`: where it starts and ends, its title, what switches it off."""

    at: int
    opening: int
    end: int
    title: str
    group: bool
    marks: tuple[Mark, ...]
    rows: tuple[Row, ...]


def read_script(file: str, text: str, rules: Collection) -> Sheet:
    """The tests of a file."""
    source = read_source(text, "script")
    blocks = list(_blocks(source, text))
    regions = script_regions(source, text)
    values = _module_values(source)
    taken: dict[str, int] = {}
    cases = []
    for block in blocks:
        if not block.group:
            cases.append(_case(file, text, source, block, blocks, regions, values, found(file, rules)))
    cases = [_numbered(c, taken) for c in cases]
    rest = _rest(file, text, source, blocks, regions, values, found(file, rules))
    imports = _imports(source)
    return Sheet(
        file=file,
        cases=(*cases, rest) if rest.assertions or rest.rows else tuple(cases),
        comments=source.comments,
        imports=frozenset(n for names in imports.values() for n in names),
        defines=dict(_defines(source)),
        mocks=tuple(m for m in _mocks(source, 0, len(source.tokens), text, imports) if _outside(m, blocks, source)),
    )


def _outside(mark: Mark, blocks: Sequence[_Block], source: Source) -> bool:
    spans = ((source.tokens[b.at].line, source.tokens[b.end].line) for b in blocks if not b.group)
    return not any(a <= mark.line <= z for a, z in spans)


def _numbered(case: Case, taken: dict[str, int]) -> Case:
    taken[case.name] = taken.get(case.name, 0) + 1
    number = taken[case.name]
    return case if number == 1 else replace(case, name=f"{case.name} #{number}")


# -- where tests are


def _blocks(source: Source, text: str) -> Iterator[_Block]:
    tokens = source.tokens
    for i, token in enumerate(tokens):
        if (
            token.kind != "name"
            or token.text not in _GROUPS | _TESTS
            or (i and tokens[i - 1].text in (".", "function"))
        ):
            continue
        block = _block(source, i, text)
        if block is not None:
            yield block


def _block(source: Source, at: int, text: str) -> _Block | None:
    tokens = source.tokens
    name, i = tokens[at].text, at + 1
    modifiers: list[str] = []
    rows: list[Row] = []
    while i + 1 < len(tokens) and tokens[i].text == "." and tokens[i + 1].kind == "name":
        modifiers.append(tokens[i + 1].text)
        i += 2
        if modifiers[-1] in _WITH_ARGUMENT and i < len(tokens):
            rows += _given(source, i) if modifiers[-1] in ("each", "for") else []
            i = source.close.get(i, i) + 1
            if i < len(tokens) and tokens[i].text == "<":
                return None
    if i >= len(tokens) or tokens[i].text != "(" or i not in source.close:
        return None
    parts = source.arguments(i)
    if not parts or not (parts[0][0].kind in ("string", "name") or len(parts) > 1):
        return None
    marks = tuple(_block_marks(name, modifiers, parts, tokens[at].line, text))
    return _Block(at, i, source.close[i], words(parts[0]).strip('"'), name in _GROUPS, marks, tuple(rows))


def _given(source: Source, at: int) -> list[Row]:
    """The rows of `each([...])` or of an `each` table."""
    token = source.tokens[at]
    if token.kind == "string":
        lines = token.text.strip("`").splitlines()
        return [_row_of_text(line, token.line + n) for n, line in enumerate(lines) if "${" in line]
    inner = source.tokens[at + 1 : source.close.get(at, at + 1)]
    return list(rows_in(inner))


def _row_of_text(line: str, number: int) -> Row:
    values = re.findall(r"\$\{([^}]*)\}", line)
    return Row(key=" ".join(line.split()), line=number, literals=frozenset(v.strip() for v in values))


def rows_in(tokens: Sequence[Token]) -> Iterator[Row]:
    """The elements of a list that is written out."""
    if tokens and tokens[0].text == "[" and tokens[-1].text == "]":
        for part in split(tokens[1:-1], ","):
            if part:
                yield Row(key=words(part), line=part[0].line, literals=literals(part))


def _block_marks(name: str, modifiers: list[str], parts: list[list[Token]], line: int, text: str) -> Iterator[Mark]:
    shown = line_at(text, line)
    kinds = {"skip": name.startswith("x") or bool(_OFF & set(modifiers))}
    kinds["only"] = name in ("fit", "fdescribe", "ftest") or "only" in modifiers
    kinds["xfail"] = bool(_TURNED & set(modifiers))
    conditional = {"skipIf", "runIf"} & set(modifiers)
    for part in parts[1:]:
        if part[0].text == "{" and part[-1].text == "}":
            for option in split(part[1:-1], ","):
                if len(option) >= 3 and option[1].text == ":" and option[2].text not in ("false", "undefined"):
                    kinds["skip"] |= option[0].text in ("skip", "todo")
                    kinds["only"] |= option[0].text == "only"
    yield from (Mark(kind=k, line=line, text=shown) for k, v in kinds.items() if v)
    if conditional:
        yield Mark(kind="skip", line=line, text=shown, certain="platform" not in shown and "version" not in shown)


def _body_marks(source: Source, start: int, end: int, text: str) -> Iterator[Mark]:
    tokens = source.tokens
    for i in range(start, min(end, len(tokens) - 3)):
        name = tokens[i].text
        skips = name in _SKIPPERS and tokens[i + 1].text == "." and tokens[i + 2].text in ("skip", "todo", "fixme")
        if skips and tokens[i + 3].text == "(" and tokens[i - 1].text != ".":
            argument = tokens[i + 4] if i + 4 < len(tokens) else tokens[i]
            if name not in ("test", "it") or argument.kind != "string":
                yield Mark(kind="skip", line=tokens[i].line, text=line_at(text, tokens[i].line))
        if name == "pending" and tokens[i + 1].text == "(" and tokens[i - 1].text != ".":
            yield Mark(kind="skip", line=tokens[i].line, text=line_at(text, tokens[i].line))


# -- what tests say


def _case(
    file: str,
    text: str,
    source: Source,
    block: _Block,
    blocks: Sequence[_Block],
    regions: Sequence[Region],
    values: dict[str, list[Token]],
    where: int,
) -> Case:
    around = [b for b in blocks if b.at < block.at and b.end > block.end]
    inside = [b for b in blocks if block.at < b.at and b.end < block.end]
    tokens = source.tokens[block.opening + 1 : block.end]
    body = _body_of(source, block)
    line = source.tokens[block.at].line
    local = {**values, **_values(body)}
    # Only the innermost groups' own switches count: a group's mark is each of its tests' mark.
    marks = [m for b in (*around, block) for m in b.marks]
    return Case(
        file=file,
        name=" > ".join([*(b.title for b in around), block.title]),
        line=line,
        text=line_at(text, line),
        collected=where > 0,
        assertions=tuple(_assertions(file, text, source, block.opening, block.end, inside, regions, local)),
        marks=(*marks, *_body_marks(source, block.opening, block.end, text)),
        mocks=tuple(_mocks(source, block.opening, block.end, text, _imports(source))),
        rows=tuple(r for b in (*around, block) for r in b.rows),
        body=grams(body),
        empty=_is_empty(body),
        literals=literals(tokens),
        language="script",
        found=where,
    )


def _body_of(source: Source, block: _Block) -> list[Token]:
    """What stands in the braces of a test's function, or behind its arrow."""
    for part in reversed(source.arguments(block.opening)[1:]):
        names = [t.text for t in part]
        if "=>" in names:
            rest = part[names.index("=>") + 1 :]
            return list(rest[1:-1]) if rest and rest[0].text == "{" else list(rest)
        if "function" in names and "{" in names:
            return list(part[names.index("{") + 1 : -1])
    return []


def _is_empty(body: Sequence[Token]) -> bool:
    return not body or (body[0].text == "return" and len(body) <= 2)


def _rest(
    file: str,
    text: str,
    source: Source,
    blocks: Sequence[_Block],
    regions: Sequence[Region],
    values: dict[str, list[Token]],
    where: int,
) -> Case:
    """What is asserted outside every test: in helpers, in hooks, or by a script that is a test itself."""
    tests = [b for b in blocks if not b.group]
    assertions = tuple(_assertions(file, text, source, 0, len(source.tokens), tests, regions, values))
    return Case(
        file=file,
        name=TOP,
        line=1,
        text=line_at(text, 1),
        collected=where > 0 and bool(assertions),
        assertions=assertions,
        rows=tuple(_looped(source)),
        body=grams(source.tokens) if not tests else grams(()),
        literals=literals(source.tokens) if not tests else frozenset(),
        language="script",
        found=where,
    )


def _looped(source: Source) -> Iterator[Row]:
    """The elements of lists that are written out and looped over."""
    tokens = source.tokens
    for i, end in source.close.items():
        if tokens[i].text != "[":
            continue
        method = end + 2 < len(tokens) and tokens[end + 1].text == "." and tokens[end + 2].text == "forEach"
        if method or (i and tokens[i - 1].text == "of"):
            yield from rows_in(tokens[i : end + 1])


def _assertions(
    file: str,
    text: str,
    source: Source,
    start: int,
    end: int,
    without: Sequence[_Block],
    regions: Sequence[Region],
    values: dict[str, list[Token]],
) -> Iterator[Assertion]:
    i = start
    spans = {b.at: b.end for b in without}
    while i < end:
        if i in spans:
            i = spans[i] + 1
            continue
        for said in assertion_at(source, i, values):
            line = source.tokens[i].line
            made = said.assertion(line=line, text=line_at(text, line), file=file)
            lost, by = lost_at(regions, i)
            yield replace(made, lost=lost, lost_by=by)
        i += 1


def _values(body: Sequence[Token]) -> dict[str, list[Token]]:
    """`const` names of a block with the tokens of their values, earlier ones put in."""
    values: dict[str, list[Token]] = {}
    for statement in statements(body):
        names = [t.text for t in statement[:4]]
        if names[:1] == ["const"] and len(statement) > 3 and statement[1].kind == "name" and "=" in names[2:3]:
            value = statement[3:]
            value = value[1:] if value and value[0].text == "await" else value
            if value and "=>" not in [t.text for t in value] and value[0].text not in ("function", "{", "["):
                values[statement[1].text] = inserted(value, values)
    return values


def _module_values(source: Source) -> dict[str, list[Token]]:
    plain = _values(source.tokens)
    return {n: v for n, v in plain.items() if len(v) <= 2 and all(t.is_literal() or t.text == "-" for t in v)}


# -- what tests put in the place of code


def _imports(source: Source) -> dict[str, tuple[str, ...]]:
    """Names by the module that they come from."""
    tokens = source.tokens
    found: dict[str, tuple[str, ...]] = {}
    for i, token in enumerate(tokens):
        if token.text == "from" and i + 1 < len(tokens) and tokens[i + 1].kind == "string":
            start = next((j for j in range(i, max(-1, i - 80), -1) if tokens[j].text == "import"), i)
            names = tuple(t.text for t in tokens[start + 1 : i] if t.kind == "name" and t.text not in ("as", "type"))
            found[tokens[i + 1].text[1:-1]] = names
        elif token.text == "require" and i > 1 and tokens[i - 1].text == "=" and i + 2 < len(tokens):
            required: list[str] = []
            for j in range(i - 2, max(-1, i - 60), -1):
                if tokens[j].text in ("const", "let", "var"):
                    break
                required += [tokens[j].text] if tokens[j].kind == "name" else []
            found[tokens[i + 2].text[1:-1]] = tuple(required)
    return found


def _defines(source: Source) -> Iterator[tuple[str, int]]:
    depth = 0
    for token, after in zip(source.tokens, source.tokens[1:], strict=False):
        if token.kind == "punct":
            depth += (token.text in "({[") - (token.text in ")}]")
        elif depth == 0 and token.text in ("const", "let", "var", "function", "class") and after.kind == "name":
            yield after.text, after.line


def _mocks(source: Source, start: int, end: int, text: str, imports: dict[str, tuple[str, ...]]) -> Iterator[Mark]:
    tokens = source.tokens
    for i in range(start, min(end, len(tokens) - 4)):
        if tokens[i].text not in _MOCKERS or tokens[i + 1].text != "." or tokens[i + 3].text != "(":
            continue
        line = tokens[i].line
        parts = source.arguments(i + 3)
        act = tokens[i + 2].text
        if act in ("mock", "doMock", "unstable_mockModule", "module", "setMock") and parts:
            module = parts[0][0].text[1:-1]
            names = imports.get(module, ())
            yield from (Mark(kind="mock", line=line, text=line_at(text, line), name=n) for n in names)
        elif act in ("spyOn", "stub", "method", "replace", "replaceProperty") and len(parts) > 1:
            after = [t.text for t in tokens[source.close[i + 3] : source.close[i + 3] + 3]]
            replaced = act != "spyOn" or any(a.startswith("mock") for a in after)
            if replaced and parts[1][0].kind == "string":
                yield Mark(kind="mock", line=line, text=line_at(text, line), name=parts[1][0].text[1:-1])
