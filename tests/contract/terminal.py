"""A command line at a terminal of its own, a pseudo-terminal, with a person's keys and signals."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path

from matrix_coder.testing import HermesHome

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """One `matrix-coder` at a terminal `width` wide; `stdin` may be none of it."""

    def __init__(
        self,
        home: HermesHome,
        *words: str,
        cwd: Path,
        width: int = 100,
        height: int = 40,
        env: Mapping[str, str] | None = None,
        stdin: bool = True,
    ) -> None:
        self._ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.out = ""
        self.process = subprocess.Popen(
            [str(Path(sys.executable).parent / "matrix-coder"), *words],
            cwd=cwd,
            env=home.environment({"TERM": "xterm-256color", **(env or {})}),
            stdin=theirs if stdin else subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            # The keys of this terminal are this process's: Ctrl-C reaches it as the kernel sends it.
            preexec_fn=lambda: fcntl.ioctl(1, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        )
        os.close(theirs)

    @property
    def text(self) -> str:
        """What was printed, without colours and moves."""
        return _ESCAPES.sub("", self.out)

    def read(self, seconds: float = 0.1) -> bool:
        """Take what is there; whether the terminal is still open."""
        if not select.select([self._ours], [], [], seconds)[0]:
            return True
        try:
            chunk = os.read(self._ours, 65_536)
        except OSError:
            return False
        self.out += chunk.decode("utf-8", "replace")
        return bool(chunk)

    def until(self, pattern: str, *, timeout_s: float = 60, after: int = 0) -> int:
        """Wait until this stands in the text behind `after`; where it ends."""
        deadline = time.monotonic() + timeout_s
        while not (found := re.compile(pattern).search(self.text, after)):
            assert time.monotonic() < deadline, f"no {pattern!r} in:\n{self.text[-3_000:]}"
            assert self.read() or re.search(pattern, self.text[after:]), f"ended without {pattern!r}:\n{self.text}"
        return found.end()

    def press(self, keys: str) -> None:
        """Type these keys; "\\x03" is Ctrl-C."""
        os.write(self._ours, keys.encode())

    def end(self, timeout_s: float = 60) -> int:
        """Wait for the end; the exit code."""
        deadline = time.monotonic() + timeout_s
        while self.read():
            assert time.monotonic() < deadline, f"did not end:\n{self.text[-3_000:]}"
        return self.process.wait(10)

    def close(self) -> None:
        """End it, whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        os.close(self._ours)
