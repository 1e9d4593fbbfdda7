"""Processes that can be ended for certain, with everything they started.

A step's commands may leave its process group (the host starts shells in sessions of their own) and may
outlive their parent. So every process of an attempt carries a cookie in its environment, and ending an
attempt means ending whatever carries the cookie or descends from the recorded process, until nothing does.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Mapping

import psutil

COOKIE = "MATRIX_CODER_ATTEMPT"
_ROUNDS = 50
_GUARD_S = 5.0
_PAUSE_S = 0.02

# What a process of ours may see of the environment it was started from. Everything else stays out:
# switches of the host that would change what a child may do, identities of other sessions, foreign settings.
_COMMON = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM"})
_HOST = frozenset(
    {
        "HERMES_HOME",
        "HERMES_INFERENCE_PROVIDER",
        "HERMES_INFERENCE_MODEL",
        "CUSTOM_BASE_URL",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "VIRTUAL_ENV",
        "PYTHONDONTWRITEBYTECODE",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
    }
)
_CREDENTIAL_ENDINGS = ("_API_KEY", "_API_BASE", "_BASE_URL")


def base_environment(source: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that any command may see: paths, locale, home."""
    return {k: v for k, v in source.items() if k in _COMMON or k.startswith("LC_")}


def host_environment(source: Mapping[str, str]) -> dict[str, str]:
    """What a process that talks to the model may see besides: the host's own settings and provider credentials."""
    extra = {k: v for k, v in source.items() if k in _HOST or k.endswith(_CREDENTIAL_ENDINGS)}
    return base_environment(source) | extra


def started_at(pid: int) -> float:
    """When the process started, seconds since the epoch; 0 when it is gone. Tells a reused pid apart."""
    try:
        return psutil.Process(pid).create_time()
    except psutil.Error:
        return 0.0


def same_process(pid: int, started: float) -> bool:
    """Whether the process recorded as (pid, started) is the one that has this pid now."""
    return pid > 0 and started > 0 and abs(started_at(pid) - started) < 0.05


def end_everything(cookie: str, *, pid: int = 0, started: float = 0.0) -> int:
    """Kill every process of an attempt; returns how many were found.

    The recorded process goes first, so that it starts nothing new, then its session, its descendants and all
    that carry the cookie. Repeats until a look finds none.
    """
    seen: set[int] = set()
    own = os.getpid()
    for _ in range(_ROUNDS):
        found = {p for p in _members(cookie, pid, started) if p.pid != own}
        alive = [p for p in found if _is_alive(p)]
        if not alive:
            return len(seen)
        for process in alive:
            seen.add(process.pid)
            with contextlib.suppress(psutil.Error):
                process.kill()
        if pid and pid in seen:
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
        _await_death(alive)
    return len(seen)


def end_attempt(cookie: str, *, pid: int, started: float) -> None:
    """End what is left of an attempt whose engine died. Its guard is at it already and is given the time to finish."""
    deadline = time.monotonic() + _GUARD_S
    while same_process(pid, started) and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)
    end_everything(cookie, pid=pid, started=started)


def _await_death(processes: list[psutil.Process]) -> None:
    """Wait until none of them runs, a second at most. Whoever started one can still ask for its exit code."""
    deadline = time.monotonic() + 1.0
    while True:
        time.sleep(_PAUSE_S)
        if not any(map(_is_alive, processes)) or time.monotonic() > deadline:
            return


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _members(cookie: str, pid: int, started: float) -> set[psutil.Process]:
    members: set[psutil.Process] = set()
    if same_process(pid, started):
        with contextlib.suppress(psutil.Error):
            root = psutil.Process(pid)
            members.add(root)
            members.update(root.children(recursive=True))
        members.update(_session(pid))
    if cookie:
        members.update(_carriers(cookie))
    return members


def _session(pid: int) -> list[psutil.Process]:
    """The processes of the session that `pid` leads, also those that have dropped their environment and parent.

    Only while `pid` is known to be ours, if only as a zombie: a session's number is a pid, and used again.
    """
    members = []
    for process in psutil.process_iter():
        with contextlib.suppress(OSError):
            if os.getsid(process.pid) == pid:
                members.append(process)
    return members


def _carriers(cookie: str) -> list[psutil.Process]:
    carriers = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(COOKIE) == cookie:
                carriers.append(process)
    return carriers
