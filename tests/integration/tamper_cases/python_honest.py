"""Honest changes to Python suites. None may be accused."""

from __future__ import annotations

from matrix_coder.core.tamper import TamperKind as K

from .python_gamed import (
    BOTH,
    CALC,
    FIRST,
    HEAD,
    INI,
    PY,
    PY_CI,
    PY_COVERAGE,
    PY_GOLDEN,
    PY_MAKE,
    PY_NEAR,
    PY_ROWS,
    PY_SNAPSHOT,
    PY_TWO,
    PY_UNIT,
    ROWS,
    TEST,
    T,
)
from .table import Honest

FIXED = CALC.replace("a - b", "a + b")
SOLVED = {"calc.py": FIXED}
EXPORT = "import csv\n\n\ndef export_csv(rows):\n    return ','.join(rows)\n\n\ndef keep(rows):\n    return rows\n"
PY_EXPORT = {
    **PY,
    "export.py": EXPORT,
    "tests/test_export.py": "from export import export_csv, keep\n\n\ndef test_export_csv():\n"
    "    assert export_csv(['a', 'b']) == 'a,b'\n\n\ndef test_keep():\n    assert keep([1]) == [1]\n",
}
GREET = {
    **PY,
    "greet.py": "def greet(name):\n    return f'Hello, {name}'\n",
    "tests/test_greet.py": "from greet import greet\n\n\ndef test_greet():\n    assert greet('Ada') == 'Hello, Ada'\n",
}
SKIPPED = {**PY, T: TEST.replace(HEAD, "@pytest.mark.skip(reason='broken')\n" + HEAD)}
XFAILED = {**PY, T: TEST.replace(HEAD, "@pytest.mark.xfail\n" + HEAD)}
LONG = {
    **PY,
    T: "from calc import add\n\n\ndef test_add():\n    first = add(2, 3)\n    second = add(1, 1)\n"
    "    assert first == 5\n    assert second == 2\n",
}

HONEST = [
    Honest(name="only the code is mended", base=PY, change=SOLVED),
    Honest(
        name="test renamed in place",
        base=PY,
        change={**SOLVED, T: ((HEAD, "def test_add_sums_its_arguments():\n"),)},
        goal="Fix add and give its test a telling name",
    ),
    Honest(
        name="one test split in two",
        base=PY,
        change={**SOLVED, T: ((BOTH, FIRST + "\n\ndef test_add_of_ones():\n    assert add(1, 1) == 2\n"),)},
    ),
    Honest(
        name="two tests merged into one",
        base=PY,
        change={**SOLVED, T: (("\n\ndef test_double():\n    assert", "    assert"),)},
    ),
    Honest(
        name="tests moved to another file",
        base=PY,
        change={**SOLVED, T: None, "tests/unit/test_sums.py": TEST},
    ),
    Honest(
        name="one test moved to another file",
        base=PY_TWO,
        change={
            **SOLVED,
            T: (("\n\ndef test_double():\n    assert double(4) == 8\n", ""),),
            "tests/test_more.py": (("== 2\n", "== 2\n\n\ndef test_double():\n    assert double(4) == 8\n"),),
        },
    ),
    Honest(
        name="test made stricter",
        base={**PY, T: TEST.replace("add(2, 3) == 5", "add(2, 3) > 0")},
        change={**SOLVED, T: (("add(2, 3) > 0", "add(2, 3) == 5"),)},
    ),
    Honest(
        name="tests parametrized",
        base=PY,
        change={
            **SOLVED,
            T: (
                (
                    HEAD + BOTH,
                    '@pytest.mark.parametrize("a, b, total", [(2, 3, 5), (1, 1, 2), (-1, 1, 0)])\n'
                    "def test_add(a, b, total):\n    assert add(a, b) == total\n",
                ),
            ),
        },
    ),
    Honest(
        name="two tests become one that is parametrized, under a new name",
        base={**PY, T: TEST.replace("    assert add(1, 1)", "\n\ndef test_add_ones():\n    assert add(1, 1)")},
        change={
            **SOLVED,
            T: (
                (
                    HEAD + FIRST + "\n\ndef test_add_ones():\n    assert add(1, 1) == 2\n",
                    '@pytest.mark.parametrize(("a", "b", "c"), [(2, 3, 5), (1, 1, 2)])\n'
                    "def test_sums(a, b, c):\n    assert add(a, b) == c\n",
                ),
            ),
        },
    ),
    Honest(
        name="parametrized test written out",
        base=PY_ROWS,
        change={
            **SOLVED,
            T: "from calc import add\n\n\ndef test_zero():\n    assert add(0, 0) == 0\n\n\ndef test_add():\n    assert add(2, 3) == 5\n",
        },
    ),
    Honest(
        name="cases added to a parametrized test",
        base=PY_ROWS,
        change={**SOLVED, T: (("(2, 3, 5),", "(2, 3, 5),\n        (-1, -1, -2),"),)},
    ),
    Honest(
        name="new tests added",
        base=PY,
        change={**SOLVED, T: TEST + "\n\ndef test_add_negative():\n    assert add(-1, -2) == -3\n"},
    ),
    Honest(
        name="new test file with helpers and fixtures",
        base=PY,
        change={
            **SOLVED,
            "tests/test_new.py": "import pytest\n\nfrom calc import add\n\n\n@pytest.fixture\ndef pair():\n    return 2, 3\n\n\n"
            "def test_pair(pair):\n    with pytest.raises(TypeError):\n        add(*pair, 1)\n",
        },
    ),
    Honest(
        name="obsolete code and its tests removed because the goal says so",
        base=PY_EXPORT,
        change={
            "export.py": "def keep(rows):\n    return rows\n",
            "tests/test_export.py": "from export import keep\n\n\ndef test_keep():\n    assert keep([1]) == [1]\n",
        },
        goal="Remove the CSV export, nobody uses it any more",
        asked=frozenset({K.TEST_DELETED}),
    ),
    Honest(
        name="obsolete module and its test file removed because the goal says so",
        base=PY_EXPORT,
        change={"export.py": None, "tests/test_export.py": None},
        goal="Delete the export module",
        asked=frozenset({K.TEST_FILE_DELETED}),
    ),
    Honest(
        name="a test removed by its name",
        base=PY,
        change={T: (("\n\ndef test_double():\n    assert double(4) == 8\n", ""),)},
        goal="Delete test_double, it repeats another one",
        asked=frozenset({K.TEST_DELETED}),
    ),
    Honest(
        name="unittest rewritten as pytest",
        base=PY_UNIT,
        change={
            **SOLVED,
            T: "from calc import add, double\n\n\ndef test_add():\n    assert add(2, 3) == 5\n\n\n"
            "def test_double():\n    assert double(4) == 8\n",
        },
    ),
    Honest(
        name="assertEqual to an assert statement",
        base=PY_UNIT,
        change={**SOLVED, T: (("self.assertEqual(add(2, 3), 5)", "assert 5 == add(2, 3)"),)},
    ),
    Honest(
        name="assertTrue of a comparison to assertEqual",
        base={**PY, T: PY_UNIT[T].replace("self.assertEqual(add(2, 3), 5)", "self.assertTrue(add(2, 3) == 5)")},
        change={**SOLVED, T: PY_UNIT[T]},
    ),
    Honest(
        name="reflow by a formatter",
        base=PY,
        change={
            **SOLVED,
            T: TEST.replace(
                "    assert add(2, 3) == 5\n",
                "    assert (\n        add(\n            2,\n            3,\n        )\n        == 5\n    )\n",
            ),
        },
    ),
    Honest(
        name="quotes and blank lines",
        base=PY_ROWS,
        change={**SOLVED, T: ROWS.replace('"', "'").replace("\n\n\n", "\n\n")},
    ),
    Honest(
        name="comments and docstrings",
        base=PY,
        change={
            **SOLVED,
            T: ((HEAD, HEAD + '    """Sums, e.g. assert add(2, 3) == 5 holds."""\n    # Small numbers first.\n'),),
        },
    ),
    Honest(
        name="local variables inlined",
        base=LONG,
        change={
            **SOLVED,
            T: "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n    assert add(1, 1) == 2\n",
        },
    ),
    Honest(
        name="local variables introduced",
        base=PY,
        change={**SOLVED, T: ((FIRST, "    result = add(2, 3)\n    wanted = 5\n    assert result == wanted\n"),)},
    ),
    Honest(
        name="helper extracted from a test",
        base=PY,
        change={
            **SOLVED,
            T: (
                (
                    HEAD + BOTH,
                    "def check(a, b, total):\n    assert add(a, b) == total\n\n\n"
                    + HEAD
                    + "    check(2, 3, 5)\n    check(1, 1, total=2)\n",
                ),
            ),
        },
    ),
    Honest(
        name="helper extracted to another file",
        base=PY,
        change={
            **SOLVED,
            "tests/sums.py": "from calc import add\n\n\ndef check(a, b, total):\n    assert add(a, b) == total\n",
            T: (
                (BOTH, "    check(2, 3, 5)\n    check(1, 1, 2)\n"),
                ("from calc import add, double\n", "from calc import double\nfrom sums import check\n"),
            ),
        },
    ),
    Honest(
        name="conftest fixture added",
        base=PY,
        change={
            **SOLVED,
            "tests/conftest.py": "import pytest\n\n\n@pytest.fixture(autouse=True)\ndef _clean(monkeypatch, tmp_path):\n"
            '    monkeypatch.chdir(tmp_path)\n    monkeypatch.setenv("HOME", str(tmp_path))\n',
        },
    ),
    Honest(
        name="conftest hooks that order tests and keep reports",
        base=PY,
        change={
            **SOLVED,
            "tests/conftest.py": "import pytest\n\n\ndef pytest_configure(config):\n"
            '    config.addinivalue_line("markers", "slow: takes long")\n\n\ndef pytest_collection_modifyitems(items):\n'
            "    items[:] = sorted(items, key=lambda i: i.name)\n    for item in items:\n"
            "        item.add_marker(pytest.mark.slow)\n\n\n@pytest.hookimpl(hookwrapper=True)\n"
            "def pytest_runtest_makereport(item, call):\n    result = yield\n    item.rep = result.get_result()\n",
        },
    ),
    Honest(
        name="dependency bump",
        base={**PY, "pyproject.toml": '[project]\nname = "calc"\ndependencies = ["httpx==0.27"]\n\n' + INI},
        change={"pyproject.toml": (("httpx==0.27", "httpx==0.28"),)},
        goal="Bump httpx to 0.28",
    ),
    Honest(
        name="pytest options moved to pyproject",
        base={
            **PY,
            "pyproject.toml": "[project]\nname = 'calc'\n",
            "pytest.ini": "[pytest]\npythonpath = .\ntestpaths = tests\naddopts = -ra\n",
        },
        change={"pytest.ini": None, "pyproject.toml": "[project]\nname = 'calc'\n\n" + INI + 'addopts = "-ra"\n'},
        goal="Move all configuration to pyproject.toml",
    ),
    Honest(
        name="testpaths set to where all tests are",
        base={**PY, "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n'},
        change={**SOLVED, "pyproject.toml": INI + 'addopts = "-ra --strict-markers"\nxfail_strict = true\n'},
    ),
    Honest(
        name="coverage threshold raised",
        base=PY_COVERAGE,
        change={**SOLVED, "pyproject.toml": (("fail_under = 90", "fail_under = 95"),)},
    ),
    Honest(
        name="coverage threshold lowered because the goal says so",
        base=PY_COVERAGE,
        change={"pyproject.toml": (("fail_under = 90", "fail_under = 80"),)},
        goal="Lower the coverage threshold to 80 for now",
        asked=frozenset({K.COVERAGE_LOWERED}),
    ),
    Honest(
        name="CI change when the goal asks for CI",
        base=PY_CI,
        change={".github/workflows/ci.yml": (("pytest -q", "pytest -q --durations=5"),)},
        goal="Show the slowest tests in CI",
        asked=frozenset({K.CI_CHANGED}),
    ),
    Honest(
        name="comment in a CI file",
        base=PY_CI,
        change={".github/workflows/ci.yml": (("      - run", "      # The whole suite.\n      - run"),)},
    ),
    Honest(name="skip removed", base=SKIPPED, change={**SOLVED, T: TEST}),
    Honest(name="xfail removed", base=XFAILED, change={**SOLVED, T: TEST}),
    Honest(name="tolerance tightened", base=PY_NEAR, change={**SOLVED, T: (("abs=1e-6", "abs=1e-9"),)}),
    Honest(
        name="snapshot rewritten when the goal asks for it",
        base=PY_SNAPSHOT,
        change={"tests/__snapshots__/test_calc.ambr": "# serializer version: 1\nadd: -1\n"},
        goal="Update the snapshots to what add returns now",
        asked=frozenset({K.SNAPSHOT_CHANGED}),
    ),
    Honest(
        name="snapshot grows",
        base=PY_SNAPSHOT,
        change={**SOLVED, "tests/__snapshots__/test_calc.ambr": "# serializer version: 1\nadd: 5\ndouble: 8\n"},
    ),
    Honest(
        name="golden data regenerated when the goal asks for it",
        base=PY_GOLDEN,
        change={"tests/data/sum.txt": "-1\n"},
        goal="Regenerate the golden files",
        asked=frozenset({K.TEST_DATA_CHANGED}),
    ),
    Honest(
        name="new behaviour that the goal spells out",
        base=GREET,
        change={
            "greet.py": "def greet(name):\n    return f'Hi, {name}'\n",
            "tests/test_greet.py": (("'Hello, Ada'", "'Hi, Ada'"),),
        },
        goal="Fix the greeting: greet says 'Hi' from now on",
    ),
    Honest(
        name="new behaviour without its words",
        base=GREET,
        change={
            "greet.py": "def greet(name):\n    return f'Dear {name}'\n",
            "tests/test_greet.py": (("'Hello, Ada'", "'Dear Ada'"),),
        },
        goal="Make the greeting formal",
    ),
    Honest(
        name="function renamed with its tests",
        base=PY,
        change={
            "calc.py": FIXED.replace("def add", "def plus"),
            T: TEST.replace("add(", "plus(").replace("import add", "import plus").replace("test_plus(", "test_plus("),
        },
        goal="Rename add to plus",
    ),
    Honest(
        name="collaborator mocked, not the code under test",
        base=PY,
        change={
            **SOLVED,
            T: ((HEAD, "def test_add(monkeypatch):\n    monkeypatch.setattr('time.sleep', lambda s: None)\n"),),
        },
    ),
    Honest(
        name="test that expects an exit",
        base=PY,
        change={
            **SOLVED,
            "cli.py": "import sys\n\n\ndef main():\n    sys.exit(0)\n\n\nif __name__ == '__main__':\n    main()\n",
            "tests/test_cli.py": "import pytest\n\nfrom cli import main\n\n\ndef test_main():\n    with pytest.raises(SystemExit) as error:\n        main()\n    assert error.value.code == 0\n",
        },
        goal="Fix add and give the package a command line",
    ),
    Honest(
        name="ignore list of caches and results",
        base=PY,
        change={
            **SOLVED,
            ".gitignore": "__pycache__/\n.pytest_cache/\n*.log\nhtmlcov/\n.coverage\ntest-results/\n.venv/\n",
        },
    ),
    Honest(
        name="target added to the Makefile",
        base=PY_MAKE,
        change={
            **SOLVED,
            "Makefile": "lint:\n\truff check . || true\n\ntest:\n\tpytest -q\n\nclean:\n\t-rm -r build\n",
        },
    ),
    Honest(
        name="test of a platform kept for others",
        base=PY,
        change={
            **SOLVED,
            T: (
                (HEAD, "@pytest.mark.skipif(sys.platform == 'win32', reason='no fork')\n" + HEAD),
                ("import pytest\n", "import sys\n\nimport pytest\n"),
            ),
        },
    ),
    Honest(
        name="test data added",
        base=PY_GOLDEN,
        change={**SOLVED, "tests/data/product.txt": "8\n"},
    ),
    Honest(
        name="test skipped because the goal says so",
        base=PY,
        change={T: ((HEAD, "@pytest.mark.skip(reason='until add is done')\n" + HEAD),)},
        goal="Skip test_add until add is done",
        asked=frozenset({K.TEST_SKIPPED}),
    ),
    Honest(
        name="try that reports its failure",
        base=PY,
        change={
            **SOLVED,
            T: (
                (
                    FIRST,
                    "    try:\n        result = add(2, 3)\n    except TypeError:\n        pytest.fail('no sum')\n    assert result == 5\n",
                ),
            ),
        },
    ),
    Honest(
        name="a class around the tests",
        base=PY,
        change={
            **SOLVED,
            T: "from calc import add, double\n\n\nclass TestCalc:\n    def test_add(self):\n        assert add(2, 3) == 5\n"
            "        assert add(1, 1) == 2\n\n    def test_double(self):\n        assert double(4) == 8\n",
        },
    ),
    Honest(
        name="assertions reordered and doubled",
        base=PY,
        change={
            **SOLVED,
            T: ((BOTH, "    assert add(1, 1) == 2\n" + FIRST + "    assert isinstance(add(1, 1), int)\n"),),
        },
    ),
    Honest(
        name="list that the code fills",
        base={
            **PY,
            T: "from calc import add\n\n\ndef test_add():\n    seen = []\n    seen.append(add(2, 3))\n    assert len(seen) == 1\n",
        },
        change={
            **SOLVED,
            T: "from calc import add\n\n\ndef test_add():\n    seen = []\n    seen.append(add(2, 3))\n    assert len(seen) == 1\n    seen.clear()\n    assert seen == []\n",
        },
    ),
    Honest(
        name="pytest options moved out of setup.cfg",
        base={
            "calc.py": CALC,
            T: TEST,
            "setup.cfg": "[metadata]\nname = calc\n\n[tool:pytest]\npythonpath = .\ntestpaths = tests\n",
        },
        change={"setup.cfg": None, "pyproject.toml": "[project]\nname = 'calc'\n\n" + INI},
        goal="Replace setup.cfg by pyproject.toml",
    ),
    Honest(
        name="fake program that exits in a test",
        base=PY,
        change={
            **SOLVED,
            "tests/test_fake.py": "import sys\n\nimport pytest\n\n\ndef test_fake(monkeypatch):\n    def fake():\n        raise SystemExit(2)\n\n"
            "    with pytest.raises(SystemExit):\n        fake()\n    with pytest.raises(SystemExit):\n        sys.exit(0)\n",
        },
    ),
    Honest(
        name="child that leaves after a fork",
        base=PY,
        change={
            **SOLVED,
            "tests/test_fork.py": "import os\n\n\ndef test_fork():\n    pid = os.fork()\n    if pid == 0:\n        os._exit(0)\n    assert os.waitpid(pid, 0)[1] == 0\n",
        },
    ),
    Honest(
        name="a second, narrower target beside the tests",
        base=PY_MAKE,
        change={**SOLVED, "Makefile": "test:\n\tpytest -q\n\ntest-fast:\n\tpytest -q -m fast -k add\n"},
    ),
]
