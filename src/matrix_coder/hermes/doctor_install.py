"""What is installed, and whether it fits together."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from importlib import metadata

from .._version import __version__
from ..engine.client import INSTALL_ENGINE
from .diagnosis import Diagnosis, Place, ok, problem
from .page_link import PACKAGE

HOST_VERSION = "0.19.0"
"""The host's version that this package is made for, and requires where pip installs it."""

ENGINE_SERIES = (3, 2)
_PYTHONS = ((3, 11), (3, 14))
# The first whose `restore` and `add` read the paths from a file.
_OLDEST_GIT = (2, 25)
# The first that has the clock which the engine's tables ask for.
_SQLITE_WITH_CLOCK = (3, 42)
_PROGRAM_S = 10


def host(_: Place) -> Diagnosis:
    """The host is there, in the version that this package is made for."""
    remedy = f'pip install "hermes-agent=={HOST_VERSION}"'
    found = _installed("hermes-agent")
    if not found:
        return problem(f"hermes-agent {HOST_VERSION}", f"none that {sys.executable} can load", remedy)
    return ok(found) if found == HOST_VERSION else problem(f"hermes-agent {HOST_VERSION}", found, remedy)


def ourselves(_: Place) -> Diagnosis:
    """Which version of this package runs, and from where."""
    return ok(f"{__version__} in {PACKAGE}")


def python(_: Place) -> Diagnosis:
    """The interpreter is one that this package is tested with."""
    return python_of(sys.version_info[:3])


def python_of(version: tuple[int, ...]) -> Diagnosis:
    """The same of any version."""
    low, high = _PYTHONS
    shown = ".".join(map(str, version))
    if low <= version[:2] < high:
        return ok(f"{shown} at {sys.executable}")
    return problem("Python 3.11 to 3.13", shown, "install the plugin and the host under one of these")


def git(_: Place) -> Diagnosis:
    """The git that runs would use is there, and new enough."""
    expected = f"git {'.'.join(map(str, _OLDEST_GIT))} or newer on PATH"
    program = shutil.which("git")
    if program is None:
        return problem(expected, "none", "install git")
    try:
        done = subprocess.run([program, "--version"], capture_output=True, timeout=_PROGRAM_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return problem(expected, f"{program}, which can't be run: {error}", "install git anew")
    told = (done.stdout or done.stderr).decode("utf-8", "replace").strip()
    found = re.match(r"git version (\d+)\.(\d+)\S*", told)
    if not found:
        return problem(expected, f"{program}, which says {told[:80]!r}", "install git anew")
    if (int(found[1]), int(found[2])) < _OLDEST_GIT:
        return problem(expected, f"{told} at {program}", "install a newer one")
    return ok(f"{found[0].removeprefix('git version ')} at {program}")


def engine(_: Place) -> Diagnosis:
    """The durable engine is installed; routing works without it, runs don't."""
    expected = "the durable engine (DBOS) 3.2"
    found = _installed("dbos")
    if not found:
        return problem(expected, "it is not installed", INSTALL_ENGINE)
    if tuple(map(int, re.findall(r"\d+", found)[:2])) != ENGINE_SERIES:
        return problem(expected, found, INSTALL_ENGINE)
    return ok(f"DBOS {found}")


def sqlite(_: Place) -> Diagnosis:
    """Which SQLite Python brings, and whether the engine gets its clock from us."""
    if sqlite3.sqlite_version_info[:2] < _SQLITE_WITH_CLOCK:
        return ok(f"{sqlite3.sqlite_version}; the worker gives it the clock that it lacks before 3.42")
    return ok(sqlite3.sqlite_version)


def _installed(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""
