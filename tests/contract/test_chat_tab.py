"""What the dashboard's chat sees of its runs."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from matrix_coder.testing import Rule
from webbench import TOKEN, Dashboard

from .runbench import MEND, Bench, rules, says

SECONDS = 90


class Tab:
    """One tab of the dashboard's chat, as its page talks to the server."""

    def __init__(self, dashboard: Dashboard) -> None:
        self._socket: ClientConnection = connect(f"ws://127.0.0.1:{dashboard.port}/api/ws?token={TOKEN}")
        self._ids = itertools.count(1)
        self.events: list[dict[str, Any]] = []
        self.session = str(self.call("session.create", cols=100)["session_id"])

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._ids)
        self._socket.send(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            frame = self._frame(deadline)
            if frame.get("id") == number:
                assert "error" not in frame, frame
                return dict(frame["result"])
        raise AssertionError(f"no answer to {method}; events: {self.events[-20:]}")

    def _frame(self, deadline: float) -> dict[str, Any]:
        frame = dict(json.loads(self._socket.recv(timeout=max(0.1, deadline - time.monotonic()))))
        if frame.get("method") == "event":
            self.events.append(dict(frame["params"]))
        return frame

    def say(self, text: str) -> None:
        self.call("prompt.submit", session_id=self.session, text=text)

    def wait_for(self, kind: str, text: str) -> dict[str, Any]:
        """The first event of this kind that holds the text."""
        deadline = time.monotonic() + SECONDS
        while not (found := [e for e in self.events if e["type"] == kind and text in json.dumps(e)]):
            self._frame(deadline)
        return found[0]

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def tabs() -> Iterator[list[Tab]]:
    opened: list[Tab] = []
    yield opened
    for tab in opened:
        tab.close()


def test_tab_when_its_run_ends_then_is_shown_it_and_the_other_tab_is_not(bench: Bench, tabs: list[Tab]) -> None:
    """The dashboard's chat shows how a run ended as a line in the tab that started it, once, and nowhere else."""
    place = bench(
        [*rules([says("PASS", MEND)], [says("PASS")]), Rule(match="matrix ralph", steps=({"text": "it has started"},))]
    )
    dashboard = Dashboard(place.home)
    try:
        tabs += [Tab(dashboard), Tab(dashboard)]
        tabs[1].say("hello")
        tabs[1].wait_for("message.complete", "no rule matches")
        tabs[0].say(f'matrix ralph check="pytest -q" in={place.repo}: make the tests pass')
        tabs[0].wait_for("message.complete", "it has started")
        shown = tabs[0].wait_for("review.summary", "r1 ralph (make the tests pass): verified after 1 of 5 iterations")
        assert shown["session_id"] == tabs[0].session
        for tab in tabs:
            tab.call("session.list")
        assert [sum(e["type"] == "review.summary" for e in tab.events) for tab in tabs] == [1, 0]
    finally:
        dashboard.close()
