"""Python expressions: their text in one style, what they call, what they hold, with names blanked or filled in."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain, islice

_BUILTINS = frozenset(
    [
        "len",
        "str",
        "int",
        "float",
        "bool",
        "list",
        "dict",
        "set",
        "tuple",
        "sorted",
        "repr",
        "abs",
        "min",
        "max",
        "sum",
        "type",
        "isinstance",
        "round",
        "any",
        "all",
        "next",
        "iter",
        "getattr",
        "hasattr",
        "callable",
        "range",
        "enumerate",
        "zip",
        "map",
        "filter",
        "bytes",
        "frozenset",
        "print",
        "open",
        "approx",
        "raises",
    ]
)
# How many nodes may be put in the place of names in one expression.
_LARGEST = 40


def name_of(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def text_of_node(node: ast.AST) -> str:
    """The code of a node in one style; its structure where no code can be written, as in nested f-strings."""
    try:
        return ast.unparse(node)
    except ValueError:
        return ast.dump(node)


def number(node: ast.expr) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = number(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, power = number(node.left), number(node.right)
        return base**power if base and power is not None and abs(power) < 50 else None
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return float(node.value)
    return None


def keyword(call: ast.Call, name: str) -> float | None:
    return next((number(k.value) for k in call.keywords if k.arg == name), None)


def position(call: ast.Call, index: int) -> float | None:
    return number(call.args[index]) if len(call.args) > index else None


def is_none(text: ast.expr) -> bool:
    return isinstance(text, ast.Constant) and text.value is None


def weight(node: ast.expr) -> int:
    """How likely this side is what the test is about: calls before names before literals."""
    kinds = {type(n) for n in ast.walk(node)}
    return 3 * (ast.Call in kinds) + 2 * (ast.Attribute in kinds or ast.Subscript in kinds) + (ast.Name in kinds)


def callees(node: ast.AST) -> Iterator[str]:
    """The names of what is called, built-in functions left out."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and (name := name_of(inner.func)) and name not in _BUILTINS:
            yield name


def literals(node: ast.AST) -> Iterator[str]:
    """The constants in it."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        yield f"-{node.operand.value!r}"
    elif isinstance(node, ast.Constant):
        yield repr(node.value)
    else:
        for inner in ast.iter_child_nodes(node):
            yield from literals(inner)


class _Blank(ast.NodeTransformer):
    """Puts one name in the place of every literal and of every variable that isn't called."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.Name(id="_", ctx=ast.Load())

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Name(id="_", ctx=ast.Load())

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        inner = self.visit(node.operand)
        return inner if isinstance(node.op, ast.USub) and isinstance(inner, ast.Name) else ast.UnaryOp(node.op, inner)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        return ast.Name(id="_", ctx=ast.Load())

    def visit_List(self, node: ast.List) -> ast.expr:
        return self._display(node)

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        return self._display(node)

    def visit_Dict(self, node: ast.Dict) -> ast.expr:
        return self._display(node)

    def visit_Set(self, node: ast.Set) -> ast.expr:
        return self._display(node)

    def _display(self, node: ast.expr) -> ast.expr:
        plain = not any(isinstance(n, ast.Call | ast.Attribute) for n in ast.walk(node))
        return ast.Name(id="_", ctx=ast.Load()) if plain else self.generic_visit(node)  # type: ignore[return-value]

    def visit_Call(self, node: ast.Call) -> ast.expr:
        func = node.func if isinstance(node.func, ast.Name) else self.visit(node.func)
        arguments = [self.visit(a) for a in node.args]
        keywords = [ast.keyword(arg=k.arg, value=self.visit(k.value)) for k in node.keywords]
        return ast.Call(func=func, args=arguments, keywords=keywords)


def shape(node: ast.expr) -> str:
    return _blank(text_of_node(node), values=True)


@lru_cache(maxsize=8_192)
def _blank(text: str, *, values: bool) -> str:
    """The code with its variables blanked, and its constants too when `values`."""
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        return text
    return text_of_node((_Blank() if values else _BlankNames()).visit(tree))


class _BlankNames(ast.NodeTransformer):
    """Puts one name in the place of every variable that isn't called."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Name(id="_", ctx=ast.Load())

    def visit_Call(self, node: ast.Call) -> ast.expr:
        func = node.func if isinstance(node.func, ast.Name) else self.visit(node.func)
        arguments = [self.visit(a) for a in node.args]
        keywords = [ast.keyword(arg=k.arg, value=self.visit(k.value)) for k in node.keywords]
        return ast.Call(func=func, args=arguments, keywords=keywords)


def frame(node: ast.expr) -> str:
    return _blank(text_of_node(node), values=False)


class _Insert(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self.values.get(node.id) if isinstance(node.ctx, ast.Load) else None
        return value if value is not None else node


def insert(node: ast.expr, values: Mapping[str, ast.expr]) -> ast.expr:
    """The expression with the values of local names in their place, unless it would grow out of hand."""
    names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in values]
    nodes = chain.from_iterable(ast.walk(values[n]) for n in names)
    if not names or sum(1 for _ in islice(nodes, _LARGEST + 1)) > _LARGEST:
        return node
    grown: ast.expr = _Insert(values).visit(copy.deepcopy(node))
    return grown


def named(node: ast.expr, values: Mapping[str, ast.expr]) -> ast.expr:
    """The value that a name stands for, however large; the expression itself when it is no such name."""
    return values.get(node.id, node) if isinstance(node, ast.Name) else node
