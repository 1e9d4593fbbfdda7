"""Which runs a chat session has. Kept in the store, so that it outlives the turn, the process and the session's id."""

from __future__ import annotations

from contextlib import suppress

from ..core.models import RunStatus, RunView
from ..engine import views
from ..engine.paths import marker
from ..engine.store import Store
from .markers import raise_marker


class HermesBridge:
    """The runs of each session of one HERMES_HOME.

    A marker file stands beside the store while a session has a run that is live, or one whose result the
    session was not told: an ordinary turn asks for that file and opens no store.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    def attach(self, session_id: str, run_id: str) -> None:
        """Make the run one of the session's."""
        if not session_id:
            return
        raise_marker(self.store.home, session_id)
        with self.store.transaction() as db:
            number = views.run_number(run_id)
            db.execute("insert or ignore into sessions (session_id, run_id) values (?, ?)", (session_id, number))

    def adopt(self, session_id: str, predecessor: str) -> None:
        """Hand a session's untold and live runs to the session that goes on in its place."""
        rows = self.store.read("select run_id from sessions where session_id = ? and told = 0", predecessor)
        for row in rows:
            self.attach(session_id, views.run_id_of(row["run_id"]))

    def live(self, session_id: str) -> list[RunView]:
        """The session's runs that have not ended, newest first."""
        return [r for r in views.recent(self.store, session_id=session_id) if r.status is not RunStatus.ENDED]

    def untold(self, session_id: str) -> list[RunView]:
        """The session's ended runs whose result it was not told, newest first."""
        rows = self.store.read("select run_id from sessions where session_id = ? and told = 0", session_id)
        waiting = {views.run_id_of(r["run_id"]) for r in rows}
        runs = views.recent(self.store, session_id=session_id)
        return [r for r in runs if r.status is RunStatus.ENDED and r.run_id in waiting]

    def told(self, session_id: str, run_id: str) -> None:
        """The session knows the result now; the marker goes with the last one."""
        with self.store.transaction() as db:
            db.execute(
                "update sessions set told = ? where session_id = ? and run_id = ?",
                (self.store.clock(), session_id, views.run_number(run_id)),
            )
        waiting = self.store.read("select 1 from sessions where session_id = ? and told = 0 limit 1", session_id)
        if not waiting:
            with suppress(OSError):
                marker(self.store.home, session_id).unlink()
