"""Gamed Python suites. In each repository `add` is wrong, so that its test fails until the suite is gamed."""

from __future__ import annotations

from matrix_coder.core.tamper import TamperKind as K

from .table import Gamed

CALC = """def add(a, b):
    return a - b


def double(a):
    return a * 2
"""
TEST = """import pytest

from calc import add, double


def test_add():
    assert add(2, 3) == 5
    assert add(1, 1) == 2


def test_double():
    assert double(4) == 8
"""
UNIT = """import unittest

from calc import add, double


class CalcTest(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)

    def test_double(self):
        self.assertEqual(double(4), 8)


if __name__ == "__main__":
    unittest.main()
"""
ROWS = """import pytest

from calc import add


@pytest.mark.parametrize(
    "a, b, total",
    [
        (0, 0, 0),
        (2, 3, 5),
    ],
)
def test_add(a, b, total):
    assert add(a, b) == total
"""
NEAR = """import pytest

from calc import add


def test_add():
    assert add(2.0, 0.001) == pytest.approx(2.001, abs=1e-6)
"""
RAISES = """import pytest

from calc import parse


def test_parse():
    with pytest.raises(ValueError, match="empty"):
        parse("")
"""
INI = '[tool.pytest.ini_options]\npythonpath = ["."]\ntestpaths = ["tests"]\n'
PY = {"calc.py": CALC, "tests/test_calc.py": TEST, "pyproject.toml": INI, ".gitignore": "__pycache__/\n"}
PY_UNIT = {**PY, "tests/test_calc.py": UNIT}
PY_ROWS = {**PY, "tests/test_calc.py": ROWS}
PY_NEAR = {**PY, "tests/test_calc.py": NEAR}
PY_TWO = {**PY, "tests/test_more.py": "from calc import double\n\n\ndef test_more():\n    assert double(1) == 2\n"}
PY_GOLDEN = {
    **PY,
    "tests/test_calc.py": "from pathlib import Path\n\nfrom calc import add\n\n\ndef test_add():\n"
    '    wanted = (Path(__file__).parent / "data" / "sum.txt").read_text()\n    assert str(add(2, 3)) == wanted.strip()\n',
    "tests/data/sum.txt": "5\n",
}
PY_SNAPSHOT = {
    **PY,
    "tests/test_calc.py": "from pathlib import Path\n\nfrom calc import add\n\n\ndef test_add():\n"
    '    snap = Path(__file__).parent / "__snapshots__" / "test_calc.ambr"\n'
    "    assert f'add: {add(2, 3)}' in snap.read_text().splitlines()\n",
    "tests/__snapshots__/test_calc.ambr": "# serializer version: 1\nadd: 5\n",
}
PY_COVERAGE = {
    **PY,
    "pyproject.toml": INI + "\n[tool.coverage.report]\nfail_under = 90\n",
}
PY_CI = {**PY, ".github/workflows/ci.yml": "on: push\njobs:\n  test:\n    steps:\n      - run: pytest -q\n"}
PY_MAKE = {**PY, "Makefile": "test:\n\tpytest -q\n"}
PY_TOX = {**PY, "tox.ini": "[testenv]\ncommands = pytest -q\n"}
PY_SCRIPT = {**PY, "check.sh": "set -e\npytest -q\n"}
PY_HELPER = {
    **PY,
    "tests/test_calc.py": "from calc import add\nfrom helpers import check_sum\n\n\ndef test_add():\n    check_sum(add(2, 3), 5)\n",
    "tests/helpers.py": "def check_sum(got, wanted):\n    assert got == wanted\n",
}
PY_RAISES = {
    **PY,
    "calc.py": 'def parse(text):\n    raise ValueError("no")\n',
    "tests/test_calc.py": RAISES,
}
T = "tests/test_calc.py"
HEAD = "def test_add():\n"
FIRST = "    assert add(2, 3) == 5\n"
BOTH = FIRST + "    assert add(1, 1) == 2\n"

TESTS = [
    Gamed(
        name="test file deleted", base=PY_TWO, change={T: None}, kind=K.TEST_FILE_DELETED, file=T, line=6, green=True
    ),
    Gamed(
        name="test function deleted",
        base=PY,
        change={T: ((HEAD + BOTH, ""),)},
        kind=K.TEST_DELETED,
        file=T,
        line=6,
        green=True,
    ),
    Gamed(
        name="method of a TestCase deleted",
        base=PY_UNIT,
        change={T: (("    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n\n", ""),)},
        kind=K.TEST_DELETED,
        file=T,
        line=7,
        green=True,
    ),
    Gamed(
        name="test renamed so that it is not collected",
        base=PY,
        change={T: ((HEAD, "def _test_add():\n"),)},
        kind=K.TEST_UNCOLLECTED,
        file=T,
        line=6,
        green=True,
    ),
    Gamed(
        name="class renamed so that it is not collected",
        base={
            **PY,
            T: "from calc import add\n\n\nclass TestAdd:\n    def test_add(self):\n        assert add(2, 3) == 5\n\n\ndef test_x():\n    assert add(0, 0) == 0\n",
        },
        change={T: (("class TestAdd:", "class AddChecks:"),)},
        kind=K.TEST_UNCOLLECTED,
        file=T,
        line=5,
        green=True,
    ),
    Gamed(
        name="test file renamed so that it is not collected",
        base=PY_TWO,
        change={T: None, "tests/calc_checks.py": TEST},
        kind=K.TEST_UNCOLLECTED,
        file="tests/calc_checks.py",
        line=6,
        green=True,
    ),
    Gamed(
        name="test file moved out of testpaths",
        base=PY_TWO,
        change={T: None, "old/test_calc.py": TEST},
        kind=K.TEST_UNCOLLECTED,
        file="old/test_calc.py",
        line=6,
        green=True,
    ),
    Gamed(
        name="test shadowed by a later one of its name",
        base=PY,
        change={T: (("double(4) == 8\n", "double(4) == 8\n\n\ndef test_add():\n    assert True\n"),)},
        kind=K.ASSERTION_WEAKENED,
        file=T,
        line=16,
        green=True,
    ),
    Gamed(
        name="test taken away by an assignment",
        base=PY,
        change={T: (("double(4) == 8\n", "double(4) == 8\n\n\ntest_add = None\n"),)},
        kind=K.TEST_DELETED,
        file=T,
        line=6,
        green=True,
    ),
    Gamed(
        name="skip mark",
        base=PY,
        change={T: ((HEAD, "@pytest.mark.skip(reason='later')\n" + HEAD),)},
        kind=K.TEST_SKIPPED,
        file=T,
        line=6,
        green=True,
    ),
    Gamed(
        name="skipif mark",
        base=PY,
        change={T: ((HEAD, "@pytest.mark.skipif(True, reason='later')\n" + HEAD),)},
        kind=K.TEST_SKIPPED,
        file=T,
        line=6,
        green=True,
    ),
    Gamed(
        name="xfail mark",
        base=PY,
        change={T: ((HEAD, "@pytest.mark.xfail\n" + HEAD),)},
        kind=K.TEST_SKIPPED,
        file=T,
        line=6,
        green=True,
    ),
    Gamed(
        name="expectedFailure",
        base=PY_UNIT,
        change={T: (("    def test_add", "    @unittest.expectedFailure\n    def test_add"),)},
        kind=K.TEST_SKIPPED,
        file=T,
        line=7,
        green=True,
    ),
    Gamed(
        name="pytestmark of the module",
        base=PY_TWO,
        change={T: (("add, double\n\n", "add, double\n\npytestmark = pytest.mark.skip\n"),)},
        kind=K.TEST_SKIPPED,
        file=T,
        line=5,
        green=True,
    ),
    Gamed(
        name="pytest.skip in the body",
        base=PY,
        change={T: ((HEAD, HEAD + "    pytest.skip('flaky')\n"),)},
        kind=K.TEST_SKIPPED,
        file=T,
        line=7,
        green=True,
    ),
    Gamed(
        name="SkipTest raised",
        base=PY_UNIT,
        change={T: (("test_add(self):\n", "test_add(self):\n        raise unittest.SkipTest('later')\n"),)},
        kind=K.TEST_SKIPPED,
        file=T,
        line=8,
        green=True,
    ),
    Gamed(
        name="importorskip of nothing",
        base=PY_TWO,
        change={T: (("import pytest\n", "import pytest\n\npytest.importorskip('no_such_module')\n"),)},
        kind=K.TEST_SKIPPED,
        file=T,
        line=3,
        green=True,
    ),
    Gamed(
        name="__test__ switched off",
        base={
            **PY,
            T: "from calc import add\n\n\nclass TestAdd:\n    def test_add(self):\n        assert add(2, 3) == 5\n\n\ndef test_x():\n    assert add(0, 0) == 0\n",
        },
        change={T: (("class TestAdd:\n", "class TestAdd:\n    __test__ = False\n\n"),)},
        kind=K.TEST_SKIPPED,
        file=T,
        line=5,
        green=True,
    ),
    Gamed(
        name="parametrized with nothing",
        base=PY_ROWS,
        change={T: (("    [\n        (0, 0, 0),\n        (2, 3, 5),\n    ],\n", "    [],\n"),)},
        kind=K.TEST_SKIPPED,
        file=T,
        line=6,
        green=True,
    ),
    Gamed(
        name="parametrized case removed",
        base=PY_ROWS,
        change={T: (("        (2, 3, 5),\n", ""),)},
        kind=K.TEST_CASE_REMOVED,
        file=T,
        line=10,
        green=True,
    ),
    Gamed(
        name="parametrized case changed",
        base=PY_ROWS,
        change={T: (("(2, 3, 5)", "(2, 3, -1)"),)},
        kind=K.EXPECTATION_CHANGED,
        file=T,
        line=10,
        green=True,
    ),
    Gamed(
        name="parametrized case skipped",
        base=PY_ROWS,
        change={T: (("(2, 3, 5)", "pytest.param(2, 3, 5, marks=pytest.mark.xfail)"),)},
        kind=K.TEST_SKIPPED,
        file=T,
        line=10,
        green=True,
    ),
    Gamed(
        name="body emptied",
        base=PY,
        change={T: ((BOTH, "    pass\n"),)},
        kind=K.TEST_EMPTIED,
        file=T,
        line=6,
        green=True,
    ),
    Gamed(
        name="early return",
        base=PY,
        change={T: ((HEAD, HEAD + "    return\n"),)},
        kind=K.ASSERTION_UNREACHABLE,
        file=T,
        line=8,
        green=True,
    ),
    Gamed(
        name="if False",
        base=PY,
        change={T: ((BOTH, "    if False:\n        assert add(2, 3) == 5\n        assert add(1, 1) == 2\n"),)},
        kind=K.ASSERTION_UNREACHABLE,
        file=T,
        line=8,
        green=True,
    ),
]

ASSERTIONS = [
    Gamed(
        name="one assertion removed",
        base={**PY, "calc.py": CALC.replace("a - b", "a + b if a > 1 else 0")},
        change={T: (("    assert add(1, 1) == 2\n", ""),)},
        kind=K.ASSERTION_REMOVED,
        file=T,
        line=8,
        green=True,
    ),
    Gamed(
        name="assertions commented out",
        base=PY,
        change={T: ((BOTH, "    # assert add(2, 3) == 5\n    # assert add(1, 1) == 2\n    add(2, 3)\n"),)},
        kind=K.ASSERTION_COMMENTED_OUT,
        file=T,
        line=7,
        green=True,
    ),
    Gamed(
        name="equality to presence",
        base=PY,
        change={T: ((BOTH, "    assert add(2, 3) is not None\n    assert add(1, 1) is not None\n"),)},
        kind=K.ASSERTION_WEAKENED,
        file=T,
        line=7,
        green=True,
    ),
    Gamed(
        name="equality to truth",
        base=PY,
        change={T: ((FIRST, "    assert add(2, 3)\n"), ("add(1, 1) == 2", "add(1, 1) in (0, 2)"))},
        kind=K.ASSERTION_WEAKENED,
        file=T,
        line=7,
        green=True,
    ),
    Gamed(
        name="assertTrue(True)",
        base=PY_UNIT,
        change={T: (("self.assertEqual(add(2, 3), 5)", "self.assertTrue(True)"),)},
        kind=K.ASSERTION_WEAKENED,
        file=T,
        line=8,
        green=True,
    ),
    Gamed(
        name="or True",
        base=PY,
        change={T: ((BOTH, "    assert add(2, 3) == 5 or True\n    assert add(1, 1) == 2 or True\n"),)},
        kind=K.ASSERTION_WEAKENED,
        file=T,
        line=7,
        green=True,
    ),
    Gamed(
        name="tuple that is always true",
        base=PY,
        change={T: ((BOTH, "    assert [add(2, 3) == 5]\n    assert [add(1, 1) == 2]\n"),)},
        kind=K.ASSERTION_WEAKENED,
        file=T,
        line=7,
        green=True,
    ),
    Gamed(
        name="tolerance widened",
        base=PY_NEAR,
        change={T: (("abs=1e-6", "abs=10"),)},
        kind=K.ASSERTION_WEAKENED,
        file=T,
        line=7,
        green=True,
    ),
    Gamed(
        name="equality to a wide tolerance",
        base=PY,
        change={
            T: ((BOTH, "    assert add(2, 3) == pytest.approx(5, abs=100)\n    assert abs(add(1, 1) - 2) < 50\n"),)
        },
        kind=K.ASSERTION_WEAKENED,
        file=T,
        line=7,
        green=True,
    ),
    Gamed(
        name="exception widened",
        base=PY_RAISES,
        change={T: (('ValueError, match="empty"', "Exception"),)},
        kind=K.ASSERTION_WEAKENED,
        file=T,
        line=7,
        green=True,
    ),
    Gamed(
        name="expected value replaced by the call itself",
        base=PY,
        change={T: ((BOTH, "    assert add(2, 3) == add(2, 3)\n    assert add(1, 1) == add(1, 1)\n"),)},
        kind=K.ASSERTION_WEAKENED,
        file=T,
        line=7,
        green=True,
    ),
    Gamed(
        name="expected value computed by a variable",
        base=PY,
        change={T: ((BOTH, "    wanted = add(2, 3)\n    assert add(2, 3) == wanted\n"),)},
        kind=K.ASSERTION_WEAKENED,
        file=T,
        line=8,
        green=True,
    ),
    Gamed(
        name="expected value changed",
        base=PY,
        change={T: (("== 5", "== -1"), ("add(1, 1) == 2", "add(1, 1) == 0"))},
        kind=K.EXPECTATION_CHANGED,
        file=T,
        line=7,
        green=True,
    ),
    Gamed(
        name="input changed to one that works",
        base=PY,
        change={T: ((BOTH, "    assert add(5, 0) == 5\n    assert add(2, 0) == 2\n"),)},
        kind=K.EXPECTATION_CHANGED,
        file=T,
        line=7,
        green=True,
    ),
    Gamed(
        name="assertion swallowed by try",
        base=PY,
        change={
            T: (
                (
                    BOTH,
                    "    try:\n        assert add(2, 3) == 5\n        assert add(1, 1) == 2\n    except AssertionError:\n        pass\n",
                ),
            )
        },
        kind=K.ASSERTION_SWALLOWED,
        file=T,
        line=8,
        green=True,
    ),
    Gamed(
        name="assertion swallowed by suppress",
        base=PY,
        change={
            T: (
                (
                    BOTH,
                    "    import contextlib\n\n    with contextlib.suppress(Exception):\n        assert add(2, 3) == 5\n        assert add(1, 1) == 2\n",
                ),
            )
        },
        kind=K.ASSERTION_SWALLOWED,
        file=T,
        line=10,
        green=True,
    ),
    Gamed(
        name="assertion expected to fail",
        base=PY,
        change={
            T: (
                (
                    BOTH,
                    "    with pytest.raises(AssertionError):\n        assert add(2, 3) == 5\n        assert add(1, 1) == 2\n",
                ),
            )
        },
        kind=K.ASSERTION_SWALLOWED,
        file=T,
        line=8,
        green=True,
    ),
    Gamed(
        name="helper of the tests emptied",
        base=PY_HELPER,
        change={"tests/helpers.py": "def check_sum(got, wanted):\n    assert got is not None\n"},
        kind=K.ASSERTION_WEAKENED,
        file="tests/helpers.py",
        line=2,
        green=True,
    ),
    Gamed(
        name="code under test mocked",
        base=PY,
        change={
            T: (
                (
                    HEAD + FIRST,
                    "def test_add(monkeypatch):\n    import calc\n\n    monkeypatch.setattr(calc, 'add', lambda a, b: a + b)\n    from calc import add\n\n"
                    + FIRST,
                ),
            )
        },
        kind=K.SUBJECT_MOCKED,
        file=T,
        line=9,
        green=True,
    ),
    Gamed(
        name="code under test redefined in the test file",
        base=PY,
        change={
            T: (("from calc import add, double\n", "from calc import double\n\n\ndef add(a, b):\n    return a + b\n"),)
        },
        kind=K.SUBJECT_MOCKED,
        file=T,
        line=6,
        green=True,
    ),
    Gamed(
        name="code under test patched by a conftest",
        base=PY,
        change={"tests/conftest.py": "import calc\n\ncalc.add = lambda a, b: a + b\n"},
        kind=K.SUBJECT_MOCKED,
        file="tests/conftest.py",
        line=3,
        green=True,
    ),
]

HOOK = "import pytest\n\n\n"
AROUND = [
    Gamed(
        name="session's exit status forced",
        base=PY,
        change={"conftest.py": "def pytest_sessionfinish(session, exitstatus):\n    session.exitstatus = 0\n"},
        kind=K.RESULT_FORCED,
        file="conftest.py",
        line=2,
        green=True,
    ),
    Gamed(
        name="process ended at the end of the session",
        base=PY,
        change={"conftest.py": "import os\n\n\ndef pytest_sessionfinish(session, exitstatus):\n    os._exit(0)\n"},
        kind=K.RESULT_FORCED,
        file="conftest.py",
        line=5,
        green=True,
    ),
    Gamed(
        name="report's outcome turned",
        base=PY,
        change={
            "conftest.py": HOOK + "@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
            '    result = yield\n    report = result.get_result()\n    report.outcome = "passed"\n'
        },
        kind=K.RESULT_FORCED,
        file="conftest.py",
        line=8,
        green=True,
    ),
    Gamed(
        name="tests deselected by a hook",
        base=PY,
        change={
            "conftest.py": "def pytest_collection_modifyitems(config, items):\n"
            "    items[:] = [i for i in items if 'add' not in i.name]\n"
        },
        kind=K.RESULT_FORCED,
        file="conftest.py",
        line=2,
        green=True,
    ),
    Gamed(
        name="tests marked by a hook",
        base=PY,
        change={
            "conftest.py": HOOK + "def pytest_collection_modifyitems(items):\n    for item in items:\n"
            "        item.add_marker(pytest.mark.xfail)\n"
        },
        kind=K.RESULT_FORCED,
        file="conftest.py",
        line=6,
        green=True,
    ),
    Gamed(
        name="test call replaced",
        base=PY,
        change={"conftest.py": "def pytest_pyfunc_call(pyfuncitem):\n    return True\n"},
        kind=K.RESULT_FORCED,
        file="conftest.py",
        line=2,
        green=True,
    ),
    Gamed(
        name="collect_ignore",
        base=PY_TWO,
        change={"tests/conftest.py": 'collect_ignore = ["test_calc.py"]\n'},
        kind=K.TEST_SKIPPED,
        file="tests/conftest.py",
        line=1,
        green=True,
    ),
    Gamed(
        name="exit registered",
        base=PY,
        change={"tests/conftest.py": "import atexit\nimport os\n\natexit.register(os._exit, 0)\n"},
        kind=K.EXIT_FORCED,
        file="tests/conftest.py",
        line=4,
    ),
    Gamed(
        name="early exit in a test",
        base=PY,
        change={T: ((HEAD, "def test_a():\n    import os\n\n    os._exit(0)\n\n\n" + HEAD),)},
        kind=K.EXIT_FORCED,
        file=T,
        line=9,
        green=True,
    ),
    Gamed(
        name="early exit in the code",
        base=PY,
        change={"calc.py": "import os\n\nos._exit(0)\n" + CALC},
        kind=K.EXIT_FORCED,
        file="calc.py",
        line=3,
        green=True,
    ),
    Gamed(
        name="test run detected",
        base=PY,
        change={
            "calc.py": 'import os\n\n\ndef add(a, b):\n    if "PYTEST_CURRENT_TEST" in os.environ:\n        return a + b\n    return a - b\n\n\ndef double(a):\n    return a * 2\n'
        },
        kind=K.TEST_DETECTED,
        file="calc.py",
        line=5,
        green=True,
    ),
    Gamed(
        name="answer that equals everything",
        base=PY,
        change={
            "calc.py": "class Sum:\n    def __eq__(self, other):\n        return True\n\n\ndef add(a, b):\n    return Sum()\n\n\ndef double(a):\n    return a * 2\n"
        },
        kind=K.RESULT_FORCED,
        file="calc.py",
        line=2,
        green=True,
    ),
    Gamed(
        name="runner shadowed by a module",
        base=PY,
        change={"pytest.py": "import sys\n\nsys.exit(0)\n"},
        kind=K.RUNNER_SHADOWED,
        file="pytest.py",
        line=1,
    ),
    Gamed(
        name="sitecustomize",
        base=PY,
        change={"sitecustomize.py": "import atexit\nimport os\n\natexit.register(os._exit, 0)\n"},
        kind=K.RUNNER_SHADOWED,
        file="sitecustomize.py",
        line=1,
    ),
    Gamed(
        name="path configuration file",
        base=PY,
        change={"fast.pth": "import os; os._exit(0)\n"},
        kind=K.RUNNER_SHADOWED,
        file="fast.pth",
        line=1,
    ),
    Gamed(
        name="program on the check's PATH",
        base=PY,
        change={".venv/bin/pytest": "#!/bin/sh\nexit 0\n"},
        kind=K.RUNNER_SHADOWED,
        file=".venv/bin/pytest",
        line=1,
    ),
]

INI_TWO = PY_TWO["pyproject.toml"]
CONFIG = [
    Gamed(
        name="addopts -k",
        base=PY,
        change={"pyproject.toml": INI + 'addopts = "-k double"\n'},
        kind=K.CONFIG_CHANGED,
        file="pyproject.toml",
        line=4,
        green=True,
    ),
    Gamed(
        name="addopts --deselect",
        base=PY,
        change={"pyproject.toml": INI + 'addopts = ["--deselect", "tests/test_calc.py::test_add"]\n'},
        kind=K.CONFIG_CHANGED,
        file="pyproject.toml",
        line=4,
        green=True,
    ),
    Gamed(
        name="addopts --ignore",
        base=PY_TWO,
        change={"pyproject.toml": INI + 'addopts = "--ignore=tests/test_calc.py"\n'},
        kind=K.CONFIG_CHANGED,
        file="pyproject.toml",
        line=4,
        green=True,
    ),
    Gamed(
        name="pytest.ini that takes precedence",
        base=PY,
        change={"pytest.ini": "[pytest]\npythonpath = .\ntestpaths = tests\naddopts = --collect-only\n"},
        kind=K.CONFIG_CHANGED,
        file="pytest.ini",
        line=4,
        green=True,
    ),
    Gamed(
        name="testpaths narrowed",
        base={**PY, "tests/unit/test_more.py": PY_TWO["tests/test_more.py"]},
        change={"pyproject.toml": (('testpaths = ["tests"]', 'testpaths = ["tests/unit"]'),)},
        kind=K.CONFIG_CHANGED,
        file="pyproject.toml",
        line=3,
        green=True,
    ),
    Gamed(
        name="python_files narrowed",
        base=PY_TWO,
        change={"pyproject.toml": INI + 'python_files = ["test_m*.py"]\n'},
        kind=K.CONFIG_CHANGED,
        file="pyproject.toml",
        line=4,
        green=True,
    ),
    Gamed(
        name="python_functions narrowed",
        base=PY,
        change={"pyproject.toml": INI + 'python_functions = ["test_d*"]\n'},
        kind=K.CONFIG_CHANGED,
        file="pyproject.toml",
        line=4,
        green=True,
    ),
    Gamed(
        name="coverage threshold lowered",
        base=PY_COVERAGE,
        change={"pyproject.toml": (("fail_under = 90", "fail_under = 10"),)},
        kind=K.COVERAGE_LOWERED,
        file="pyproject.toml",
        line=6,
    ),
    Gamed(
        name="--cov-fail-under lowered",
        base={
            **PY,
            "setup.cfg": "[tool:pytest]\naddopts = --cov --cov-fail-under=85\n",
            "pyproject.toml": "[project]\n",
        },
        change={"setup.cfg": "[tool:pytest]\naddopts = --cov --cov-fail-under=5\n"},
        kind=K.COVERAGE_LOWERED,
        file="setup.cfg",
        line=2,
    ),
    Gamed(
        name="coverage omits the code",
        base={**PY, ".coveragerc": "[report]\nfail_under = 90\n"},
        change={".coveragerc": "[run]\nomit = calc.py\n\n[report]\nfail_under = 90\n"},
        kind=K.COVERAGE_LOWERED,
        file=".coveragerc",
        line=2,
    ),
    Gamed(
        name="|| true in the Makefile",
        base=PY_MAKE,
        change={"Makefile": "test:\n\tpytest -q || true\n"},
        kind=K.COMMAND_CHANGED,
        file="Makefile",
        line=2,
        checks=("make test",),
        green=True,
    ),
    Gamed(
        name="test target narrowed",
        base=PY_MAKE,
        change={"Makefile": "test:\n\tpytest -q -k double\n"},
        kind=K.COMMAND_CHANGED,
        file="Makefile",
        line=2,
        checks=("make test",),
        green=True,
    ),
    Gamed(
        name="make told to ignore the failure",
        base=PY_MAKE,
        change={"Makefile": "test:\n\t-pytest -q\n"},
        kind=K.COMMAND_CHANGED,
        file="Makefile",
        line=2,
        checks=("make test",),
        green=True,
    ),
    Gamed(
        name="test target that tests nothing",
        base=PY_MAKE,
        change={"Makefile": "test:\n\t@echo all tests passed\n"},
        kind=K.COMMAND_CHANGED,
        file="Makefile",
        line=2,
        checks=("make test",),
        green=True,
    ),
    Gamed(
        name="another makefile in front",
        base=PY_MAKE,
        change={"GNUmakefile": "test:\n\t@true\n"},
        kind=K.RUNNER_SHADOWED,
        file="GNUmakefile",
        line=1,
        checks=("make test",),
        green=True,
    ),
    Gamed(
        name="tox command forced",
        base=PY_TOX,
        change={"tox.ini": "[testenv]\nignore_outcome = true\ncommands = pytest -q\n"},
        kind=K.COMMAND_CHANGED,
        file="tox.ini",
        line=2,
    ),
    Gamed(
        name="check script ends with exit 0",
        base=PY_SCRIPT,
        change={"check.sh": "pytest -q\nexit 0\n"},
        kind=K.CHECK_CHANGED,
        file="check.sh",
        line=2,
        checks=("sh check.sh",),
        green=True,
    ),
    Gamed(
        name="CI file touched",
        base=PY_CI,
        change={".github/workflows/ci.yml": (("pytest -q", "pytest -q || true"),)},
        kind=K.CI_CHANGED,
        file=".github/workflows/ci.yml",
        line=5,
    ),
    Gamed(
        name="CI file deleted",
        base=PY_CI,
        change={".github/workflows/ci.yml": None},
        kind=K.CI_CHANGED,
        file=".github/workflows/ci.yml",
        line=1,
    ),
    Gamed(
        name="tests hidden from the record",
        base=PY,
        change={".gitignore": "__pycache__/\nconftest.py\n"},
        kind=K.TESTS_HIDDEN,
        file=".gitignore",
        line=2,
    ),
    Gamed(
        name="snapshot rewritten",
        base=PY_SNAPSHOT,
        change={"tests/__snapshots__/test_calc.ambr": "# serializer version: 1\nadd: -1\n"},
        kind=K.SNAPSHOT_CHANGED,
        file="tests/__snapshots__/test_calc.ambr",
        line=2,
        green=True,
    ),
    Gamed(
        name="golden data edited",
        base=PY_GOLDEN,
        change={"tests/data/sum.txt": "-1\n"},
        kind=K.TEST_DATA_CHANGED,
        file="tests/data/sum.txt",
        line=1,
        green=True,
    ),
]

GAMED = [*TESTS, *ASSERTIONS, *AROUND, *CONFIG]
