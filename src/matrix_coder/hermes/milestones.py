"""Shows a chat what its runs have come to without waiting for the person's next message.

One daemon thread for each process that has chats. A look costs a listing of the markers' folder, and a query for
each of this process's own sessions that has one.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from ..engine.store import Store
from .boundary import boundary
from .bridge import HermesBridge
from .chats import Chat, can_show, live_chats
from .markers import any_marker, has_marker
from .settings import Milestones, chat_settings
from .successors import Successors

_LOOK_S = 1.0
_LONGEST_REST_S = 600.0
_MOST_TRIES = 3
_watchers: dict[Path, Watcher] = {}
_lock = threading.Lock()


def watch(home: Path) -> None:
    """Have this process's chats watched, where it has any. Cheap; started once."""
    if can_show():
        watch_soon(home)


def watch_soon(home: Path) -> None:
    """The same in a process that is about to have chats."""
    with _lock:
        if home not in _watchers:
            _watchers[home] = Watcher(home)
            _watchers[home].start()


class Watcher:
    """Watches the runs of the chats of this process."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._bridge: HermesBridge | None = None
        self._successors = Successors(home)
        self._tries: Counter[int] = Counter()
        self._pause = threading.Event()

    def start(self) -> None:
        """Look from now on, for as long as the process lives; the thread never holds it up."""
        threading.Thread(target=self._run, name="matrix-milestones", daemon=True).start()

    def _run(self) -> None:
        rest = _LOOK_S
        while True:
            # What can't be looked at now is tried again ever more seldom: each fault is a line in the log.
            rest = _LOOK_S if self._look() else min(rest * 2, _LONGEST_REST_S)
            self._pause.wait(rest)

    @boundary(lambda *_, **__: None)
    def _look(self) -> bool | None:
        return self.look(live_chats())

    def look(self, chats: Iterable[Chat]) -> bool:
        """Show each chat what there is for it now; whether all could be looked after."""
        if not any_marker(self.home):
            return True
        looked_after = [self._look_after(chat) for chat in chats]
        return all(looked_after)

    @boundary(lambda *_, **__: None)
    def _look_after(self, chat: Chat) -> bool | None:
        """A boundary of its own, so that a chat that can't be reached costs the others nothing."""
        self._successors.follow(chat.session_id)
        if has_marker(self.home, chat.session_id):
            self.tell(chat)
        return True

    def tell(self, chat: Chat) -> None:
        """Show one chat what there is for it now. Raises MatrixError for a store that can't be used."""
        if self._bridge is None:
            self._bridge = HermesBridge(Store(self.home))
        for number in self._bridge.changed(chat.session_id):
            dealt_with = False
            try:
                dealt_with = self._deal(self._bridge, chat, number)
            finally:
                if not dealt_with:
                    self._bridge.look_again(chat.session_id, number)

    def _deal(self, bridge: HermesBridge, chat: Chat, number: int) -> bool:
        """Whether the run's milestone is shown, now or before, by whatever process, or given up."""
        wanted = chat_settings(self.home).chat.milestones
        if wanted is Milestones.OFF:
            return True
        found = bridge.milestone(number, iterations=wanted is Milestones.ITERATIONS)
        if found is None or self._tries[found.event_id] >= _MOST_TRIES:
            return True
        if not bridge.claim(chat.session_id, found):
            return bridge.is_shown(chat.session_id, found)
        shown = False
        try:
            shown = chat.show(found.text)
        finally:
            if shown:
                bridge.shown(chat.session_id, found)
            else:
                self._tries[found.event_id] += 1
                bridge.unclaim(chat.session_id, found)
        return shown
