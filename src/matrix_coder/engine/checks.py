"""Checks: commands that the engine runs itself. The only thing a run's success can rest on."""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import time
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import CheckNotFound
from ..core.models import Evidence
from .procs import COOKIE, base_environment, end_everything, started_at

TAIL_CHARACTERS = 4_000
_POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A command with a name, run by the shell in the workspace."""

    name: str
    command: str


def resolve(given: tuple[str, ...], workspace: Path) -> tuple[Check, ...]:
    """The run's checks: those given, else what the repository says of itself, else none.

    Raises CheckNotFound when a given command's program does not exist.
    """
    commands = given or _found(workspace)
    for command in given:
        _require(command, workspace)
    return tuple(
        Check(name=f"check-{i}" if len(commands) > 1 else "check", command=c) for i, c in enumerate(commands, 1)
    )


def _require(command: str, workspace: Path) -> None:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise CheckNotFound("a check that the shell can read", f"`{command}` ({error})", "mend its quotes") from error
    program = next((w for w in words if not re.fullmatch(r"\w+=.*", w)), "")
    if not program:
        raise CheckNotFound("a check command", "an empty one", 'give one, such as --check "pytest -q"')
    if (
        shutil.which(program, path=_path(workspace)) is None
        and not (workspace / program).is_file()
        and not _builtin(program)
    ):
        raise CheckNotFound(
            "a check whose program exists",
            f"`{program}`, which is neither on PATH nor in {workspace}",
            "install it or give another check",
        )


def _builtin(program: str) -> bool:
    return program in {
        "test",
        "[",
        "true",
        "false",
        "cd",
        "!",
        "(",
        "exec",
        "command",
        ":",
        "if",
        "for",
        "set",
    }


def _found(workspace: Path) -> tuple[str, ...]:
    makers: tuple[Callable[[Path], str], ...] = (_pytest, _tox, _npm, _go, _cargo, _just, _make)
    return tuple(c for c in (make(workspace) for make in makers) if c)[:1]


def _pytest(root: Path) -> str:
    named = any((root / f).is_file() for f in ("pytest.ini", "conftest.py", "tests/conftest.py"))
    tables: dict[str, object] = {}
    with suppress(OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        tables = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8")).get("tool", {})
    tests = any(root.glob("test_*.py")) or any(root.glob("tests/**/test_*.py"))
    if not (named or "pytest" in tables or tests):
        return ""
    return "pytest -q" if shutil.which("pytest", path=_path(root)) else "python3 -m pytest -q"


def _tox(root: Path) -> str:
    if (root / "tox.ini").is_file():
        return "tox"
    return "nox" if (root / "noxfile.py").is_file() else ""


def _npm(root: Path) -> str:
    with suppress(OSError, ValueError):
        package = json.loads((root / "package.json").read_text(encoding="utf-8"))
        script = (package.get("scripts") or {}).get("test", "")
        if script and "no test specified" not in script:
            manager = (
                "pnpm" if (root / "pnpm-lock.yaml").is_file() else "yarn" if (root / "yarn.lock").is_file() else "npm"
            )
            return f"{manager} test"
    return ""


def _go(root: Path) -> str:
    return "go test ./..." if (root / "go.mod").is_file() else ""


def _cargo(root: Path) -> str:
    return "cargo test" if (root / "Cargo.toml").is_file() else ""


def _just(root: Path) -> str:
    return "just test" if _has_target(root / "justfile", r"^test\b.*:") else ""


def _make(root: Path) -> str:
    return "make test" if _has_target(root / "Makefile", r"^test\s*:") else ""


def _has_target(file: Path, pattern: str) -> bool:
    with suppress(OSError):
        return re.search(pattern, file.read_text(encoding="utf-8", errors="replace"), re.MULTILINE) is not None
    return False


def _path(workspace: Path) -> str:
    """PATH with the workspace's own environments first, as its people would run the check."""
    own = [str(workspace / d) for d in (".venv/bin", "venv/bin", "node_modules/.bin") if (workspace / d).is_dir()]
    return os.pathsep.join([*own, os.environ.get("PATH", os.defpath)])


def run_check(
    check: Check,
    *,
    workspace: Path,
    tree: str,
    directory: Path,
    cookie: str,
    limit_s: float,
    stopped: Callable[[], bool] = lambda: False,
) -> Evidence:
    """What the check says about the workspace, whose tree is `tree`.

    Runs in a session of its own with an environment that holds nothing of the host's; whatever it started is
    ended when it ends, at `limit_s` seconds, or when `stopped()` says so. Its whole output goes to `directory`.
    """
    directory.mkdir(parents=True, exist_ok=True)
    output = directory / f"{check.name}.log"
    cases_file = directory / f"{check.name}.xml"
    cases_file.unlink(missing_ok=True)
    env = _environment(workspace, cookie, cases_file)
    begun = time.monotonic()
    with output.open("wb") as sink:
        process = subprocess.Popen(
            ["/bin/sh", "-c", check.command],
            cwd=workspace,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        started = started_at(process.pid)
        code = _wait(process, begun + limit_s, stopped)
        end_everything(cookie, pid=process.pid, started=started)
        process.wait()
    return Evidence(
        name=check.name,
        command=check.command,
        exit_code=code,
        duration_s=round(time.monotonic() - begun, 3),
        tree=tree,
        cases=read_cases(cases_file),
        environment=f"{platform.system()} {platform.machine()}, PATH {env['PATH'].split(os.pathsep)[0]}",
        tail=_tail(output),
        output_path=str(output),
    )


def _environment(workspace: Path, cookie: str, cases_file: Path) -> dict[str, str]:
    env = base_environment(os.environ)
    return env | {
        "PATH": _path(workspace),
        "CI": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        # pytest tells its cases through a file, whatever the command's own options are.
        "PYTEST_ADDOPTS": f"-p no:cacheprovider --junitxml={shlex.quote(str(cases_file))}",
        COOKIE: cookie,
    }


def _wait(process: subprocess.Popen[bytes], deadline: float, stopped: Callable[[], bool]) -> int | None:
    while time.monotonic() < deadline and not stopped():
        with suppress(subprocess.TimeoutExpired):
            return process.wait(timeout=_POLL_S)
    return None


def _tail(output: Path) -> str:
    with output.open("rb") as stream:
        stream.seek(0, os.SEEK_END)
        stream.seek(max(0, stream.tell() - 4 * TAIL_CHARACTERS))
        text = stream.read().decode("utf-8", "replace")
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
    return text[-TAIL_CHARACTERS:]


def read_cases(report: Path) -> dict[str, str]:
    """Each test's result by its id, from a JUnit report; empty when there is none that can be read.

    What failed before any test was known, such as a file that can't be imported, is no case: it has no
    class name, and would seem to have vanished once the file can be imported.
    """
    cases: dict[str, str] = {}
    with suppress(OSError, ET.ParseError):
        for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314 - written by the check we ran
            if not case.get("classname"):
                continue
            kinds = {child.tag for child in case}
            status = next((s for s in ("error", "failure", "skipped") if s in kinds), "passed")
            cases[f"{case.get('classname')}::{case.get('name')}"] = "failed" if status == "failure" else status
    return cases
