"""A command under the guard: when it is over, for whatever reason, nothing that it started is left."""

from __future__ import annotations

import os
import subprocess
import sys
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .procs import end_everything, started_at

_GUARD = Path(__file__).with_name("guard.py")
_PATIENCE_S = 10.0
_live: weakref.WeakSet[Guarded] = weakref.WeakSet()


class Guarded:
    """A running command. `pid` and `started` are the guard's, and what a later worker knows the attempt by.

    `protect` names a directory that the command may not write below, `keep` what stays writable for it all the
    same. `cookie` marks its processes where there is no guard (on systems other than Linux).
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cookie: str,
        protect: Path | None = None,
        keep: Sequence[Path] = (),
        pass_fds: Sequence[int] = (),
        **options: Any,
    ) -> None:
        self._cookie = cookie
        read, self._lease = os.pipe()
        words = [*_guard(read, protect, keep), *command]
        fds = (read, *pass_fds)
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            words, pass_fds=fds, start_new_session=True, stderr=subprocess.STDOUT, **options
        )
        os.close(read)
        self.pid = self.process.pid
        self.started = started_at(self.pid)
        _live.add(self)

    def running(self) -> bool:
        """Whether the command is still at work."""
        return self.process.poll() is None

    def end(self) -> int:
        """End the command and all it started; its exit code, or how it was ended."""
        self.let_go()
        try:
            code = self.process.wait(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            code = -9
        end_everything(self._cookie, pid=self.pid, started=self.started)
        self.process.wait()
        _live.discard(self)
        return code

    def let_go(self) -> None:
        """Let go of the lease: the guard ends everything, whether or not this process lives to see it."""
        if self._lease >= 0:
            os.close(self._lease)
            self._lease = -1


def end_all() -> None:
    """End every command of this process that is still at work."""
    running = list(_live)
    for guarded in running:
        guarded.let_go()
    for guarded in running:
        try:
            guarded.process.wait(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            continue


def _guard(lease: int, protect: Path | None, keep: Sequence[Path]) -> list[str]:
    if sys.platform != "linux":
        return []
    words = [sys.executable, "-I", "-S", str(_GUARD), str(lease)]
    if protect is not None:
        words += ["--protect", str(protect), *(w for k in keep for w in ("--keep", str(k)))]
    return [*words, "--"]
