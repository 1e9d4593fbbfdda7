"""Python assertions in one form, whichever style they are written in, and how much each of them says."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from .tamper_model import Assertion, Rank
from .tamper_pyexpr import (
    callees,
    frame,
    is_none,
    keyword,
    literals,
    name_of,
    number,
    position,
    shape,
    text_of_node,
    weight,
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
            shape=f"{self.operator} " + " ".join(sorted(shape(n) for n in self.nodes)),
            frame=f"{self.operator} " + " ".join(sorted(frame(n) for n in self.nodes)) + self.extra,
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
            return near(expr.args[0], expr.args[1], keyword(expr, "abs_tol") or keyword(expr, "rel_tol") or 1e-9)
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
            width = keyword(one, "abs") or keyword(one, "rel") or position(one, 1) or 1e-6
            return near(other, one.args[0], width)
        if operator in ("==", "is", "!=", "is not") and isinstance(one, ast.Constant) and isinstance(one.value, bool):
            return _truth(other, (not one.value) is (operator in ("==", "is")))
    if operator in ("<", "<=") and _is_difference(left):
        return _within(left, right, operator)
    subject, expected = (left, right) if weight(left) >= weight(right) else (right, left)
    if rank is Rank.ANYTHING and operator == "is not" and not is_none(expected):
        rank = Rank.SOME
    if operator == "is" and not is_none(expected):
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
    subject, expected = (actual, wanted) if weight(actual) >= weight(wanted) else (wanted, actual)
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
    width = number(right)
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
    given = [w for w in (keyword(call, n) for n in ("delta", "rtol", "atol")) if w is not None]
    if given:
        return max(given)
    if name_of(call.func) == "assert_allclose":
        return 1e-7
    places = keyword(call, "places")
    places = position(call, 2) if places is None else places
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
