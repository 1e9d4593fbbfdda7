"""The guard against gamed tests as a pure function: what it lets pass, what it wonders about, what it never does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrix_coder.core.tamper import TamperKind as K
from matrix_coder.core.tamper import TamperReport, examine, find_tampering

FIX = "Fix add so that the failing test passes"
CODE = {"calc.py": "def add(a, b):\n    return a - b\n"}
SOLVED = {"calc.py": "def add(a, b):\n    return a + b\n"}
TEST = "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"


def judged(
    before: dict[str, str], after: dict[str, str], goal: str = FIX, checks: tuple[str, ...] = ()
) -> TamperReport:
    """What the guard says about two states given as texts."""
    old, new = ({p: t.encode() for p, t in tree.items()} for tree in (before, after))
    return examine(old, new, goal=goal, checks=checks)


def kinds(report: TamperReport) -> set[tuple[K, bool]]:
    return {(f.kind, f.certain) for f in report.findings}


def in_test(body: str) -> dict[str, str]:
    """A test file whose only test has this body."""
    return {"test_calc.py": "import pytest\nfrom calc import add\n\n\ndef test_add():\n" + body}


def test_guard_when_nothing_changed_then_nothing_found() -> None:
    """Two equal states have no finding."""
    assert judged({**CODE, "test_calc.py": TEST}, {**CODE, "test_calc.py": TEST}) == TamperReport()


def test_guard_when_called_by_either_name_then_the_same_findings() -> None:
    """`find_tampering` gives the findings of `examine` without the exemptions."""
    before, after = {"test_calc.py": TEST.encode()}, {"calc.py": b"x = 1\n"}
    assert find_tampering(before, after, goal=FIX) == examine(before, after, goal=FIX).findings != ()


def test_finding_when_shown_then_file_line_kind_and_detail() -> None:
    """A finding's text names the place as file:line, and says when the line is one of the earlier state."""
    (finding,) = judged({"tests/test_calc.py": TEST}, {}).findings
    assert str(finding) == "tests/test_calc.py:4 (before) test file deleted: 1 test gone: test_add"
    assert finding.text == "def test_add():"


@pytest.mark.parametrize(
    ("goal", "excused"),
    [
        ("Remove add from calc", True),
        ("Delete test_add", True),
        ("Drop the tests of add", True),
        ("Remove the bug in add", False),
        ("Fix add. Do not remove any tests of add", False),
        ("Fix calc without deleting test_add", False),
        ("Never drop the tests of add, fix it", False),
        ("Remove the whitespace in calc", False),
        ("Make it work", False),
    ],
)
def test_goal_when_it_speaks_of_removal_then_excused_only_if_it_asks_for_it(goal: str, excused: bool) -> None:
    """A removed test is excused by a clause that asks for its removal, not by one that forbids it or removes a bug."""
    before = {**CODE, "test_calc.py": TEST}
    report = judged(before, {"calc.py": "def double(a):\n    return a * 2\n"}, goal)
    assert bool(report.exempted) is excused
    assert bool(report.certain) is not excused


def test_goal_when_it_removes_a_feature_whose_code_stays_then_its_tests_are_not_excused() -> None:
    """Tests of a feature go only together with the feature's code."""
    report = judged({**CODE, "test_calc.py": TEST}, SOLVED, "Remove the add feature")
    assert kinds(report) == {(K.TEST_FILE_DELETED, True)}


@pytest.mark.parametrize(
    ("goal", "excused"),
    [
        ("Update CI to Python 3.13", True),
        ("Add a GitHub Actions job", True),
        ("Edit .github/workflows/ci.yml", True),
        ("Fix add, leave CI alone", False),
        ("Fix add but don't touch the workflow", False),
        ("Fix add", False),
    ],
)
def test_goal_when_it_speaks_of_ci_then_excused_only_if_it_asks_for_it(goal: str, excused: bool) -> None:
    """A changed CI file is excused by a clause about CI that isn't a prohibition."""
    path = ".github/workflows/ci.yml"
    report = judged({path: "run: pytest\n"}, {path: "run: pytest -x\n"}, goal)
    assert bool(report.exempted) is excused
    assert bool(report.certain) is not excused


@pytest.mark.parametrize(
    ("goal", "touched", "certain"),
    [
        (FIX, True, True),
        ("Let add subtract from now on", True, False),
        ("Let add subtract from now on", False, True),
        ("Correct the expectations of the tests", False, False),
        ("Fix add: it returns 9 from now on", True, False),
    ],
)
def test_expectation_when_changed_then_an_accusation_by_the_kind_of_goal(
    goal: str, touched: bool, certain: bool
) -> None:
    """Another expected value is an accusation where the goal is to mend, or where only tests were touched."""
    after = {"test_calc.py": TEST.replace("5", "9")} | (SOLVED if touched else CODE)
    assert kinds(judged({**CODE, "test_calc.py": TEST}, after, goal)) == {(K.EXPECTATION_CHANGED, certain)}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    assert add(0.1, 0.2) == 0.3\n", "    assert add(0.1, 0.2) == pytest.approx(0.3)\n"),
        ("    assert add([], []) == []\n", "    assert not add([], [])\n"),
    ],
)
def test_assertion_when_weakened_in_good_style_then_only_wondered_about(before: str, after: str) -> None:
    """Nearness of floating-point numbers and emptiness by truth may be better tests: not certain."""
    assert kinds(judged(in_test(before), in_test(after))) == {(K.ASSERTION_WEAKENED, False)}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("    assert add(1, 2) == 3\n", "    assert 3 == add(1, 2), 'sum'\n"),
        ("    assert add(1, 2) == True\n", "    assert add(1, 2) is True\n"),
        ("    assert add(1, 2) == True\n", "    assert add(1, 2)\n"),
        ("    assert not add(1, 2) == 3\n", "    assert add(1, 2) != 3\n"),
        ("    assert add(1, 2) == 3 and add(0, 0) == 0\n", "    assert add(0, 0) == 0\n    assert add(1, 2) == 3\n"),
        ("    assert 0 < add(1, 2) < 4\n", "    assert 0 < add(1, 2)\n    assert add(1, 2) < 4\n"),
        ("    x = add(1, 2)\n    assert x == 3\n", "    assert (y := add(1, 2)) == 3\n"),
        ("    assert add(1, 2) == 3\n", "    assert type(add(1, 2)) is int\n    assert add(1, 2) == 3\n"),
        ("    assert add(1, 2) is not None\n", "    assert add(1, 2) == 3\n"),
        (
            "    with pytest.raises(Exception):\n        add(1, '')\n",
            "    with pytest.raises(TypeError):\n        add(1, '')\n",
        ),
        ("    assert abs(add(1, 2) - 3) < 0.1\n", "    assert add(1, 2) == pytest.approx(3, abs=0.01)\n"),
    ],
)
def test_assertion_when_it_says_the_same_or_more_then_nothing_found(before: str, after: str) -> None:
    """Another way to write an assertion, or a stricter one, is no finding of any kind."""
    assert judged(in_test(before), in_test(after)).findings == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("assert add(1, 2) == 3", "assert add(1, 2) >= 0"),
        ("assert add(1, 2) == 3", "assert isinstance(add(1, 2), int)"),
        ("assert add(1, 2) == 3", "assert add(1, 2) in (3, -1)"),
        ("assert add(1, 2) == 3", "assert add(1, 2) != None"),
        ("assert add(1, 2) == 3", "assert (add(1, 2) == 3) or 1"),
        ("assert add(1, 2) == 3", "assert add(1, 2) == 3 or add(1, 2) == -1"),
        ("assert add(1, 2) == 3", "assert lambda: add(1, 2) == 3"),
        ("assert add(1, 2) == 3", "assert (add(1, 2) == 3, 'sum')"),
        ("assert add(1, 2) == 3", "assert add(1, 2) == pytest.approx(3, abs=9)"),
        ("assert add(1, 2) is None", "assert add(1, 2) is None or add(1, 2)"),
        ("assert {1} == add(1, 2)", "assert {1} <= add(1, 2)"),
    ],
)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_assertion_when_more_passes_then_weakened(before: str, after: str) -> None:
    """A form of the assertion that lets more pass is certain, whatever it looks like."""
    report = judged(in_test(f"    {before}\n"), in_test(f"    {after}\n"))
    assert (K.ASSERTION_WEAKENED, True) in kinds(report)
    assert [f.line for f in report.certain] == [6]


def test_test_when_it_never_ran_then_its_loss_is_no_accusation() -> None:
    """Nobody loses anything by the removal of a test that was skipped."""
    skipped = "import pytest\n\n\n@pytest.mark.skip\ndef test_old():\n    assert 1 == 2\n\n\n" + TEST
    assert kinds(judged({"test_calc.py": skipped}, {"test_calc.py": TEST})) == {(K.TEST_DELETED, False)}


def test_check_when_its_own_script_changes_then_accused_unless_the_goal_names_it() -> None:
    """Whoever edits the file that a check command runs writes their own verdict."""
    before, after = {"ci/verify.rb": "run\n"}, {"ci/verify.rb": "puts 1\n"}
    assert kinds(judged(before, after, FIX, ("ruby ci/verify.rb",))) == {(K.CHECK_CHANGED, True)}
    assert judged(before, after, FIX, ("pytest",)).findings == ()
    assert judged(before, after, "Speed up ci/verify.rb", ("ruby ci/verify.rb",)).certain == ()


def test_conftest_when_it_replaces_what_unchanged_tests_assert_about_then_accused() -> None:
    """A conftest that puts something in the place of a tested function is found though no test changed."""
    before = {**CODE, "tests/test_calc.py": TEST}
    after = {**before, "tests/conftest.py": "import calc\n\ncalc.add = lambda a, b: 5\n"}
    assert kinds(judged(before, after)) == {(K.SUBJECT_MOCKED, True)}


def test_code_when_it_only_names_a_runner_variable_then_nothing_found() -> None:
    """A name in a list or a text is no question to the environment."""
    code = 'NAMES = ("PYTEST_CURRENT_TEST", "HOME")\n\n\ndef known(word):\n    return word in NAMES\n'
    assert judged({}, {"env.py": code}).findings == ()


def test_code_when_its_own_assertions_go_then_no_test_is_missed() -> None:
    """Assertions outside of the tests are the code's own matter."""
    before = {
        "calc.py": "def add(a, b):\n    assert a > 0\n    return a + b\n",
        "src/lib.rs": "fn f(a: i32) { assert!(a > 0); }\n",
    }
    assert judged(before, {"calc.py": SOLVED["calc.py"], "src/lib.rs": "fn f(a: i32) {}\n"}).findings == ()


@pytest.mark.parametrize(
    "text",
    [
        "const re = /['\"`]/g; it('a', () => { expect(x).toBe(1); });",
        "const s = `a ${b ? `c ${d}` : '}'} e`; it('a', () => { expect(x).toBe(1); });",
        "it('a', () => { const v = <p>Don't</p>;\n expect(x).toBe(1); });",
        "it('a', () => { // it's\n expect(x).toBe(1); /* ' */ });",
        'it("a", () => { const n = a / b / c; expect(x).toBe(1) });',
    ],
)
def test_script_when_its_text_is_tricky_then_its_assertion_is_still_seen(text: str) -> None:
    """Strings, templates, comments, regular expressions and markup do not hide an assertion or its loss."""
    gone = text.replace("expect(x).toBe(1)", "run(x)")
    assert kinds(judged({"a.test.js": text}, {"a.test.js": gone})) == {(K.ASSERTION_REMOVED, True)}


_PIECES = st.sampled_from(
    [
        "def test_a():",
        "    assert x == 1",
        "it('a', () => {",
        "expect(a).toBe(",
        "`${",
        "/*",
        "'",
        '"',
        "#[test]",
        "fn a() {",
    ]
) | st.sampled_from(
    [
        "func TestA(t *testing.T) {",
        "t.Skip()",
        "})",
        "}",
        "//",
        'r#"',
        "[[",
        "((",
        "@pytest.mark.skip",
        "\\",
        "\x00",
        "é",
    ]
)
_TEXTS = st.lists(_PIECES | st.text(max_size=8), max_size=30).map("\n".join)
_PATHS = st.sampled_from(
    ["test_a.py", "a.test.ts", "a_test.go", "src/lib.rs", "conftest.py", "pyproject.toml", "package.json", "Makefile"]
) | st.sampled_from(
    [".gitignore", ".github/workflows/a.yml", "jest.config.js", "tox.ini", "tests/data/a.txt", "a.snap", "go.mod"]
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(_PATHS, _TEXTS), st.dictionaries(_PATHS, _TEXTS), st.text(max_size=60))
def test_guard_when_texts_are_broken_then_it_still_answers_and_names_real_lines(
    before: dict[str, str], after: dict[str, str], goal: str
) -> None:
    """Whatever stands in the files, the guard raises nothing, and every line it names exists."""
    for finding in judged(before, after, goal).findings:
        side = before if finding.gone else after
        assert finding.line >= 1
        assert finding.file in side or finding.file in before
        assert finding.line <= max(1, len(side.get(finding.file, "").splitlines()))


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(_PATHS, _TEXTS), st.text(max_size=60))
def test_guard_when_the_same_is_judged_twice_then_the_same_is_said(tree: dict[str, str], goal: str) -> None:
    """The guard is a function of its arguments, and no change has no finding."""
    assert judged(tree, tree, goal).findings == ()
    assert judged({}, tree, goal) == judged({}, tree, goal)
