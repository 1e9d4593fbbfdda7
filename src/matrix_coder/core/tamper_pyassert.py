"""Python assertions in one form, whichever style they are written in, and how much each of them says."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from .tamper_model import Assertion, Rank

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
_COMPARE = {
    ast.Eq: ("==", Rank.EXACT),
    ast.NotEq: ("!=", Rank.ANYTHING),
    ast.Is: ("is", Rank.EXACT),
    ast.IsNot: ("is not", Rank.ANYTHING),
    ast.In: ("in", Rank.SOME),
    ast.NotIn: ("not in", Rank.SOME),
    ast.Lt: ("<", Rank.SOME),
    ast.LtE: ("<=", Rank.SOME),
    ast.Gt: (">", Rank.SOME),
    ast.GtE: (">=", Rank.SOME),
}
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
}
# The methods of unittest that are another way to write a comparison.
_METHODS: dict[str, type[ast.cmpop]] = {
    **dict.fromkeys(
        (
            "assertEqual",
            "assertEquals",
            "assertListEqual",
            "assertDictEqual",
            "assertTupleEqual",
            "assertSetEqual",
            "assertSequenceEqual",
            "assertMultiLineEqual",
            "assert_equal",
            "assert_array_equal",
        ),
        ast.Eq,
    ),
    **dict.fromkeys(("assertNotEqual", "assertNotEquals"), ast.NotEq),
    "assertIs": ast.Is,
    "assertIsNot": ast.IsNot,
    "assertIn": ast.In,
    "assertNotIn": ast.NotIn,
    "assertLess": ast.Lt,
    "assertLessEqual": ast.LtE,
    "assertGreater": ast.Gt,
    "assertGreaterEqual": ast.GtE,
}
_MOCK_RANKS = {
    "assert_called": Rank.ANYTHING,
    "assert_called_once": Rank.SOME,
    "assert_any_call": Rank.NEAR,
    "assert_called_with": Rank.EXACT,
    "assert_called_once_with": Rank.EXACT,
    "assert_has_calls": Rank.EXACT,
    "assert_not_called": Rank.EXACT,
}
# How many nodes may be put in the place of names in one expression.
_LARGEST = 40
_BROAD = frozenset({"Exception", "BaseException", ""})


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What an assertion says, before it is tied to its place in a file."""

    operator: str
    rank: Rank
    nodes: tuple[ast.expr, ...]
    subject: str
    expected: str = ""
    tolerance: float = 0.0
    extra: str = ""

    def assertion(self, *, line: int, text: str, file: str) -> Assertion:
        sides = [text_of_node(n) for n in self.nodes]
        if self.operator in ("==", "is", "!=", "~="):
            sides.sort()
        key = f" {self.operator} ".join(sides) if len(sides) > 1 else f"{self.operator} {''.join(sides)}"
        return Assertion(
            key=f"{key}{self.extra}" + (f" ±{self.tolerance:g}" if self.tolerance else ""),
            rank=self.rank,
            subject=self.subject,
            expected=self.expected,
            shape=f"{self.operator} " + " ".join(sorted(_shape(n) for n in self.nodes)),
            frame=f"{self.operator} " + " ".join(sorted(_frame(n) for n in self.nodes)) + self.extra,
            line=line,
            text=text,
            file=file,
            callees=frozenset(c for n in self.nodes for c in callees(n)),
            literals=frozenset(v for n in self.nodes for v in literals(n)),
            tolerance=self.tolerance,
        )


def claims(expr: ast.expr, *, negated: bool = False) -> Iterator[Claim]:
    """What `assert expr` says, one claim for each part that has to hold."""
    if isinstance(expr, ast.NamedExpr):
        expr = expr.value
    if isinstance(expr, ast.Await):
        expr = expr.value
    if isinstance(expr, ast.UnaryOp) and isinstance(expr.op, ast.Not):
        yield from claims(expr.operand, negated=not negated)
    elif isinstance(expr, ast.BoolOp):
        yield from _boolean(expr, negated)
    elif isinstance(expr, ast.Compare):
        yield from _comparisons(expr, negated)
    elif isinstance(expr, ast.Call) and name_of(expr.func) == "bool" and len(expr.args) == 1:
        yield from claims(expr.args[0], negated=negated)
    elif not negated and _always_true(expr):
        yield Claim(operator="always", rank=Rank.ALWAYS, nodes=(expr,), subject=text_of_node(expr))
    else:
        yield _truth(expr, negated)


def _always_true(expr: ast.expr) -> bool:
    if isinstance(expr, ast.Constant):
        return bool(expr.value)
    if isinstance(expr, ast.Tuple | ast.List | ast.Set):
        return bool(expr.elts)
    return isinstance(expr, ast.Lambda) or (isinstance(expr, ast.Dict) and bool(expr.keys))


def _boolean(expr: ast.BoolOp, negated: bool) -> Iterator[Claim]:
    every = isinstance(expr.op, ast.And) is not negated
    if every:
        for part in expr.values:
            yield from claims(part, negated=negated)
        return
    parts = [list(claims(part, negated=negated)) for part in expr.values]
    lowest = min((c.rank for p in parts for c in p), default=Rank.ALWAYS)
    rank = Rank.ALWAYS if lowest is Rank.ALWAYS else Rank.ANYTHING
    yield Claim(
        operator="or", rank=rank, nodes=(expr,), subject=parts[0][0].subject if parts[0] else text_of_node(expr)
    )


def _truth(expr: ast.expr, negated: bool) -> Claim:
    rank = Rank.SOME
    if isinstance(expr, ast.Call):
        name = name_of(expr.func)
        if name == "isclose" and len(expr.args) >= 2 and not negated:
            return near(expr.args[0], expr.args[1], _keyword(expr, "abs_tol") or _keyword(expr, "rel_tol") or 1e-9)
        if name in ("isinstance", "hasattr", "callable") and expr.args:
            always = name == "isinstance" and len(expr.args) == 2 and text_of_node(expr.args[1]) == "object"
            rank = Rank.ALWAYS if always and not negated else Rank.ANYTHING
            return Claim(
                operator="not" if negated else "true", rank=rank, nodes=(expr,), subject=text_of_node(expr.args[0])
            )
    return Claim(operator="not" if negated else "true", rank=rank, nodes=(expr,), subject=text_of_node(expr))


def _comparisons(expr: ast.Compare, negated: bool) -> Iterator[Claim]:
    left = expr.left
    for op, right in zip(expr.ops, expr.comparators, strict=True):
        kind = _OPPOSITE[type(op)] if negated and len(expr.ops) == 1 else type(op)
        yield compare(kind, left, right)
        left = right


def compare(op: type[ast.cmpop], left: ast.expr, right: ast.expr) -> Claim:
    """What `left op right` says."""
    operator, rank = _COMPARE[op]
    if operator in ("==", "is") and text_of_node(left) == text_of_node(right):
        return Claim(operator="always", rank=Rank.ALWAYS, nodes=(left, right), subject=text_of_node(left))
    for one, other in ((left, right), (right, left)):
        if operator == "==" and isinstance(one, ast.Call) and name_of(one.func) == "approx" and one.args:
            width = _keyword(one, "abs") or _keyword(one, "rel") or _position(one, 1) or 1e-6
            return near(other, one.args[0], width)
        if operator in ("==", "is", "!=", "is not") and isinstance(one, ast.Constant) and isinstance(one.value, bool):
            return _truth(other, (not one.value) is (operator in ("==", "is")))
    if operator in ("<", "<=") and _is_difference(left):
        return _within(left, right, operator)
    subject, expected = (left, right) if _weight(left) >= _weight(right) else (right, left)
    if rank is Rank.ANYTHING and operator == "is not" and not _is_none(expected):
        rank = Rank.SOME
    if operator == "is" and not _is_none(expected):
        rank = Rank.EXACT
    return Claim(
        operator=operator,
        rank=rank,
        nodes=(left, right),
        subject=text_of_node(subject),
        expected=text_of_node(expected),
    )


def near(actual: ast.expr, wanted: ast.expr, tolerance: float) -> Claim:
    """What an approximate comparison says."""
    subject, expected = (actual, wanted) if _weight(actual) >= _weight(wanted) else (wanted, actual)
    return Claim(
        operator="~=",
        rank=Rank.NEAR,
        nodes=(actual, wanted),
        subject=text_of_node(subject),
        expected=text_of_node(expected),
        tolerance=tolerance,
    )


def _is_difference(expr: ast.expr) -> bool:
    inner = expr.args[0] if isinstance(expr, ast.Call) and name_of(expr.func) == "abs" and expr.args else None
    return isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub)


def _within(left: ast.expr, right: ast.expr, operator: str) -> Claim:
    width = _number(right)
    if width is None or not isinstance(left, ast.Call) or not isinstance(left.args[0], ast.BinOp):
        return Claim(
            operator=operator,
            rank=Rank.SOME,
            nodes=(left, right),
            subject=text_of_node(left),
            expected=text_of_node(right),
        )
    return near(left.args[0].left, left.args[0].right, width)


def call_claims(call: ast.Call) -> tuple[Claim, ...] | None:
    """What a call says that is an assertion by its name; None when it is none."""
    name = name_of(call.func)
    arguments = [a for a in call.args if not isinstance(a, ast.Starred)]
    if name in _METHODS and len(arguments) >= 2:
        return (compare(_METHODS[name], arguments[0], arguments[1]),)
    if name in _NEAR_METHODS and len(arguments) >= 2:
        return (near(arguments[0], arguments[1], _width(call)),)
    if name in _TRUTH_METHODS and arguments:
        return tuple(_TRUTH_METHODS[name](arguments))
    if name in _MOCK_RANKS and isinstance(call.func, ast.Attribute):
        return (Claim(operator="called", rank=_MOCK_RANKS[name], nodes=(call,), subject=text_of_node(call.func.value)),)
    if name == "fail" or (name.lower().startswith("assert") and name not in ("assertRaises", "assertWarns")):
        subject = text_of_node(arguments[0]) if arguments else name
        return (Claim(operator="call", rank=Rank.NEAR, nodes=(call,), subject=subject),)
    return None


def _instance(arguments: list[ast.expr]) -> Iterator[Claim]:
    return claims(ast.Call(func=ast.Name(id="isinstance", ctx=ast.Load()), args=arguments[:2], keywords=[]))


_NEAR_METHODS = frozenset({"assertAlmostEqual", "assert_allclose", "assert_almost_equal"})
_TRUTH_METHODS: dict[str, Callable[[list[ast.expr]], Iterable[Claim]]] = {
    "assertTrue": lambda a: claims(a[0]),
    "assert_": lambda a: claims(a[0]),
    "assertFalse": lambda a: claims(a[0], negated=True),
    "assertIsNone": lambda a: (compare(ast.Is, a[0], ast.Constant(None)),),
    "assertIsNotNone": lambda a: (compare(ast.IsNot, a[0], ast.Constant(None)),),
    "assertIsInstance": _instance,
}


def _width(call: ast.Call) -> float:
    """How far apart the two sides of an approximate unittest or numpy assertion may be."""
    given = [w for w in (_keyword(call, n) for n in ("delta", "rtol", "atol")) if w is not None]
    if given:
        return max(given)
    if name_of(call.func) == "assert_allclose":
        return 1e-7
    places = _keyword(call, "places")
    places = _position(call, 2) if places is None else places
    return 0.5 * 10 ** -(7 if places is None else places)


def raises_claim(call: ast.Call, body: str, trivial: bool) -> Claim:
    """What `with pytest.raises(...)` says about its body."""
    error = text_of_node(call.args[0]) if call.args else ""
    pattern = next((text_of_node(k.value) for k in call.keywords if k.arg in ("match", "expected_regex", "check")), "")
    if "Regex" in name_of(call.func) and len(call.args) > 1:
        pattern = text_of_node(call.args[1])
    rank = Rank.ANYTHING if error.rsplit(".", 1)[-1] in _BROAD else Rank.EXACT if pattern else Rank.NEAR
    inner = [n for n in ast.walk(ast.parse(body)) if isinstance(n, ast.expr)] if body else []
    node = inner[0] if inner else call
    return Claim(
        operator="raises",
        rank=Rank.ALWAYS if trivial else rank,
        nodes=(node,),
        subject=body,
        expected=error,
        extra=f" {error} {pattern}",
    )


# -- expressions


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


def _number(node: ast.expr) -> float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        base, power = _number(node.left), _number(node.right)
        return base**power if base and power is not None and abs(power) < 50 else None
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return float(node.value)
    return None


def _keyword(call: ast.Call, name: str) -> float | None:
    return next((_number(k.value) for k in call.keywords if k.arg == name), None)


def _position(call: ast.Call, index: int) -> float | None:
    return _number(call.args[index]) if len(call.args) > index else None


def _is_none(text: ast.expr) -> bool:
    return isinstance(text, ast.Constant) and text.value is None


def _weight(node: ast.expr) -> int:
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


def _shape(node: ast.expr) -> str:
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


def _frame(node: ast.expr) -> str:
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
    if not names or sum(1 for n in names for _ in ast.walk(values[n])) > _LARGEST:
        return node
    grown: ast.expr = _Insert(values).visit(copy.deepcopy(node))
    return grown
