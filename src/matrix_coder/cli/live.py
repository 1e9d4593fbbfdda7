"""The live view on a terminal: what it shows is read from the store a few times a second."""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from contextlib import AbstractContextManager
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from ..core.errors import StoreError
from ..engine.client import Client, known_number
from ..engine.paths import run_dir
from ..engine.plan import load_plan
from .follow import Event, Screen
from .view import Scene, picture

_FRAMES_A_SECOND = 4
_REREAD_S = 0.5
_KEPT_EVENTS = 400


class LiveView(Screen):
    """The view of the whole run, drawn anew a few times a second; its last state stays on the screen."""

    def __init__(self, client: Client, run_id: str, console: Console) -> None:
        self.client = client
        self.run_id = run_id
        self.console = console
        self._events: deque[Event] = deque(maxlen=_KEPT_EVENTS)
        self._scene: Scene | None = None
        self._read_at = 0.0
        self._is_last = False

    def tell(self, event: Event) -> None:
        self._events.append(event)

    def shown(self) -> AbstractContextManager[object]:
        self._read_at = 0.0
        self._is_last = False
        return _Drawn(self)

    def close(self) -> None:
        """Let the next drawing, the last one, read the run anew."""
        self._read_at = 0.0
        self._is_last = True

    def draw(self) -> RenderableType:
        """The picture of now."""
        try:
            scene = self._read()
        except (StoreError, sqlite3.Error) as error:
            if self._scene is None:
                return Text(str(error))
            scene = self._scene
        drawn = picture(scene, width=self.console.width, height=self.console.height)
        # The cursor waits on a line of its own: a terminal's `^C` behind a full line would move all of it down by one.
        return drawn if self._is_last else Group(drawn, Text())

    def _read(self) -> Scene:
        now = time.time()
        stale = self._scene is None or time.monotonic() - self._read_at >= _REREAD_S
        if self._scene is None or stale:
            store, number = self.client.store, known_number(self.run_id)
            run = self.client.show(self.run_id)
            self._read_at = time.monotonic()
            self._scene = Scene(
                run=run,
                limits=load_plan(store, number).limits,
                used=store.used(number),
                events=tuple(self._events),
                now=now,
                check_line=check_line(run_dir(store.home, run.run_id) / "checks", now),
            )
        return self._scene


class _Drawn:
    """The time in which the view is on the screen."""

    def __init__(self, view: LiveView) -> None:
        self.view = view
        self.live = Live(
            get_renderable=view.draw,
            console=view.console,
            refresh_per_second=_FRAMES_A_SECOND,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> None:
        self.live.start(refresh=True)

    def __exit__(self, *_: object) -> None:
        self.view.close()
        self.live.stop()


def check_line(folder: Path, now: float, *, fresh_s: float = 30.0) -> str:
    """The last line of the newest output under `folder`; empty where none is newer than `fresh_s` seconds."""
    try:
        logs = [(p.stat().st_mtime, p) for p in folder.glob("*/*.log")]
        written, newest = max(logs, default=(0.0, folder))
        if now - written > fresh_s:
            return ""
        with newest.open("rb") as stream:
            stream.seek(max(0, newest.stat().st_size - 1_000))
            lines = stream.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1] if lines else ""
