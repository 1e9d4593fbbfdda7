"""Which runs a chat session has, and what it was told and shown of them.

Kept in the store, so that it outlives the turn, the process and the session's id.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field

from ..core.chat_texts import held_lines, iteration_line, outcome_lines
from ..core.models import RunOutcome, RunStatus, RunView
from ..engine import views
from ..engine.paths import raise_marker
from ..engine.store import Store
from .markers import drop_marker, has_marker

_EVENTS = (
    "select id, kind, data from events where run_id = ? "
    "and kind in ('ended', 'paused', 'reopened', 'step', 'check') order by id"
)
# A message takes half a minute at most; until it is shown, the time of its claim stands in the store as a negative.
_GIVEN_UP_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Milestone:
    """Something of a run that a person may be shown; `event_id` names it for good."""

    event_id: int
    text: str


@dataclass(slots=True)
class HermesBridge:
    """The runs of each session of one HERMES_HOME.

    A marker file stands beside the store while a session has a run that is live, waits for an answer, or has a
    result that the session was not told: an ordinary turn asks for that file and opens no store.
    """

    store: Store
    _seen: dict[tuple[str, int], tuple[object, ...]] = field(default_factory=dict)

    def attach(self, session_id: str, run_id: str) -> None:
        """Make the run one of the session's."""
        if not session_id:
            return
        raise_marker(self.store.home, session_id)
        with self.store.transaction() as db:
            number = views.run_number(run_id)
            db.execute("insert or ignore into sessions (session_id, run_id) values (?, ?)", (session_id, number))

    def adopt(self, session_id: str, predecessor: str) -> None:
        """Hand a session's waiting runs to the session that goes on in its place, with what it was shown of them."""
        raise_marker(self.store.home, session_id)
        with self.store.transaction() as db:
            db.execute(
                "insert or ignore into sessions (session_id, run_id, told) select ?, s.run_id, s.told from sessions s "
                "join runs r on r.id = s.run_id where s.session_id = ? and (s.told = 0 or r.outcome = 'blocked')",
                (session_id, predecessor),
            )
            db.execute(
                "insert or ignore into milestones select ?, event_id, at from milestones where session_id = ?",
                (session_id, predecessor),
            )
            told = "update sessions set told = ? where session_id = ? and told = 0"
            db.execute(told, (self.store.clock(), predecessor))
        drop_marker(self.store.home, predecessor)

    def live(self, session_id: str) -> list[RunView]:
        """The session's runs that have not ended, newest first."""
        return self._runs(session_id, "r.status != 'ended'")

    def _runs(self, session_id: str, condition: str) -> list[RunView]:
        sql = (
            "select r.id from sessions s join runs r on r.id = s.run_id "
            f"where s.session_id = ? and {condition} order by r.id desc"
        )
        return [views.view(self.store, row["id"]) for row in self.store.read(sql, session_id)]

    def asking(self, session_id: str) -> list[RunView]:
        """The session's blocked runs, newest first; none of before its last start, which left them behind."""
        asking = []
        for run in views.recent(self.store, session_id=session_id):
            if run.outcome is not RunOutcome.BLOCKED:
                break
            asking.append(run)
        return asking

    def untold(self, session_id: str) -> list[RunView]:
        """The session's ended runs whose result it was not told, newest first."""
        return self._runs(session_id, "s.told = 0 and r.status = 'ended'")

    def told(self, session_id: str, run_id: str) -> bool:
        """Whether it is this call that tells the session the result; another process may have been first."""
        with self.store.transaction() as db:
            sql = "update sessions set told = ? where session_id = ? and run_id = ? and told = 0"
            return db.execute(sql, (self.store.clock(), session_id, views.run_number(run_id))).rowcount == 1

    def settle(self, session_id: str) -> None:
        """Take the session's marker away where nothing is left to be told."""
        if self._waits(session_id):
            return
        drop_marker(self.store.home, session_id)
        if self._waits(session_id):  # a run was let go on just now
            raise_marker(self.store.home, session_id)

    def _waits(self, session_id: str) -> bool:
        untold = self.store.read("select 1 from sessions where session_id = ? and told = 0 limit 1", session_id)
        return bool(untold or self.asking(session_id))

    # -- what a person is shown unasked

    def changed(self, session_id: str) -> list[int]:
        """The numbers of the session's untold runs that are not as they were when this was asked last."""
        if not has_marker(self.store.home, session_id):
            return []
        rows = self.store.read(
            "select r.id, r.status, r.iteration, r.generation, case when r.status in ('paused', 'ended') then "
            "(select max(e.id) from events e where e.run_id = r.id) end from sessions s join runs r on r.id = s.run_id "
            "where s.session_id = ? and s.told = 0",
            session_id,
        )
        found = []
        for row in rows:
            state = tuple(row)
            if self._seen.get((session_id, row["id"])) != state:
                self._seen[session_id, row["id"]] = state
                found.append(int(row["id"]))
        return found

    def look_again(self, session_id: str, number: int) -> None:
        """Have `changed` name this run once more."""
        self._seen.pop((session_id, number), None)

    def milestone(self, number: int, *, iterations: bool) -> Milestone | None:
        """Where a run stands, if that is worth a line: ended, waiting for the person, or in a further iteration."""
        run = views.view(self.store, number)
        rows = self.store.read(_EVENTS, number)
        if run.status is RunStatus.ENDED:
            result = views.result(self.store, number)
            return _at(rows, "ended", lambda: outcome_lines(run, baseline=result.baseline, evidence=result.evidence))
        if run.status is RunStatus.PAUSED:
            return _at(rows, "paused", lambda: held_lines(run))
        if not iterations or run.iteration < 2:
            return None
        steps = [r for r in rows if r["kind"] == "step"]
        first = next((r for r in steps if json.loads(r["data"])["iteration"] == run.iteration), None)
        if first is None:
            return None
        checks = [json.loads(r["data"])["checks"] for r in rows if r["kind"] == "check" and r["id"] < first["id"]]
        said = "; ".join(f"{c['command']} {c['counts']}" for c in (checks[-1] if checks else ()))
        return Milestone(event_id=int(first["id"]), text=iteration_line(run, said))

    def claim(self, session_id: str, milestone: Milestone) -> bool:
        """Whether it is this call that shows the session the milestone: true once, whoever asks and however often.

        It is followed by `shown` or `unclaim`; who dies before that leaves it to another, a while later.
        """
        now = self.store.clock()
        with self.store.transaction() as db:
            sql = (
                "insert into milestones (session_id, event_id, at) values (?, ?, ?) on conflict do update "
                "set at = excluded.at where at < 0 and at > ?"
            )
            values = (session_id, milestone.event_id, -now, _GIVEN_UP_S - now)
            return db.execute(sql, values).rowcount == 1

    def shown(self, session_id: str, milestone: Milestone) -> None:
        """What was claimed is done."""
        with self.store.transaction() as db:
            sql = "update milestones set at = ? where session_id = ? and event_id = ?"
            db.execute(sql, (self.store.clock(), session_id, milestone.event_id))

    def is_shown(self, session_id: str, milestone: Milestone) -> bool:
        """Whether whoever claimed it has shown it, too."""
        sql = "select 1 from milestones where session_id = ? and event_id = ? and at > 0"
        return bool(self.store.read(sql, session_id, milestone.event_id))

    def unclaim(self, session_id: str, milestone: Milestone) -> None:
        """It could not be shown."""
        with self.store.transaction() as db:
            sql = "delete from milestones where session_id = ? and event_id = ?"
            db.execute(sql, (session_id, milestone.event_id))


def _at(rows: list[sqlite3.Row], kind: str, text: Callable[[], str]) -> Milestone | None:
    """The last event of this kind since the run last went on; it may be written a moment after the run's state."""
    last = next((row for row in reversed(rows) if row["kind"] in (kind, "reopened")), None)
    return Milestone(event_id=int(last["id"]), text=text()) if last is not None and last["kind"] == kind else None
