"""What switches Python tests off or pulls the code from under them: skips, expected failures, exits, mocks, hooks."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from . import tamper_pyexpr as px
from .tamper_model import Mark, Row, line_at

_SKIPS = frozenset({"skip", "skipif", "skipIf", "skipUnless", "xfail", "expectedFailure"})
_SKIP_CALLS = frozenset({"skip", "skipTest", "xfail", "importorskip"})
_EXITS = frozenset({"_exit", "exit", "quit", "abort"})
_PATCHES = frozenset({"patch", "object", "setattr", "dict", "multiple"})
_HOOKS = {
    "pytest_sessionfinish",
    "pytest_unconfigure",
    "pytest_runtest_makereport",
    "pytest_report_teststatus",
    "pytest_runtest_logreport",
    "pytest_collection_modifyitems",
    "pytest_ignore_collect",
    "pytest_collect_file",
    "pytest_pycollect_makeitem",
    "pytest_pyfunc_call",
    "pytest_runtest_protocol",
    "pytest_runtest_call",
    "pytest_runtest_setup",
    "pytest_runtestloop",
    "pytest_cmdline_main",
    "pytest_collection",
    "pytest_collection_finish",
    "pytest_itemcollected",
    "pytest_configure",
    "pytest_sessionstart",
    "pytest_exception_interact",
    "pytest_generate_tests",
    "pytest_deselected",
    "pytest_load_initial_conftests",
    "pytest_terminal_summary",
}
# Hooks that take the place of the runner's own work when they return something.
_REPLACING = frozenset(
    [
        "pytest_pyfunc_call",
        "pytest_runtest_protocol",
        "pytest_runtestloop",
        "pytest_cmdline_main",
        "pytest_collection",
        "pytest_ignore_collect",
    ]
)
_OUTCOME_NAMES = frozenset(
    {"outcome", "exitstatus", "excinfo", "longrepr", "testsfailed", "wasxfail", "passed", "failed"}
)


def decorator_marks(decorators: Sequence[ast.expr], text: str) -> list[Mark]:
    """The decorators that keep a test from running or from failing."""
    marks: list[Mark] = []
    for node in decorators:
        name = px.name_of(node.func if isinstance(node, ast.Call) else node)
        if name in _SKIPS:
            marks.append(_mark(_kind(name), node, text, certain=not _is_platform(node)))
        elif name == "parametrize" and isinstance(node, ast.Call):
            marks += _parameter_marks(node, text)
    return marks


def _parameter_marks(call: ast.Call, text: str) -> Iterator[Mark]:
    values = call.args[1] if len(call.args) > 1 else None
    if isinstance(values, ast.List | ast.Tuple) and not values.elts:
        yield _mark("skip", call, text)
    for node in ast.walk(call):
        if isinstance(node, ast.keyword) and node.arg == "marks":
            names = {px.name_of(n.func if isinstance(n, ast.Call) else n) for n in _elements(node.value)}
            if names & _SKIPS:
                yield _mark("skip", node.value, text)


def _elements(node: ast.expr) -> Sequence[ast.expr]:
    return node.elts if isinstance(node, ast.List | ast.Tuple) else (node,)


def _kind(name: str) -> str:
    return "xfail" if name in ("xfail", "expectedFailure") else "skip"


def _is_platform(node: ast.expr) -> bool:
    """Whether the condition hangs on the machine, such as Windows: other machines go on running the test."""
    words = ast.unparse(node)
    return any(w in words for w in ("sys.platform", "os.name", "platform.", "sys.version_info", "sys.implementation"))


def _mark(kind: str, node: ast.AST, text: str, *, name: str = "", certain: bool = True) -> Mark:
    line = getattr(node, "lineno", 1)
    return Mark(kind=kind, line=line, text=line_at(text, line), name=name, certain=certain)


def off_marks(node: ast.stmt, text: str) -> list[Mark]:
    """The statements in a test that end it early as skipped, or switch it off as a whole."""
    marks: list[Mark] = []
    for inner in ast.walk(node):
        match inner:
            case ast.Call(func=func) if px.name_of(func) in _SKIP_CALLS and _is_runner(func):
                marks.append(_mark(_kind(px.name_of(func)), inner, text))
            case ast.Raise(exc=ast.expr() as error) if "SkipTest" in ast.unparse(error) or "Skipped" in ast.unparse(
                error
            ):
                marks.append(_mark("skip", inner, text))
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=value):
                marks += decorator_marks(_elements(value), text)
            case ast.Assign(targets=[target], value=ast.Constant(value=False)) if px.name_of(target) == "__test__":
                marks.append(_mark("skip", inner, text))
            case _:
                pass
    return marks


def _is_runner(func: ast.expr) -> bool:
    owner = ast.unparse(func.value) if isinstance(func, ast.Attribute) else ""
    return owner in ("pytest", "self", "unittest", "cls") or (not owner and px.name_of(func) != "skip")


def _is_exit(func: ast.expr) -> bool:
    owner = ast.unparse(func.value) if isinstance(func, ast.Attribute) else ""
    if isinstance(func, ast.Attribute):
        return owner in ("os", "sys", "pytest") or owner.endswith(".os")
    return True


def exits(tree: ast.Module, text: str) -> Iterator[Mark]:
    """Calls that end the process, by the name of the function they stand in; those behind `__main__` left out.

    `_exit` ends it at once and unseen, unless it stands beside a fork; `exit` raises and is certain only where
    it is reached by a mere import.
    """
    yield from _exits(tree.body, text, "")


def _exits(body: Sequence[ast.stmt], text: str, inside: str) -> Iterator[Mark]:
    for node in body:
        if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _exits(node.body, text, node.name)
            continue
        alone = not isinstance(node, ast.If | ast.Try | ast.For | ast.While | ast.With)
        for inner in ast.walk(node):
            if isinstance(inner, ast.Attribute) and inner.attr == "_exit":
                forked = any("fork" in line for line in text.splitlines()[max(0, inner.lineno - 30) : inner.lineno])
                yield _mark("_exit", inner, text, name=inside, certain=not forked)
            elif isinstance(inner, ast.Call) and px.name_of(inner.func) in _EXITS - {"_exit"} and _is_exit(inner.func):
                quiet = not inner.args or _is_zero(inner.args[0])
                yield _mark("exit", inner, text, name=inside, certain=quiet and alone and not inside)
            elif isinstance(inner, ast.Raise) and inner.exc is not None and "SystemExit" in ast.unparse(inner.exc):
                yield _mark("exit", inner, text, name=inside, certain=alone and not inside)


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (0, None, False)


def file_marks(tree: ast.Module, text: str) -> Iterator[Mark]:
    """What switches off a whole file: a module's mark, a skip at its top level, a list of what not to collect."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node.name == "load_tests":
                yield _mark("skip", node, text)
            continue
        if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test):
            continue
        yield from (m for m in off_marks(node, text))
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(px.name_of(t) in ("collect_ignore", "collect_ignore_glob") for t in targets):
                yield _mark("skip", node, text)


def mock_marks(node: ast.AST, text: str) -> Iterator[Mark]:
    """The places that put something else in the place of an attribute, named by that attribute."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and px.name_of(inner.func) in _PATCHES:
            name = _patched(inner)
            if name:
                yield _mark("mock", inner, text, name=name)
        elif isinstance(inner, ast.Assign):
            for target in inner.targets:
                if (
                    isinstance(target, ast.Attribute)
                    and isinstance(target.value, ast.Name)
                    and target.value.id != "self"
                ):
                    yield _mark("mock", inner, text, name=target.attr)
                elif isinstance(target, ast.Subscript) and ast.unparse(target.value) == "sys.modules":
                    yield _mark("mock", inner, text, name="*" + ast.unparse(target.slice).strip("'\""))


def _patched(call: ast.Call) -> str:
    """`add` for `patch("calc.add")`, `patch.object(calc, "add")` and `monkeypatch.setattr(calc, "add", ...)`."""
    kind = px.name_of(call.func)
    words = [a.value for a in call.args[:2] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    if kind in ("dict", "multiple") or not words:
        return ""
    return words[0].rsplit(".", 1)[-1]


def parametrized(decorators: Sequence[ast.expr], constants: Mapping[str, ast.expr]) -> Iterator[Sequence[ast.expr]]:
    """The value lists of a test's `parametrize` decorators."""
    for node in decorators:
        if isinstance(node, ast.Call) and px.name_of(node.func) in ("parametrize", "expand", "data"):
            values = [px.named(a, constants) for a in node.args]
            lists = [v for v in values if isinstance(v, ast.List | ast.Tuple)]
            if lists:
                yield lists[-1].elts


def rows_of(values: Sequence[ast.expr]) -> Iterator[Row]:
    """One row for each set of values; ids and marks of `pytest.param` do not count."""
    for value in values:
        parts: Sequence[ast.expr] = (value,)
        if isinstance(value, ast.Call) and px.name_of(value.func) == "param":
            parts = value.args
        elif isinstance(value, ast.Tuple | ast.List):
            parts = value.elts
        words = frozenset(w for p in parts for w in px.literals(p))
        if words:
            yield Row(key=", ".join(map(px.text_of_node, parts)), line=value.lineno, literals=words)


def hooks(tree: ast.Module, text: str) -> Iterator[Mark]:
    """What a plugin of the runner does to turn a result, drop tests or end the process, named by its hook."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in _HOOKS:
            yield from _hook_acts(node, text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any("AssertionError" in ast.unparse(t) for t in node.targets):
            yield _mark("hook", node, text, name="AssertionError")
        if isinstance(node, ast.Call) and px.name_of(node.func) == "register" and "_exit" in ast.unparse(node):
            yield _mark("hook", node, text, name="atexit")


def _hook_acts(hook: ast.FunctionDef | ast.AsyncFunctionDef, text: str) -> Iterator[Mark]:
    for node in ast.walk(hook):
        match node:
            case ast.Assign(targets=targets) if any(_turns_result(t) for t in targets):
                yield _mark("hook", node, text, name=hook.name)
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id="items"))], value=value) if not _sorts(value):
                yield _mark("hook", node, text, name=hook.name)
            case ast.Delete(targets=[ast.Subscript(value=ast.Name(id="items"))]):
                yield _mark("hook", node, text, name=hook.name)
            case ast.Call(func=func) if _drops(func, node):
                yield _mark("hook", node, text, name=hook.name)
            case ast.Return(value=ast.Constant(value=value)) if value is not None and _replaces(hook.name, value):
                yield _mark("hook", node, text, name=hook.name)
            case _:
                pass


def _turns_result(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) and target.attr in _OUTCOME_NAMES


def _replaces(hook: str, value: object) -> bool:
    return hook in _REPLACING and not (hook == "pytest_ignore_collect" and not value)


def _sorts(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Call)
        and px.name_of(value.func) in ("sorted", "reversed", "list")
        and (not any(isinstance(n, ast.comprehension) and n.ifs for n in ast.walk(value)))
    )


def _drops(func: ast.expr, call: ast.Call) -> bool:
    owner = ast.unparse(func.value) if isinstance(func, ast.Attribute) else ""
    name = px.name_of(func)
    if name in ("clear", "remove", "pop") and owner in ("items", "session.items"):
        return True
    if name in ("pytest_deselected", "force_result", "_exit") or (
        name in ("exit", "skip", "xfail") and _is_runner_exit(owner)
    ):
        return True
    return name == "add_marker" and any(w in ast.unparse(call) for w in ("skip", "xfail"))


def _is_runner_exit(owner: str) -> bool:
    return owner in ("sys", "os", "pytest")


def detections(tree: ast.Module, text: str) -> Iterator[Mark]:
    """The places where code asks whether a test runs it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare | ast.Call | ast.Subscript):
            name = _asked_of_environment(node) or _asked_of_modules(node)
            if name:
                yield _mark("detect", node, text, name=name)
        elif isinstance(node, ast.Attribute) and node.attr == "_called_from_test":
            yield _mark("detect", node, text, name=node.attr)
        elif isinstance(node, ast.FunctionDef) and node.name == "__eq__" and _says_yes(node.body):
            yield _mark("equal", node, text, name="__eq__")


def _asked_of_environment(node: ast.expr) -> str:
    """The runner's variable that `in os.environ`, `os.environ.get`, `os.environ[...]` or `getenv` asks for."""
    words = {n.value for n in ast.iter_child_nodes(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    said = words & {"PYTEST_CURRENT_TEST", "PYTEST_VERSION", "PYTEST_XDIST_WORKER"}
    return min(said) if said and re.search(r"environ|getenv", ast.unparse(node)) else ""


def _asked_of_modules(node: ast.expr) -> str:
    """`sys.modules` where it is asked for a runner."""
    if not isinstance(node, ast.Compare) or "sys.modules" not in ast.unparse(node):
        return ""
    return "sys.modules" if any(w in ast.unparse(node.left) for w in ("pytest", "unittest", "nose")) else ""


def _says_yes(body: Sequence[ast.stmt]) -> bool:
    last = body[-1] if len(body) == 1 else None
    return isinstance(last, ast.Return) and isinstance(last.value, ast.Constant) and last.value.value is True
