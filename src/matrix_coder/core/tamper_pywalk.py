"""What a Python test asserts, statement by statement, through its local names and the helpers that it calls."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from . import tamper_pyassert as pa
from . import tamper_pyexpr as px
from .tamper_model import Assertion, line_at

Function = ast.FunctionDef | ast.AsyncFunctionDef
_SWALLOWING = frozenset({"AssertionError", "Exception", "BaseException", "Failed"})
_EXIT_CALLS = frozenset({"skip", "skipTest", "xfail", "exit", "_exit", "abort"})
_DEPTH = 3
_GROWING = frozenset({"append", "extend", "add", "update", "insert", "pop", "remove", "clear", "setdefault", "sort"})
# How many statements of helpers are followed for one test.
_BUDGET = 400


@dataclass(frozen=True, slots=True)
class Scope:
    """What the code of one file can see: its helpers by name, others' that it imports, its constants' values."""

    file: str
    text: str
    helpers: Mapping[str, Function]
    constants: Mapping[str, ast.expr]
    imported: Mapping[str, tuple[Function, Scope]]
    # Values of local names by function, computed once: helpers are followed from many tests.
    locals_: dict[int, dict[str, ast.expr]] = field(default_factory=dict)


def constants(body: Sequence[ast.stmt]) -> dict[str, ast.expr]:
    """Names that stand for one value in the whole block, with that value."""
    stores = Counter(
        n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    )
    values: dict[str, ast.expr] = {}
    for node in body:
        for inner in ast.walk(node):
            match inner:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if stores[name] == 1:
                    values[name] = px.insert(value, values)
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if stores[name] == 1:
                    values[name] = px.insert(value, values)
                case _:
                    pass
    grown = _grown(body)
    return {n: v for n, v in values.items() if n not in grown and not isinstance(v, ast.Lambda | ast.Await | ast.Yield)}


def _grown(body: Sequence[ast.stmt]) -> set[str]:
    """Names of lists and the like that are filled after they were made: their first value says nothing."""
    names: set[str] = set()
    for node in (n for s in body for n in ast.walk(s)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) if method in _GROWING:
                names.add(name)
            case ast.AugAssign(target=ast.Name(id=name)) | ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()):
                names.add(name)
            case _:
                pass
    return names


def is_false(test: ast.expr) -> bool:
    return (isinstance(test, ast.Constant) and not test.value) or (
        isinstance(test, ast.Name | ast.Attribute) and ast.unparse(test).endswith("TYPE_CHECKING")
    )


class Walker:
    """Collects the assertions of a function, those of the helpers that it calls included."""

    def __init__(self, scope: Scope, *, follow: bool = True) -> None:
        self.scope = scope
        self.follow = follow
        self.assertions: list[Assertion] = []
        self.calling: list[str] = []
        self.seen = 0

    def function(self, node: Function, given: Mapping[str, ast.expr]) -> None:
        local = self.scope.locals_.get(id(node))
        if local is None:
            local = self.scope.locals_[id(node)] = constants(node.body)
        outer = {k: v for k, v in {**self.scope.constants, **given}.items() if k not in local}
        values = outer | {name: px.insert(value, outer) for name, value in local.items()}
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
                self.add(node, pa.claims(px.insert(test, values)), lost, by)
            case ast.Expr(value=value) | ast.Return(value=ast.expr() as value) | ast.Assign(value=value):
                self.call(node, value, lost, by, values)
            case ast.If(test=test):
                dead = is_false(test)
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
            name = px.name_of(call.func) if isinstance(call, ast.Call) else ""
            if not isinstance(call, ast.Call):
                continue
            errors = {ast.unparse(a).rsplit(".", 1)[-1] for a in call.args}
            if name in ("raises", "assertRaises", "assertRaisesRegex", "warns", "assertWarns", "deprecated_call"):
                trivial = len(node.body) == 1 and isinstance(node.body[0], ast.Raise)
                body = "\n".join(px.text_of_node(_inserted(s, values)) for s in node.body)
                self.add(node, [pa.raises_claim(call, body, trivial)], lost, by)
            if name in ("raises", "assertRaises", "suppress") and errors & _SWALLOWING and not lost:
                inner = ("swallowed", f"line {node.lineno}: `{line_at(self.scope.text, node.lineno)}`")
        self.block(node.body, *inner, values)

    def call(self, node: ast.stmt, value: ast.expr, lost: str, by: str, values: Mapping[str, ast.expr]) -> None:
        if isinstance(value, ast.Await):
            value = value.value
        if not isinstance(value, ast.Call):
            return
        name = px.name_of(value.func)
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
            self.add(node, [pa.raises_claim(value, ", ".join(map(px.text_of_node, value.args[1:])), False)], lost, by)
        inserted = px.insert(value, values)
        said = pa.call_claims(inserted) if isinstance(inserted, ast.Call) else None
        if said is not None:
            self.add(node, said, lost, by)

    def helper(self, func: ast.expr) -> tuple[Function | None, Scope]:
        """The helper that a call reaches, with the scope of its file: a function, or a method of the same object."""
        if not self.follow:
            return None, self.scope
        if isinstance(func, ast.Name) and func.id in self.scope.imported:
            return self.scope.imported[func.id]
        own = isinstance(func, ast.Name) or (
            isinstance(func.value, ast.Name) and func.value.id in ("self", "cls")
            if isinstance(func, ast.Attribute)
            else False
        )
        return (self.scope.helpers.get(px.name_of(func)) if own else None), self.scope

    def add(self, node: ast.stmt, said: Iterator[pa.Claim] | Sequence[pa.Claim], lost: str, by: str) -> None:
        text = line_at(self.scope.text, node.lineno)
        for claim in said:
            made = claim.assertion(line=node.lineno, text=text, file=self.scope.file)
            self.assertions.append(replace(made, lost=lost, lost_by=by))


def _bound(helper: Function, call: ast.Call, values: Mapping[str, ast.expr]) -> dict[str, ast.expr]:
    """A helper's parameters with what this call gives for them."""
    names = [a.arg for a in (*helper.args.posonlyargs, *helper.args.args)]
    if names and names[0] in ("self", "cls") and isinstance(call.func, ast.Attribute):
        names = names[1:]
    given = dict(zip(names, call.args, strict=False))
    given |= {k.arg: k.value for k in call.keywords if k.arg}
    return {n: px.insert(v, values) for n, v in given.items() if not isinstance(v, ast.Starred)}


def _inserted(node: ast.stmt, values: Mapping[str, ast.expr]) -> ast.stmt:
    if isinstance(node, ast.Expr):
        return ast.Expr(value=px.insert(node.value, values))
    return node


def _ends(node: ast.stmt) -> bool:
    """Whether what follows in the block is never reached."""
    if isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break):
        return True
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and px.name_of(call.func) in _EXIT_CALLS


def _swallows(handler: ast.ExceptHandler) -> bool:
    caught = [handler.type] if not isinstance(handler.type, ast.Tuple) else handler.type.elts
    names = {"BaseException" if c is None else ast.unparse(c).rsplit(".", 1)[-1] for c in caught}
    loud = any(
        isinstance(n, ast.Raise | ast.Assert)
        or (isinstance(n, ast.Call) and (px.name_of(n.func) == "fail" or px.name_of(n.func).startswith("assert")))
        for s in handler.body
        for n in ast.walk(s)
    )
    return bool(names & _SWALLOWING) and not loud


def _never_loops(node: ast.For | ast.AsyncFor | ast.While) -> bool:
    if isinstance(node, ast.While):
        return is_false(node.test)
    return isinstance(node.iter, ast.List | ast.Tuple) and not node.iter.elts
