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
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import CheckNotFound
from ..core.models import Evidence
from .cases import read_cases, reports, set_aside
from .confine import Confinement
from .guarded import Guarded
from .procs import COOKIE, base_environment

TAIL_CHARACTERS = 4_000
_POLL_S = 0.05
_MAX_SOURCE = 1_000_000
_BUILTINS = {
    *("test", "[", "true", "false", "cd", "!", "{", "exec", "command", ":", ".", "eval", "export", "set", "umask"),
    *("if", "for", "while", "until", "case", "ulimit"),
}


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
    program = _program(command)
    if not program:
        raise CheckNotFound("a check command", "an empty one", 'give one, such as --check "pytest -q"')
    if not _exists(program, workspace):
        raise CheckNotFound(
            "a check whose program exists",
            f"`{program}`, which is no program on PATH or in {workspace}",
            "install it or give another check",
        )


def _program(command: str) -> str:
    """The first program that the shell would start; empty when there is none."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        words = [*lexer]
        if "\0" in command:
            raise ValueError("it holds a null byte")
    except ValueError as error:
        raise CheckNotFound("a check that the shell can read", f"`{command}` ({error})", "mend its quotes") from error
    return next((w for w in words if w != "(" and not re.fullmatch(r"\w+=.*", w, re.DOTALL)), "")


def _exists(program: str, workspace: Path) -> bool:
    if "$" in program or "`" in program:
        return True  # only the shell can tell
    if "/" in program:
        file = workspace / os.path.expanduser(program)  # noqa: PTH111 - no person by that name is no error here
        return file.is_file() and os.access(file, os.X_OK)
    return program in _BUILTINS or shutil.which(program, path=_path(workspace)) is not None


def _found(workspace: Path) -> tuple[str, ...]:
    makers: tuple[Callable[[Path], str], ...] = (_pytest, _tox, _npm, _go, _cargo, _just, _make)
    return tuple(c for c in (make(workspace) for make in makers) if c)[:1]


def _pytest(root: Path) -> str:
    named = any((root / f).is_file() for f in ("pytest.ini", "conftest.py", "tests/conftest.py"))
    named = named or _has(root / "pyproject.toml", r"^\[tool\.pytest\b")
    tests = [*root.glob("test_*.py"), *root.glob("tests/**/test_*.py")]
    if not (named or tests):
        return ""
    if shutil.which("pytest", path=_path(root)):
        return "pytest -q"
    # Without pytest at hand, tests that are written for the standard library still run.
    plain = not named and not any(_has(t, r"^\s*(import|from) pytest\b") for t in tests)
    return "python3 -m unittest discover" if plain else "python3 -m pytest -q"


def _tox(root: Path) -> str:
    if (root / "tox.ini").is_file():
        return "tox"
    return "nox" if (root / "noxfile.py").is_file() else ""


def _npm(root: Path) -> str:
    package: object = None
    with suppress(ValueError, RecursionError):
        package = json.loads(_source(root / "package.json"))
    scripts = package.get("scripts") if isinstance(package, dict) else None
    script = scripts.get("test") if isinstance(scripts, dict) else None
    if not isinstance(script, str) or not script or "no test specified" in script:
        return ""
    managers = {"pnpm": "pnpm-lock.yaml", "yarn": "yarn.lock"}
    return next((m for m, lock in managers.items() if (root / lock).is_file()), "npm") + " test"


def _go(root: Path) -> str:
    return "go test ./..." if (root / "go.mod").is_file() else ""


def _cargo(root: Path) -> str:
    return "cargo test" if (root / "Cargo.toml").is_file() else ""


def _just(root: Path) -> str:
    files = ("justfile", "Justfile", ".justfile")
    return "just test" if any(_has(root / f, r"^@?test(?:[ \t][^:=\n]*)?:(?!=)") for f in files) else ""


def _make(root: Path) -> str:
    files = ("GNUmakefile", "makefile", "Makefile")
    return "make test" if any(_has(root / f, r"^test[ \t]*:(?!=)") for f in files) else ""


def _has(file: Path, pattern: str) -> bool:
    return re.search(pattern, _source(file), re.MULTILINE) is not None


def _source(file: Path) -> str:
    """The beginning of a file of the repository; empty for what is no file, such as a link to a device."""
    with suppress(OSError):
        if file.is_file():
            with file.open("rb") as stream:
                return stream.read(_MAX_SOURCE).decode("utf-8", "replace")
    return ""


def _path(workspace: Path, path: str = "") -> str:
    """PATH with the workspace's own environments first, as its people would run the check."""
    own = [str(workspace / d) for d in (".venv/bin", "venv/bin", "node_modules/.bin") if (workspace / d).is_dir()]
    return os.pathsep.join([*own, path or os.environ.get("PATH", os.defpath)])


def run_check(  # noqa: PLR0913 - what a command needs to know, by keyword
    check: Check,
    *,
    workspace: Path,
    tree: str,
    directory: Path,
    cookie: str,
    limit_s: float,
    stopped: Callable[[], bool] = lambda: False,
    environment: Mapping[str, str] | None = None,
    confinement: Confinement | None = None,
) -> Evidence:
    """What the check says about the workspace, whose tree is `tree`.

    Runs in a session of its own with the part of `environment` (by default this process's) that holds nothing of
    the host's; whatever it started is
    ended when it ends, at `limit_s` seconds, or when `stopped()` says so. Its whole output goes to `directory`.
    `confinement` says where it may not write.
    """
    directory.mkdir(parents=True, exist_ok=True)
    output = directory / f"{check.name}.log"
    cases_file = directory / f"{check.name}.xml"
    for old in reports(cases_file):
        old.unlink(missing_ok=True)
    env = _environment(base_environment(environment or os.environ), workspace, cookie, cases_file)
    if confinement is not None:
        env |= confinement.environment(env, directory / "tmp")
    begun = time.monotonic()
    with output.open("wb") as sink:
        command = Guarded(
            ["/bin/sh", "-c", check.command],
            cookie=cookie,
            cwd=workspace,
            env=env,
            protect=confinement.protect if confinement else None,
            keep=confinement.keep if confinement else (),
            stdin=subprocess.DEVNULL,
            stdout=sink,
        )
        ended = _watch(command, begun + limit_s, stopped, cases_file)
        code = command.end()
    return Evidence(
        name=check.name,
        command=check.command,
        exit_code=code if ended else None,
        duration_s=round(time.monotonic() - begun, 3),
        tree=tree,
        cases=read_cases(*reports(cases_file)),
        environment=f"{platform.system()} {platform.machine()}, PATH {env['PATH'].split(os.pathsep)[0]}",
        tail=_tail(output),
        output_path=str(output),
    )


def _environment(base: Mapping[str, str], workspace: Path, cookie: str, cases_file: Path) -> dict[str, str]:
    return {
        **base,
        "PATH": _path(workspace, base.get("PATH", os.defpath)),
        "CI": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        # pytest tells its cases through a file, whatever the command's own options are; one file of tests that
        # can't be imported must not keep the others' results from being known.
        "PYTEST_ADDOPTS": "-p no:cacheprovider --continue-on-collection-errors "
        f"--junitxml={shlex.quote(str(cases_file))}",
        COOKIE: cookie,
    }


def _watch(command: Guarded, deadline: float, stopped: Callable[[], bool], cases_file: Path) -> bool:
    """Whether the command ended by itself, before the deadline and before `stopped()`."""
    while command.running():
        if time.monotonic() >= deadline or stopped():
            return False
        set_aside(cases_file)
        time.sleep(_POLL_S)
    return True


def _tail(output: Path) -> str:
    with output.open("rb") as stream:
        stream.seek(0, os.SEEK_END)
        stream.seek(max(0, stream.tell() - 4 * TAIL_CHARACTERS))
        text = stream.read().decode("utf-8", "replace")
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
    return text[-TAIL_CHARACTERS:]
