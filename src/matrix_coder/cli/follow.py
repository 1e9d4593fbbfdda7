"""Following a run to its end: events told once each, a view of them, and what Ctrl-C asks."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import click

from ..core.models import RunView
from ..engine.client import Client, known_number
from ..hermes.follow import progress_line
from .terminal import can_ask, say, warn


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event of a run; `at` is seconds since the epoch."""

    id: int = 0
    at: float = 0.0
    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)


class Choice(Enum):
    """What a person wants after Ctrl-C."""

    DETACH = "d"
    CANCEL = "c"
    KEEP = "k"


class Left(Exception):
    """The person has left; the run goes on."""


class Screen:
    """Shows nothing; what it is told of is for those that show something."""

    def tell(self, event: Event) -> None:
        """Take one event."""

    def shown(self) -> AbstractContextManager[object]:
        """While this lasts, the screen is the terminal's."""
        return nullcontext()


class Lines(Screen):
    """A line for each event that matters."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id

    def tell(self, event: Event) -> None:
        line = progress_line(self.run_id, event.kind, event.data)
        if line:
            say(line)


class JsonLines(Screen):
    """Each event as one JSON object a line."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id

    def tell(self, event: Event) -> None:
        data = {"id": event.id, "run_id": self.run_id, "at": event.at, "kind": event.kind, "data": event.data}
        click.echo(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))


class Feed:
    """A run's events, each told once, however often the run is waited for."""

    def __init__(self, client: Client, run_id: str, tell: Callable[[Event], None]) -> None:
        self.client = client
        self.run_id = run_id
        self._tell = tell
        self._last = 0
        self._told = 0

    def wait(self) -> RunView:
        """The run once it has ended or waits for a person."""
        heard = 0

        def hear(_kind: str, _data: dict[str, Any]) -> None:
            nonlocal heard
            heard += 1
            if heard > self._told:
                self._pull()

        return self.client.wait(self.run_id, on_event=hear)

    def _pull(self) -> None:
        for row in self.client.store.events(known_number(self.run_id), after=self._last):
            self._tell(Event(id=row["id"], at=row["at"], kind=row["kind"], data=json.loads(row["data"])))
            self._last = row["id"]
            self._told += 1


def follow(client: Client, run_id: str, screen: Screen) -> RunView:
    """The run once it has ended or waits for a person. Raises Left where the person leaves before."""
    feed = Feed(client, run_id, screen.tell)
    try:
        while True:
            try:
                with screen.shown():
                    return feed.wait()
            except KeyboardInterrupt:
                choice = _ask() if can_ask() else Choice.DETACH
                if choice is Choice.DETACH:
                    raise Left from None
                if choice is Choice.CANCEL:
                    client.cancel(run_id, "asked for at the terminal")
    except KeyboardInterrupt:
        raise Left from None


def _ask() -> Choice:
    """One question; Enter, the end of input and another Ctrl-C detach."""
    while True:
        click.echo("\n[d]etach, [c]ancel, or [k]eep watching? ", nl=False, err=True)
        try:
            answer = sys.stdin.readline()
        except KeyboardInterrupt:
            return Choice.DETACH
        first = answer.strip().lower()[:1]
        if not first:
            return Choice.DETACH
        if first in {c.value for c in Choice}:
            return Choice(first)


def tell_left(run_id: str) -> None:
    """How to get back to a run."""
    warn(f"\n{run_id} goes on: matrix-coder watch {run_id} | matrix-coder cancel {run_id}")
