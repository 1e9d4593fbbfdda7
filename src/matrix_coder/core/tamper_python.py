"""A Python test file read as tests: what each asserts, what keeps it from running, what it replaces."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from . import tamper_pyexpr as px
from .tamper_files import Collection, found
from .tamper_model import TOP, Case, Mark, Row, Sheet, line_at
from .tamper_pymarks import decorator_marks, file_marks, mock_marks, off_marks, parametrized, rows_of
from .tamper_pywalk import Function, Scope, Walker, constants, is_false


@lru_cache(maxsize=32)
def parse(text: str) -> ast.Module | None:
    """The syntax tree, or None for what Python can't read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def scope_of(file: str, text: str) -> Scope | None:
    """The scope of a file on its own; None for what Python can't read."""
    tree = parse(text)
    if tree is None:
        return None
    return Scope(file, text, _helpers(tree), constants(tree.body), {})


def _helpers(tree: ast.Module) -> dict[str, Function]:
    """The functions of a file that are no tests and that assert, methods included, by their names.

    One that asserts only through another of them counts too.
    """
    functions = (n for n in ast.walk(tree) if isinstance(n, Function))
    rest = {f.name: f for f in functions if not f.name.startswith("test")}
    called = {name: set(_calls(f)) for name, f in rest.items()}
    found_: dict[str, Function] = {n: f for n, f in rest.items() if _asserts(f)}
    while more := {n for n in rest if n not in found_ and called[n] & set(found_)}:
        found_ |= {n: rest[n] for n in more}
    return found_


def _calls(node: Function) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            yield px.name_of(inner.func)


def _asserts(node: Function) -> bool:
    return any(isinstance(n, ast.Assert) for n in ast.walk(node)) or any(
        name.lower().startswith("assert") or name in ("raises", "fail") for name in _calls(node)
    )


def read_python(file: str, text: str, rules: Collection, shared: Mapping[str, Scope] | None = None) -> Sheet:
    """The tests of a file. `shared` are the scopes of other files of the tree, by their modules' last names."""
    tree = parse(text)
    if tree is None:
        return Sheet(file=file, readable=False)
    imported = dict(_imported_helpers(tree, shared or {}))
    scope = Scope(file, text, _helpers(tree), constants(tree.body), imported)
    cases = [_case(scope, f, owner, rules, seen) for f, owner, seen in _functions(tree, rules)]
    if found(file, rules) and not any(c.collected for c in cases):
        cases.append(_script(scope, tree))
    return Sheet(
        file=file,
        cases=tuple(cases),
        marks=tuple(file_marks(tree, text)),
        comments="\n".join((*_comments(text), *_strings(tree))),
        imports=frozenset(_imports(tree)),
        defines=dict(_defines(tree)),
        mocks=tuple(m for s in tree.body if not isinstance(s, Function | ast.ClassDef) for m in mock_marks(s, text)),
    )


def _imported_helpers(tree: ast.Module, shared: Mapping[str, Scope]) -> Iterator[tuple[str, tuple[Function, Scope]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            scope = shared.get((node.module or "").rsplit(".", 1)[-1])
            for name in node.names:
                if scope is not None and name.name in scope.helpers:
                    yield name.asname or name.name, (scope.helpers[name.name], scope)


def _comments(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if "#" in line:
            yield f"{number}\t{line[line.index('#') + 1 :]}"


def _strings(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str() as words)):
                yield from (f"{node.lineno + i}\t{line}" for i, line in enumerate(words.splitlines()))
            case _:
                pass


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (a.asname or a.name.split(".")[0] for a in node.names)


def _defines(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in tree.body:
        if isinstance(node, Function | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.Assign):
            yield from ((t.id, node.lineno) for t in node.targets if isinstance(t, ast.Name))


def _functions(tree: ast.Module, rules: Collection) -> Iterator[tuple[Function, ast.ClassDef | None, bool]]:
    """Every function that a name stands for at the end, its class, and whether the runner looks at it."""
    for node in _visible(tree.body):
        if isinstance(node, Function):
            yield node, None, rules.takes_function(node.name)
        elif isinstance(node, ast.ClassDef):
            taken = _class_is_taken(node, rules)
            for inner in _visible(node.body):
                if isinstance(inner, Function):
                    yield inner, node, taken and rules.takes_function(inner.name)


def _class_is_taken(node: ast.ClassDef, rules: Collection) -> bool:
    plain = rules.takes_class(node.name) and not any(
        isinstance(n, Function) and n.name == "__init__" for n in node.body
    )
    bases = [ast.unparse(b).rsplit(".", 1)[-1] for b in node.bases]
    return plain or any("Test" in b or b.endswith("Case") for b in bases)


def _visible(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The definitions that are left when the body has run: a later one, an assignment or `del` takes a name away."""
    named: dict[str, ast.stmt] = {}
    for node in _flat(body):
        if isinstance(node, Function | ast.ClassDef):
            named[node.name] = node
        for name in _unbound(node):
            named.pop(name, None)
    return list(named.values())


def _flat(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        yield node
        if (isinstance(node, ast.If) and not is_false(node.test)) or isinstance(node, ast.Try):
            yield from _flat([*node.body, *node.orelse])


def _unbound(node: ast.stmt) -> Iterator[str]:
    targets: Sequence[ast.expr] = ()
    if isinstance(node, ast.Assign | ast.Delete):
        targets = node.targets
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id


def _case(scope: Scope, node: Function, owner: ast.ClassDef | None, rules: Collection, seen: bool) -> Case:
    where = found(scope.file, rules)
    walker = Walker(scope, follow=seen)
    walker.function(node, {})
    body = _without_docstring(node.body)
    marks = [*decorator_marks(node.decorator_list, scope.text), *off_marks(node, scope.text)]
    if owner is not None:
        marks += decorator_marks(owner.decorator_list, scope.text) + off_marks_of_class(owner, scope.text)
    return Case(
        file=scope.file,
        name=f"{owner.name}::{node.name}" if owner else node.name,
        line=node.lineno,
        text=line_at(scope.text, node.lineno),
        collected=seen and where > 0,
        assertions=tuple(walker.assertions),
        marks=tuple(marks),
        mocks=tuple(mock_marks(node, scope.text)),
        rows=tuple(_rows(node, scope)),
        body=_body(body),
        empty=all(_is_nothing(s) for s in body),
        literals=frozenset(px.literals(node)),
        language="python",
        found=where,
    )


def off_marks_of_class(owner: ast.ClassDef, text: str) -> list[Mark]:
    """What switches off every test of a class: a mark in its body."""
    return [m for s in owner.body if not isinstance(s, Function) for m in off_marks(s, text)]


def _script(scope: Scope, tree: ast.Module) -> Case:
    """A file without tests that asserts when it is run: its top level is the test."""
    walker = Walker(scope)
    walker.block(tree.body, "", "", dict(scope.constants))
    statements = [s for s in tree.body if not isinstance(s, Function | ast.ClassDef | ast.Import | ast.ImportFrom)]
    return Case(
        file=scope.file,
        name=TOP,
        line=1,
        text=line_at(scope.text, 1),
        collected=bool(walker.assertions),
        assertions=tuple(walker.assertions),
        body=_body(statements),
        literals=frozenset(px.literals(tree)),
        language="python",
    )


def _rows(node: Function, scope: Scope) -> Iterator[Row]:
    for values in parametrized(node.decorator_list, scope.constants):
        yield from rows_of(values)
    for inner in ast.walk(node):
        if isinstance(inner, ast.For):
            iterated = px.named(inner.iter, scope.constants)
            if isinstance(iterated, ast.List | ast.Tuple | ast.Set):
                yield from rows_of(iterated.elts)


def _body(body: Sequence[ast.stmt]) -> Counter[str]:
    lines = (line.strip() for s in body for line in ast.unparse(s).splitlines())
    return Counter(line for line in lines if line)


def _without_docstring(body: Sequence[ast.stmt]) -> Sequence[ast.stmt]:
    first = body[0] if body else None
    plain = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    return body[1:] if plain else body


def _is_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.Return):
        return node.value is None or isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
