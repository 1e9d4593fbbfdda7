"""The interactive chat, typed into through a terminal of its own."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from ptyprocess import PtyProcessUnicode

from matrix_coder.testing import HermesHome, Rule, ScriptedModel


class Repl:
    """A running `hermes`, and what its screen has shown so far, without the control sequences."""

    def __init__(self, home: HermesHome) -> None:
        program = str(Path(sys.executable).parent / "hermes")
        env = home.environment({"TERM": "xterm-256color"})
        self.process = PtyProcessUnicode.spawn([program], env=env, cwd=str(home.cwd), dimensions=(40, 160))
        self._parts: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                self._parts.append(self.process.read(4096))
            except (EOFError, ValueError, OSError):
                return

    @property
    def screen(self) -> str:
        return re.sub(r"\x1b\[[0-9;? ]*[A-Za-z]", "", "".join(self._parts))

    def wait_for(self, text: str, times: int = 1) -> None:
        deadline = time.monotonic() + 60
        while self.screen.count(text) < times:
            assert time.monotonic() < deadline, f"{text!r} not seen in:\n{self.screen[-3000:]}"
            time.sleep(0.1)

    def say(self, text: str) -> None:
        self.process.write(text)
        time.sleep(0.3)
        self.process.write("\r")


@pytest.fixture
def repl(scripted_model: Callable[..., ScriptedModel], hermes_home: Callable[..., HermesHome]) -> Iterator[Repl]:
    model = scripted_model([Rule(match=".", steps=({"text": "the answer ends here"},))])
    chat = Repl(hermes_home(model))
    yield chat
    chat.process.terminate(force=True)


def test_chat_when_it_streams_then_the_tip_is_seen_and_can_be_taken_up(repl: Repl) -> None:
    """In the interactive chat, which shows answers as they come, the person sees the tip, and why, and can accept."""
    repl.wait_for("Welcome")
    repl.say("fix README typo")
    repl.wait_for("Efficient for Hermes to handle this directly")
    repl.wait_for("the answer ends here")
    repl.say("invoke Matrix Coder anyway")
    repl.wait_for("executor joins this turn")
    repl.wait_for("the answer ends here", times=2)
    repl.say("/matrix why")
    repl.wait_for("outcome D (matrix), route executor")
