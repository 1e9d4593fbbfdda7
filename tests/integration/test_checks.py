"""Checks as real commands: what they say, what they may see, and that nothing of them is left."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from matrix_coder.core.errors import CheckNotFound
from matrix_coder.core.models import Evidence, RunOutcome
from matrix_coder.core.workflow import judge
from matrix_coder.engine.cases import read_cases
from matrix_coder.engine.checks import TAIL_CHARACTERS, Check, resolve, run_check

PYTEST = f"{shlex.quote(sys.executable)} -m pytest -q"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work space's"
    folder.mkdir()
    return folder


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def program(folder: Path, name: str, text: str = "exit 0") -> Path:
    file = write(folder / name, f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def run(
    workspace: Path, command: str, *, limit_s: float = 60.0, tree: str = "t1", stop: Callable[[], bool] = lambda: False
) -> Evidence:
    """The evidence of one command, as the engine gathers it."""
    return run_check(
        Check(name="check", command=command),
        workspace=workspace,
        tree=tree,
        directory=workspace.parent / "re cord",
        cookie=f"test:{workspace}",
        limit_s=limit_s,
        stopped=stop,
    )


def alive(pid_file: Path) -> bool:
    """Whether the process that wrote its pid there still runs."""
    try:
        return psutil.Process(int(pid_file.read_text())).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


# -- what a check says


def test_check_when_it_passes_then_evidence_of_it(workspace: Path) -> None:
    """Command, exit code, tree, output and where all of it lies."""
    evidence = run(workspace, "echo fine; pwd")
    assert (evidence.exit_code, evidence.passed, evidence.tree, evidence.name) == (0, True, "t1", "check")
    assert evidence.tail == f"fine\n{workspace}\n"
    assert Path(evidence.output_path).read_text(encoding="utf-8") == evidence.tail
    assert evidence.cases == {}
    assert evidence.duration_s > 0
    assert evidence.environment


@pytest.mark.parametrize(
    ("command", "code"), [("exit 3", 3), ("false", 1), ("no-such-program-here", 127), ("exit 0", 0)]
)
def test_check_when_it_ends_then_its_exit_code_is_told(workspace: Path, command: str, code: int) -> None:
    """The exit code is the command's own."""
    evidence = run(workspace, command)
    assert (evidence.exit_code, evidence.passed) == (code, code == 0)


def test_check_when_it_is_killed_from_outside_then_that_is_its_code(workspace: Path) -> None:
    """A check that something else killed has a code that no judge takes for a failure."""
    killed = run(workspace, "kill -9 $$")
    assert killed.exit_code in (-9, 137)
    green = Evidence(name="check", command="kill -9 $$", exit_code=0, duration_s=1.0, tree="t2")
    assert judge((killed,), (green,)).outcome is RunOutcome.UNVERIFIED


def test_check_when_its_output_is_endless_then_the_tail_is_short_and_the_file_whole(workspace: Path) -> None:
    """The evidence carries the end; colours go; bytes that are no text don't matter."""
    evidence = run(workspace, r"head -c 300000 /dev/zero | tr '\0' 'x'; printf '\033[31mred\033[0m \377 end'")
    assert len(evidence.tail) == TAIL_CHARACTERS
    assert evidence.tail.endswith("red � end")
    assert Path(evidence.output_path).stat().st_size > 300_000


def test_check_when_the_command_holds_quotes_and_lines_then_the_shell_gets_it_as_it_is(workspace: Path) -> None:
    """No layer of ours reads the command again."""
    evidence = run(workspace, """printf '%s|' "a b" 'c"d' $((1+1)) `echo e`\nprintf '%s' '*'""")
    assert evidence.tail == 'a b|c"d|2|e|*'


def test_check_when_it_reads_its_input_then_there_is_none(workspace: Path) -> None:
    """A check that asks something gets no answer instead of waiting for one."""
    assert run(workspace, "cat; echo done").tail == "done\n"


# -- what is left of it: nothing


STARTS_MANY = """
sh -c 'echo $$ > child; exec sleep 300' &
setsid sh -c 'echo $$ > session; exec sleep 300' &
(setsid sh -c 'echo $$ > orphan; exec sleep 300' &)
while [ ! -s child ] || [ ! -s session ] || [ ! -s orphan ]; do sleep 0.02; done
touch ready
sleep 300
"""
MANY = ("child", "session", "orphan")


def test_check_when_it_is_told_to_stop_then_it_ends_with_all_it_started(workspace: Path) -> None:
    """The command, its group, a grandchild in a session of its own and an orphan of one are ended; the code is None."""
    evidence = run(workspace, STARTS_MANY, stop=(workspace / "ready").exists)
    assert evidence.exit_code is None
    assert [n for n in MANY if alive(workspace / n)] == []


def test_check_when_the_time_limit_comes_then_it_ends_with_all_it_started(workspace: Path) -> None:
    """A check over its limit is red, says so, and leaves nothing that it had started by then."""
    evidence = run(workspace, STARTS_MANY, limit_s=1.0)
    assert (evidence.exit_code, evidence.passed, evidence.counts()) == (None, False, "timed out")
    assert [n for n in MANY if (workspace / n).exists() and alive(workspace / n)] == []


def test_check_when_it_ends_and_leaves_processes_behind_then_they_are_ended(workspace: Path) -> None:
    """A server that a check forgot is gone, also one that dropped its environment, and the exit code stays."""
    script = "\n".join(
        (
            "env -i /bin/sh -c 'echo $$ > bare; exec sleep 300' &",
            "setsid sh -c 'echo $$ > session; exec sleep 300' &",
            "while [ ! -s bare ] || [ ! -s session ]; do sleep 0.02; done",
            "exit 7",
        )
    )
    evidence = run(workspace, script)
    assert evidence.exit_code == 7
    assert [n for n in ("bare", "session") if alive(workspace / n)] == []


# -- what it may see


def test_check_when_it_runs_then_nothing_of_the_host_or_its_keys_is_in_its_environment(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No switch of the host, no credential and no setting of whoever started us reaches a check."""
    secrets = {
        "HERMES_HOME": "/secret",
        "HERMES_YOLO_MODE": "1",
        "HERMES_SESSION_ID": "s",
        "OPENAI_API_KEY": "sk-1",
        "ANTHROPIC_API_KEY": "sk-2",
        "OPENAI_BASE_URL": "http://x",
        "GITHUB_TOKEN": "t",
        "TERMINAL_CWD": "/x",
        "PYTHONPATH": "/x",
        "LD_PRELOAD": "",
        "PYTEST_ADDOPTS": "--collect-only",
        "BASH_ENV": "/x",
        "GIT_DIR": "/x",
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    seen = dict(line.split("=", 1) for line in run(workspace, "env").tail.splitlines() if "=" in line)
    own = {"CI", "PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS", "MATRIX_CODER_ATTEMPT", "PWD", "OLDPWD", "SHLVL", "_"}
    allowed = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM"}
    assert {n for n in seen if not n.startswith("LC_")} <= own | allowed
    assert "--collect-only" not in seen["PYTEST_ADDOPTS"]


def test_check_when_the_workspace_has_its_own_environment_then_its_programs_come_first(workspace: Path) -> None:
    """A project's virtual environment and node modules win over what is on PATH."""
    program(workspace, ".venv/bin/tool", "echo venv")
    program(workspace, "node_modules/.bin/other", "echo node")
    assert run(workspace, "tool; other").tail == "venv\nnode\n"


# -- cases


def test_cases_when_pytest_runs_then_each_test_and_each_broken_file_is_known(workspace: Path) -> None:
    """Passed, failed, error, skipped and expected failures by id; a file that can't be imported has no case."""
    write(
        workspace / "test_kinds.py",
        """import pytest

def test_pass(): pass
def test_fail(): assert 0
@pytest.mark.skip
def test_skip(): pass
@pytest.mark.xfail
def test_xfail(): assert 0
@pytest.fixture
def broken(): raise RuntimeError
def test_error(broken): pass
class TestGroup:
    @pytest.mark.parametrize("n", [1, 2])
    def test_n(self, n): assert n == 1
""",
    )
    write(workspace / "pkg/test_broken.py", "import not_there\ndef test_a(): pass\n")
    evidence = run(workspace, PYTEST)
    assert evidence.exit_code == 1
    assert evidence.cases == {
        "test_kinds::test_pass": "passed",
        "test_kinds::test_fail": "failed",
        "test_kinds::test_skip": "skipped",
        "test_kinds::test_xfail": "skipped",
        "test_kinds::test_error": "error",
        "test_kinds.TestGroup::test_n[1]": "passed",
        "test_kinds.TestGroup::test_n[2]": "failed",
        "pkg.test_broken": "error",
    }
    assert not [c for c in evidence.cases if "test_a" in c]
    assert not list(workspace.rglob("__pycache__")) + list(workspace.rglob(".pytest_cache"))


def test_cases_when_a_broken_file_is_mended_or_deleted_then_only_the_first_is_verified(workspace: Path) -> None:
    """Making the module that a test file needs is proof; deleting the test file is not."""
    write(workspace / "test_broken.py", "import made\ndef test_a(): assert made.x\n")
    write(workspace / "test_other.py", "def test_b(): pass\n")
    before = run(workspace, PYTEST)
    write(workspace / "made.py", "x = 1\n")
    assert judge((before,), (run(workspace, PYTEST, tree="t2"),)).outcome is RunOutcome.VERIFIED
    (workspace / "test_broken.py").unlink()
    assert judge((before,), (run(workspace, PYTEST, tree="t2"),)).outcome is RunOutcome.TAMPERED


def test_cases_when_a_check_runs_pytest_twice_then_both_are_known(workspace: Path) -> None:
    """A check that runs two suites one after the other has the cases of both, so that none seems to have vanished."""
    write(workspace / "test_a.py", "import os\ndef test_one(): assert os.path.exists('mended')\n")
    write(workspace / "test_b.py", "def test_two(): pass\n")
    command = f"{PYTEST} test_a.py && {PYTEST} test_b.py"
    before = run(workspace, command)
    assert before.cases == {"test_a::test_one": "failed"}
    write(workspace / "mended")
    after = run(workspace, command, tree="t2")
    assert after.cases == {"test_a::test_one": "passed", "test_b::test_two": "passed"}
    assert judge((before,), (after,)).outcome is RunOutcome.VERIFIED


def test_cases_when_a_check_reports_none_then_those_of_an_earlier_run_are_not_taken(workspace: Path) -> None:
    """A report that an earlier look left behind counts for nothing."""
    for name in ("check.xml", "check.00000000000000000001.xml"):
        write(workspace.parent / "re cord" / name, REPORT.format(cases='<testcase classname="t" name="a"/>'))
    assert run(workspace, "true").cases == {}


REPORT = '<testsuites><testsuite timestamp="2026-01-01T10:00:00" time="1.0">{cases}</testsuite></testsuites>'


def test_cases_when_one_id_comes_twice_then_the_worse_result_counts(tmp_path: Path) -> None:
    """A second result hides no failure."""
    cases = "<testcase classname='t' name='a'><failure/></testcase><testcase classname='t' name='a'/>"
    assert read_cases(write(tmp_path / "r.xml", REPORT.format(cases=cases))) == {"t::a": "failed"}


def test_cases_when_a_test_itself_runs_pytest_then_the_inner_results_are_left_out(tmp_path: Path) -> None:
    """What a plugin's own tests let fail on purpose is no failure of theirs."""
    failing = '<testcase classname="i" name="x"><failure/></testcase>'
    inner = REPORT.format(cases=failing).replace("10:00:00", "10:00:00.500").replace("1.0", "0.2")
    reports = (
        write(tmp_path / "1.xml", inner),
        write(tmp_path / "2.xml", REPORT.format(cases='<testcase classname="t" name="a"/>')),
    )
    assert read_cases(*reports) == {"t::a": "passed"}


@pytest.mark.parametrize("text", ["", "<testsuites>", "no xml", "<a/>", '<!DOCTYPE a [<!ENTITY b "c">]><testsuites/>'])
def test_cases_when_the_report_is_no_report_then_none(tmp_path: Path, text: str) -> None:
    """What can't be read has no cases."""
    assert read_cases(write(tmp_path / "r.xml", text), tmp_path / "missing.xml", tmp_path) == {}


def test_cases_when_a_pipe_or_a_link_lies_in_the_reports_place_then_it_is_not_followed(workspace: Path) -> None:
    """A hostile test can't make the engine wait, or read something else, by what it leaves there."""
    trap = write(workspace / "trap.py", "import os, shlex; words = shlex.split(os.environ['PYTEST_ADDOPTS'])\n")
    with trap.open("a", encoding="utf-8") as stream:
        stream.write("os.mkfifo(next(w for w in words if 'junitxml' in w).split('=', 1)[1])\n")
    evidence = run(workspace, f"{shlex.quote(sys.executable)} trap.py")
    assert (evidence.exit_code, evidence.cases) == (0, {}), evidence.tail
    real = write(workspace / "real.xml", REPORT.format(cases='<testcase classname="t" name="a"/>'))
    (workspace / "link.xml").symlink_to(real)
    assert read_cases(workspace / "link.xml") == {}


# -- which checks a run has


def test_resolve_when_checks_are_given_then_those_by_name_in_order(workspace: Path) -> None:
    """One check is `check`; several are numbered; the repository's own are not asked."""
    write(workspace / "Makefile", "test:\n")
    assert resolve(("true",), workspace) == (Check(name="check", command="true"),)
    assert resolve(("true", "false"), workspace) == (
        Check(name="check-1", command="true"),
        Check(name="check-2", command="false"),
    )


@pytest.mark.parametrize(
    "command",
    [
        "FOO='a b' BAR=1 sh -c true",
        "test -f x && true",
        "(cd sub && make)",
        "! false",
        "cd sub; ./run",
        "./run.sh --fast",
        "sub/../run.sh",
        "tool",
        "sh -c 'echo \"x\"'",
        "sh -c 'echo $#'",
        "$SHELL -c true",
        "for x in 1 2; do true; done",
    ],
)
def test_resolve_when_a_given_command_can_start_then_it_is_taken_as_it_is(workspace: Path, command: str) -> None:
    """Programs on PATH, of the workspace and of its environment, and what only the shell knows."""
    program(workspace, "run.sh")
    program(workspace, ".venv/bin/tool")
    (workspace / "sub").mkdir()
    assert [c.command for c in resolve((command,), workspace)] == [command]


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("no-such-program --flag", "`no-such-program`, which is no program on PATH or in "),
        ("FOO=1 no-such-program", "`no-such-program`"),
        ("(no-such-program)", "`no-such-program`"),
        ("./missing.sh", "`./missing.sh`"),
        ("./plain.sh", "`./plain.sh`"),
        ("plain.sh", "`plain.sh`"),
        ("./sub", "`./sub`"),
        ("~nobody-of-that-name/run", "`~nobody-of-that-name/run`"),
        ("echo 'open", "No closing quotation"),
        ("echo a\0b", "null byte"),
        ("", "an empty one"),
        ("   ", "an empty one"),
        ("FOO=1", "an empty one"),
    ],
)
def test_resolve_when_a_given_command_cannot_start_then_one_line_and_exit_2(
    workspace: Path, command: str, found: str
) -> None:
    """A missing program, a file that can't be run, an open quote or nothing at all is told before anything starts."""
    write(workspace / "plain.sh")
    (workspace / "sub").mkdir()
    with pytest.raises(CheckNotFound, match=re.escape(found)) as refused:
        resolve(("true", command), workspace)
    assert refused.value.exit_code == 2


def test_resolve_when_a_file_lies_beside_the_process_then_the_workspace_decides(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative program is the workspace's, not one of the directory that we happen to run in."""
    program(tmp_path / "elsewhere", "run.sh")
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(CheckNotFound):
        resolve(("./run.sh",), workspace)


PACKAGE = '{{"scripts": {{"test": "{}"}}}}'


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"pytest.ini": ""}, "pytest -q"),
        ({"conftest.py": ""}, "pytest -q"),
        ({"test_a.py": ""}, "pytest -q"),
        ({"tests/unit/test_a.py": ""}, "pytest -q"),
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, "pytest -q"),
        ({"tox.ini": "", "Makefile": "test:\n"}, "tox"),
        ({"noxfile.py": ""}, "nox"),
        ({"package.json": PACKAGE.format("jest")}, "npm test"),
        ({"package.json": PACKAGE.format("jest"), "yarn.lock": ""}, "yarn test"),
        ({"package.json": PACKAGE.format("jest"), "pnpm-lock.yaml": ""}, "pnpm test"),
        ({"go.mod": "module x\n"}, "go test ./..."),
        ({"Cargo.toml": "[package]\n"}, "cargo test"),
        ({"justfile": "default:\n\ntest *args:\n  x\n"}, "just test"),
        ({"Justfile": "@test:\n  x\n"}, "just test"),
        ({"Makefile": "all:\n\ntest: all\n\tx\n"}, "make test"),
        ({"GNUmakefile": "test ::\n\tx\n"}, "make test"),
        ({"test_a.py": "", "package.json": PACKAGE.format("jest"), "Makefile": "test:\n"}, "pytest -q"),
    ],
)
def test_resolve_when_none_is_given_then_what_the_repository_says_of_itself(
    workspace: Path, files: dict[str, str], command: str
) -> None:
    """The first that fits of pytest, tox or nox, package.json, go, cargo, just and make; one check, not several."""
    for name, text in files.items():
        write(workspace / name, text)
    program(workspace, ".venv/bin/pytest")
    assert resolve((), workspace) == (Check(name="check", command=command),)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"pyproject.toml": "tool = 3\n[broken"},
        {"package.json": PACKAGE.format("echo no test specified && exit 1")},
        {"package.json": "[]"},
        {"package.json": '{"scripts": ["test"]}'},
        {"package.json": '{"scripts": {"test": 5}}'},
        {"package.json": "[" * 100_000},
        {"package.json": "{"},
        {"Makefile": "test := x\nunit-test:\n"},
        {"justfile": "test := 'x'\ntest-unit:\n"},
        {"src/test_a.py": ""},
    ],
)
def test_resolve_when_the_repository_names_no_test_then_none(workspace: Path, files: dict[str, str]) -> None:
    """Nothing is made up, and no malformed file stops a start."""
    for name, text in files.items():
        write(workspace / name, text)
    assert resolve((), workspace) == ()


@pytest.mark.parametrize("name", ["pyproject.toml", "package.json", "Makefile", "justfile"])
def test_resolve_when_a_file_is_a_link_to_a_device_then_it_is_not_read(workspace: Path, name: str) -> None:
    """A repository can hold a link to an endless device; a start must not read it."""
    (workspace / name).symlink_to("/dev/zero")
    assert resolve((), workspace) == ()


def test_resolve_when_pytest_is_no_program_then_it_is_run_as_a_module(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where only the module is installed, that is what runs."""
    write(workspace / "conftest.py")
    monkeypatch.setenv("PATH", os.defpath)
    assert resolve((), workspace)[0].command in ("python3 -m pytest -q", "pytest -q")


def test_resolve_when_pytest_is_not_at_hand_then_plain_tests_still_have_a_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests written for the standard library run with it; those that import pytest are not pretended to run."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text("import unittest\n")
    assert [c.command for c in resolve((), tmp_path)] == ["python3 -m unittest discover"]
    (tmp_path / "tests" / "test_b.py").write_text("import pytest\n")
    assert [c.command for c in resolve((), tmp_path)] == ["python3 -m pytest -q"]
