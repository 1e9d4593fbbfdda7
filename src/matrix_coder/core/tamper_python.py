"""A Python test file read as tests: what each asserts, what keeps it from running, what it replaces."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from . import tamper_pyassert as pa
from .tamper_files import Collection, found
from .tamper_model import TOP, Assertion, Case, Mark, Row, Sheet, line_at
from .tamper_pymarks import decorator_marks, file_marks, mock_marks, off_marks, parametrized, rows_of

Function = ast.FunctionDef | ast.AsyncFunctionDef
_SWALLOWING = frozenset({"AssertionError", "Exception", "BaseException", "Failed"})
_EXIT_CALLS = frozenset({"skip", "skipTest", "xfail", "exit", "_exit", "abort"})
_DEPTH = 3
# How many statements of helpers are followed for one test.
_BUDGET = 2_000


def parse(text: str) -> ast.Module | None:
    """The syntax tree, or None for what Python can't read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


@dataclass(frozen=True, slots=True)
class Scope:
    """What the code of one file can see: its helpers by name, others' that it imports, its constants' values."""

    file: str
    text: str
    helpers: Mapping[str, Function]
    constants: Mapping[str, ast.expr]
    imported: Mapping[str, tuple[Function, Scope]]


def scope_of(file: str, text: str) -> Scope | None:
    """The scope of a file on its own; None for what Python can't read."""
    tree = parse(text)
    if tree is None:
        return None
    return Scope(file, text, _helpers(tree), _constants(tree.body), {})


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
            yield pa.name_of(inner.func)


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
    scope = Scope(file, text, _helpers(tree), _constants(tree.body), imported)
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
        if (isinstance(node, ast.If) and not _is_false(node.test)) or isinstance(node, ast.Try):
            yield from _flat([*node.body, *node.orelse])


def _unbound(node: ast.stmt) -> Iterator[str]:
    targets: Sequence[ast.expr] = ()
    if isinstance(node, ast.Assign | ast.Delete):
        targets = node.targets
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id


def _constants(body: Sequence[ast.stmt]) -> dict[str, ast.expr]:
    """Names that stand for one value in the whole block, with that value."""
    stores = Counter(
        n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    )
    values: dict[str, ast.expr] = {}
    for node in body:
        for inner in ast.walk(node):
            match inner:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if stores[name] == 1:
                    values[name] = pa.insert(value, values)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if stores[name] == 1:
                    values[name] = pa.insert(value, values)
                case _:
                    pass
    return {n: v for n, v in values.items() if not isinstance(v, ast.Lambda | ast.Await | ast.Yield)}


def _case(scope: Scope, node: Function, owner: ast.ClassDef | None, rules: Collection, seen: bool) -> Case:
    where = found(scope.file, rules)
    walker = Walker(scope)
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
        literals=frozenset(pa.literals(node)),
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
        literals=frozenset(pa.literals(tree)),
        language="python",
    )


def _rows(node: Function, scope: Scope) -> Iterator[Row]:
    for values in parametrized(node.decorator_list, scope.constants):
        yield from rows_of(values)
    for inner in ast.walk(node):
        if isinstance(inner, ast.For):
            iterated = pa.insert(inner.iter, scope.constants)
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


def _is_false(test: ast.expr) -> bool:
    return (isinstance(test, ast.Constant) and not test.value) or (
        isinstance(test, ast.Name | ast.Attribute) and ast.unparse(test).endswith("TYPE_CHECKING")
    )


class Walker:
    """Collects the assertions of a function, those of the helpers that it calls included."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.assertions: list[Assertion] = []
        self.calling: list[str] = []
        self.seen = 0

    def function(self, node: Function, given: Mapping[str, ast.expr]) -> None:
        values = {**self.scope.constants, **given, **_constants_with(node.body, {**self.scope.constants, **given})}
        for argument in (*node.args.args, *node.args.kwonlyargs):
            if argument.arg not in given:
                values.pop(argument.arg, None)
        self.block(node.body, "", "", values)

    def block(self, body: Sequence[ast.stmt], lost: str, by: str, values: Mapping[str, ast.expr]) -> None:
        for node in body:
            self.statement(node, lost, by, values)
            if not lost and _ends(node):
                lost, by = "unreachable", f"line {node.lineno}: `{line_at(self.scope.text, node.lineno)}`"

    def statement(self, node: ast.stmt, lost: str, by: str, values: Mapping[str, ast.expr]) -> None:
        self.seen += 1
        match node:
            case ast.Assert(test=test):
                self.add(node, pa.claims(pa.insert(test, values)), lost, by)
            case ast.Expr(value=value) | ast.Return(value=ast.expr() as value) | ast.Assign(value=value):
                self.call(node, value, lost, by, values)
            case ast.If(test=test):
                dead = _is_false(test)
                why = ("unreachable", f"`if {ast.unparse(test)}`") if dead and not lost else (lost, by)
                self.block(node.body, *why, values)
                self.block(node.orelse, lost, by, values)
            case ast.Try():
                self.guarded(node, lost, by, values)
            case ast.With() | ast.AsyncWith():
                self.manager(node, lost, by, values)
            case ast.For() | ast.AsyncFor() | ast.While():
                empty = _never_loops(node)
                self.block(
                    node.body, *(("unreachable", "a loop over nothing") if empty and not lost else (lost, by)), values
                )
                self.block(node.orelse, lost, by, values)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self.block(node.body, lost, by, values)
            case ast.Match(cases=cases):
                for one in cases:
                    self.block(one.body, lost, by, values)
            case _:
                pass

    def guarded(self, node: ast.Try, lost: str, by: str, values: Mapping[str, ast.expr]) -> None:
        swallowing = next((h for h in node.handlers if _swallows(h)), None)
        if swallowing is not None and not lost:
            words = line_at(self.scope.text, swallowing.lineno)
            self.block(node.body, "swallowed", f"line {swallowing.lineno}: `{words}`", values)
        else:
            self.block(node.body, lost, by, values)
        for handler in node.handlers:
            self.block(handler.body, lost, by, values)
        self.block(node.orelse, lost, by, values)
        self.block(node.finalbody, lost, by, values)

    def manager(self, node: ast.With | ast.AsyncWith, lost: str, by: str, values: Mapping[str, ast.expr]) -> None:
        inner = (lost, by)
        for item in node.items:
            call = item.context_expr
            name = pa.name_of(call.func) if isinstance(call, ast.Call) else ""
            if not isinstance(call, ast.Call):
                continue
            errors = {ast.unparse(a).rsplit(".", 1)[-1] for a in call.args}
            if name in ("raises", "assertRaises", "assertRaisesRegex", "warns", "assertWarns", "deprecated_call"):
                trivial = len(node.body) == 1 and isinstance(node.body[0], ast.Raise)
                body = "\n".join(pa.text_of_node(_inserted(s, values)) for s in node.body)
                self.add(node, [pa.raises_claim(call, body, trivial)], lost, by)
            if name in ("raises", "assertRaises", "suppress") and errors & _SWALLOWING and not lost:
                inner = ("swallowed", f"line {node.lineno}: `{line_at(self.scope.text, node.lineno)}`")
        self.block(node.body, *inner, values)

    def call(self, node: ast.stmt, value: ast.expr, lost: str, by: str, values: Mapping[str, ast.expr]) -> None:
        if isinstance(value, ast.Await):
            value = value.value
        if not isinstance(value, ast.Call):
            return
        name = pa.name_of(value.func)
        helper, scope = self.helper(value.func)
        if helper is not None and name not in self.calling and len(self.calling) < _DEPTH and self.seen < _BUDGET:
            before = len(self.assertions)
            here, self.scope = self.scope, scope
            self.calling.append(name)
            self.function(helper, _bound(helper, value, values))
            self.calling.pop()
            self.scope = here
            if lost:
                self.assertions[before:] = [replace(a, lost=lost, lost_by=by) for a in self.assertions[before:]]
            if len(self.assertions) > before:
                return
        if name in ("assertRaises", "assertWarns", "raises") and len(value.args) > 1:
            self.add(node, [pa.raises_claim(value, ", ".join(map(pa.text_of_node, value.args[1:])), False)], lost, by)
        inserted = pa.insert(value, values)
        said = pa.call_claims(inserted) if isinstance(inserted, ast.Call) else None
        if said is not None:
            self.add(node, said, lost, by)

    def helper(self, func: ast.expr) -> tuple[Function | None, Scope]:
        """The helper that a call reaches, with the scope of its file: a function, or a method of the same object."""
        if isinstance(func, ast.Name) and func.id in self.scope.imported:
            return self.scope.imported[func.id]
        own = isinstance(func, ast.Name) or (
            isinstance(func.value, ast.Name) and func.value.id in ("self", "cls")
            if isinstance(func, ast.Attribute)
            else False
        )
        return (self.scope.helpers.get(pa.name_of(func)) if own else None), self.scope

    def add(self, node: ast.stmt, said: Iterator[pa.Claim] | Sequence[pa.Claim], lost: str, by: str) -> None:
        text = line_at(self.scope.text, node.lineno)
        for claim in said:
            made = claim.assertion(line=node.lineno, text=text, file=self.scope.file)
            self.assertions.append(replace(made, lost=lost, lost_by=by))


def _constants_with(body: Sequence[ast.stmt], outer: Mapping[str, ast.expr]) -> dict[str, ast.expr]:
    local = _constants(body)
    return {name: pa.insert(value, {k: v for k, v in outer.items() if k not in local}) for name, value in local.items()}


def _bound(helper: Function, call: ast.Call, values: Mapping[str, ast.expr]) -> dict[str, ast.expr]:
    """A helper's parameters with what this call gives for them."""
    names = [a.arg for a in (*helper.args.posonlyargs, *helper.args.args)]
    if names and names[0] in ("self", "cls") and isinstance(call.func, ast.Attribute):
        names = names[1:]
    given = dict(zip(names, call.args, strict=False))
    given |= {k.arg: k.value for k in call.keywords if k.arg}
    return {n: pa.insert(v, values) for n, v in given.items() if not isinstance(v, ast.Starred)}


def _inserted(node: ast.stmt, values: Mapping[str, ast.expr]) -> ast.stmt:
    if isinstance(node, ast.Expr):
        return ast.Expr(value=pa.insert(node.value, values))
    return node


def _ends(node: ast.stmt) -> bool:
    """Whether what follows in the block is never reached."""
    if isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break):
        return True
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and pa.name_of(call.func) in _EXIT_CALLS


def _swallows(handler: ast.ExceptHandler) -> bool:
    caught = [handler.type] if not isinstance(handler.type, ast.Tuple) else handler.type.elts
    names = {"BaseException" if c is None else ast.unparse(c).rsplit(".", 1)[-1] for c in caught}
    loud = any(
        isinstance(n, ast.Raise | ast.Assert)
        or (isinstance(n, ast.Call) and (pa.name_of(n.func) == "fail" or pa.name_of(n.func).startswith("assert")))
        for s in handler.body
        for n in ast.walk(s)
    )
    return bool(names & _SWALLOWING) and not loud


def _never_loops(node: ast.For | ast.AsyncFor | ast.While) -> bool:
    if isinstance(node, ast.While):
        return _is_false(node.test)
    return isinstance(node.iter, ast.List | ast.Tuple) and not node.iter.elts
