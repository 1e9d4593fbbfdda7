"""The run store: what was started, how far it is, how it ended. SQLite in WAL mode, one file, JSON values only.

Every process may open it: chat, command line and dashboard start, steer and read runs through it; the
worker alone advances them. Each call opens its own short transaction, so no process holds a lock while it waits.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from ..core.errors import RunUnknown, WorkspaceBusy
from ..core.models import RunOutcome, RunStatus, StepStatus, Usage
from ..core.serde import load_usage
from .paths import raise_marker
from .store_file import SCHEMA_VERSION, StoreFile

__all__ = ["SCHEMA_VERSION", "Store"]

# What a step's next attempt makes anew; a machine that goes down at once may lose it.
_PROGRESS = frozenset({"pid", "pid_started", "evidence", "usage", "child_session", "note"})


class Store(StoreFile):
    """The store under one HERMES_HOME. Opening it creates what is missing; raises StoreError when it can't be used."""

    def __init__(self, home: Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        super().__init__(home, clock=clock)
        # For each run of this very file: the last step that is counted for good, and what all took up to it.
        self._counted: dict[tuple[int, object], tuple[int, Usage]] = {}

    # -- starting and reading runs

    def create_run(self, *, fields: dict[str, Any], session_id: str) -> int:
        """The number of a new queued run. Raises WorkspaceBusy when a live run holds the workspace."""
        row = {**fields, "session_id": session_id, "created_at": self.clock()}
        names = ", ".join(row)
        marks = ", ".join("?" * len(row))
        try:
            with self.transaction() as db:
                self._require_apart(db, str(fields["workspace"]))
                cursor = db.execute(f"insert into runs ({names}) values ({marks})", tuple(row.values()))
                number = int(cursor.lastrowid or 0)
                if session_id:
                    db.execute("insert into sessions (session_id, run_id) values (?, ?)", (session_id, number))
                self._event(db, number, "queued", {})
        except sqlite3.IntegrityError as error:
            raise self._busy(str(fields["workspace"])) from error
        return number

    def require_free(self, workspace: str) -> None:
        """No live run in this directory, above or below it. Raises WorkspaceBusy."""
        with self._connect() as db:
            if db.execute("select 1 from runs where workspace = ? and status != 'ended'", (workspace,)).fetchall():
                raise self._busy(workspace)
            self._require_apart(db, workspace)

    def _require_apart(self, db: sqlite3.Connection, workspace: str) -> None:
        """No live run above or below this directory, whose files would be both runs'. Raises WorkspaceBusy."""
        for row in db.execute("select id, workspace from runs where status != 'ended'").fetchall():
            one, other = Path(workspace), Path(row["workspace"])
            if one != other and (one.is_relative_to(other) or other.is_relative_to(one)):
                raise self._busy(row["workspace"])

    def _busy(self, workspace: str) -> WorkspaceBusy:
        rows = self.read("select id from runs where workspace = ? and status != 'ended'", workspace)
        run = f"r{rows[0]['id']}" if rows else "another run"
        return WorkspaceBusy(
            f"no live run in {workspace}",
            f"{run} at work there",
            f"wait for it, or stop it with `matrix-coder cancel {run}`",
        )

    def run_row(self, number: int) -> sqlite3.Row:
        """The row of one run. Raises RunUnknown."""
        rows = self.read("select * from runs where id = ?", number)
        if not rows:
            raise RunUnknown("the id of a run", f"r{number}", "list them with `matrix-coder runs`")
        return rows[0]

    def step_rows(self, number: int) -> list[sqlite3.Row]:
        """The rows of a run's steps, in order."""
        return self.read("select * from steps where run_id = ? order by number", number)

    def steps_before(self, number: int, step: int, *, last: int) -> list[sqlite3.Row]:
        """The rows of the last so many steps before `step`, in order; none of units."""
        sql = "select * from steps where run_id = ? and number < ? and step not like '%/%' order by number desc limit ?"
        return self.read(sql, number, step, last)[::-1]

    def evidence_before(self, number: int, step: int) -> str:
        """The evidence of the last step before `step` that has any, as JSON; none of units."""
        sql = (
            "select evidence from steps where run_id = ? and number < ? and step not like '%/%' and evidence != '[]' "
            "order by number desc limit 1"
        )
        return next((str(row["evidence"]) for row in self.read(sql, number, step)), "[]")

    def update_run(self, number: int, **fields: object) -> None:
        """Set columns of a run that has not ended; an ended run never changes."""
        names = ", ".join(f"{k} = ?" for k in fields)
        with self.transaction() as db:
            db.execute(f"update runs set {names} where id = ? and status != 'ended'", (*fields.values(), number))

    def end_run(self, number: int, outcome: RunOutcome, **fields: object) -> bool:
        """End the run once. False when it had ended already, and then nothing changes."""
        values: dict[str, object] = {
            **fields,
            "status": RunStatus.ENDED,
            "outcome": outcome,
            "ended_at": self.clock(),
        }
        names = ", ".join(f"{k} = ?" for k in values)
        with self.transaction() as db:
            sql = f"update runs set {names} where id = ? and status != 'ended'"
            ended = db.execute(sql, (*values.values(), number)).rowcount == 1
            if ended:
                self._event(db, number, "ended", {"outcome": outcome, "reason": fields.get("reason", "")})
        return ended

    def add_check_seconds(self, number: int, seconds: float) -> None:
        """Count what the checks took towards the run's time."""
        with self.transaction(synced=False) as db:
            db.execute("update runs set check_seconds = check_seconds + ? where id = ?", (seconds, number))

    def reopen(self, number: int, *, redo: bool = False, merge: str = "") -> bool:
        """Queue an ended or paused run again, to go on from its last step; False when it is live.

        With `redo` that step is done again, as a new one. With `merge` an ended run, to merge that unit and nothing
        else. Raises WorkspaceBusy.
        """
        try:
            with self.transaction() as db:
                self._require_apart(db, self.run_row(number)["workspace"])
                told = self._ask_merge(db, number, merge) if merge else {}
                sql = (
                    "update runs set status = 'queued', outcome = null, reason = ?, question = '', ended_at = 0, "
                    "generation = generation + 1 where id = ? and status in ('ended', ?)"
                )
                values = (f"merging {merge}" if merge else "", number, "ended" if merge else "paused")
                if db.execute(sql, values).rowcount != 1:
                    db.execute("delete from controls where id = ?", (told.get("request"),))
                    return False
                if redo:
                    last = "select max(number) from steps where run_id = ? and step not like '%/%'"
                    sql = f"update steps set redo = 1 where run_id = ? and number = ({last})"
                    db.execute(sql, (number, number))
                db.execute("update sessions set told = 0 where run_id = ?", (number,))
                self._event(db, number, "reopened", told)
        except sqlite3.IntegrityError as error:
            raise self._busy(str(self.run_row(number)["workspace"])) from error
        for row in self.read("select session_id from sessions where run_id = ?", number):
            raise_marker(self.home, row["session_id"])
        return True

    def _ask_merge(self, db: sqlite3.Connection, number: int, unit: str) -> dict[str, Any]:
        """The request for a merge, with what the run ended as before its first one."""
        sql = "select outcome, reason, question from runs where id = ?"
        now = dict(db.execute(sql, (number,)).fetchone())
        earlier = self._merge_of(db, number)
        sql = "insert into controls (run_id, kind, text, at) values (?, 'merge', ?, ?)"
        request = db.execute(sql, (number, unit, self.clock())).lastrowid
        return {"merge": unit, "request": request, **now, "reason": earlier.get("reason", now["reason"])}

    @staticmethod
    def _merge_of(db: sqlite3.Connection, number: int) -> dict[str, Any]:
        sql = "select data from events where run_id = ? and kind = 'reopened' order by id desc limit 1"
        row = db.execute(sql, (number,)).fetchone()
        data: dict[str, Any] = json.loads(row["data"]) if row else {}
        return data if data.get("merge") else {}

    def merge_request(self, number: int) -> dict[str, Any]:
        """What the run was queued again for the last time, where that was to merge a unit; else empty.

        `merge` (the unit), `request` (its control), and `outcome`, `reason`, `question` as the run had ended with.
        """
        with self._connect() as db:
            return self._merge_of(db, number)

    # -- steps

    def open_step(self, number: int, index: int, **fields: object) -> sqlite3.Row:
        """The row of a step, made or, when an earlier attempt was cut off, reopened as the next attempt.

        The run is then in the step's iteration.
        """
        with self.transaction(synced=False) as db:
            sql = "update runs set iteration = max(iteration, ?) where id = ? and status != 'ended'"
            db.execute(sql, (fields["iteration"], number))
            known = db.execute("select * from steps where run_id = ? and number = ?", (number, index)).fetchone()
            if known is None:
                row = {
                    **fields,
                    "run_id": number,
                    "number": index,
                    "status": StepStatus.RUNNING,
                    "started_at": self.clock(),
                }
                marks = ", ".join("?" * len(row))
                db.execute(f"insert into steps ({', '.join(row)}) values ({marks})", tuple(row.values()))
                data = {"step": index, "name": fields.get("step"), "iteration": fields.get("iteration")}
                self._event(db, number, "step", data)
            elif known["result"] is None:
                db.execute(
                    "update steps set attempt = attempt + 1, status = 'running' where run_id = ? and number = ?",
                    (number, index),
                )
                self._event(db, number, "attempt", {"step": index, "attempt": known["attempt"] + 1})
            rows = db.execute("select * from steps where run_id = ? and number = ?", (number, index)).fetchall()
        return cast("sqlite3.Row", rows[0])

    def used(self, number: int) -> Usage:
        """What a run's steps and checks took so far. Raises RunUnknown."""
        checks = float(self.run_row(number)["check_seconds"])
        key = number, self._place()
        upto, total = self._counted.get(key, (0, Usage()))
        sql = (
            "select number, usage, result is not null and ended_at > 0 as ended from steps "
            "where run_id = ? and number > ? order by number"
        )
        settled = True
        for row in self.read(sql, number, upto):
            total += load_usage(json.loads(row["usage"]))
            settled = settled and bool(row["ended"])
            if settled:
                # What a step took does not change once it has ended: the next question begins behind it.
                self._counted[key] = row["number"], total
        return total + Usage(seconds=checks)

    def update_step(self, number: int, step: int, **fields: object) -> None:
        """Set columns of a step."""
        names = ", ".join(f"{k} = ?" for k in fields)
        with self.transaction(synced=not fields.keys() <= _PROGRESS) as db:
            db.execute(f"update steps set {names} where run_id = ? and number = ?", (*fields.values(), number, step))

    def end_step(self, number: int, step: int, told: dict[str, Any], **fields: object) -> None:
        """Set the columns of a step that has ended, and append the event of its verdict."""
        names = ", ".join(f"{k} = ?" for k in fields)
        with self.transaction() as db:
            db.execute(f"update steps set {names} where run_id = ? and number = ?", (*fields.values(), number, step))
            self._event(db, number, "verdict", told)

    # -- events and controls

    def _event(self, db: sqlite3.Connection, number: int, kind: str, data: dict[str, Any]) -> None:
        db.execute(
            "insert into events (run_id, at, kind, data) values (?, ?, ?, ?)",
            (number, self.clock(), kind, json.dumps(data, ensure_ascii=False)),
        )

    def event(self, number: int, kind: str, **data: object) -> None:
        """Append one event to a run."""
        with self.transaction(synced=False) as db:
            self._event(db, number, kind, data)

    def events(self, number: int, after: int = 0) -> list[sqlite3.Row]:
        """A run's events with an id above `after`, in order."""
        return self.read("select * from events where run_id = ? and id > ? order by id", number, after)

    def control(self, number: int, kind: str, text: str = "") -> None:
        """Leave a command for the worker. Raises RunUnknown."""
        self.run_row(number)
        with self.transaction() as db:
            db.execute(
                "insert into controls (run_id, kind, text, at) values (?, ?, ?, ?)",
                (number, kind, text, self.clock()),
            )
            self._event(db, number, kind, {"text": text})

    def controls(self, number: int, *kinds: str) -> list[sqlite3.Row]:
        """The commands of these kinds that were left for a run, in order."""
        marks = ", ".join("?" * len(kinds))
        return self.read(f"select * from controls where run_id = ? and kind in ({marks}) order by id", number, *kinds)

    def apply_controls(self, number: int, *kinds: str) -> None:
        """The commands of these kinds that were left so far have had their effect."""
        marks = ", ".join("?" * len(kinds))
        with self.transaction() as db:
            sql = f"update controls set applied = ? where run_id = ? and applied = 0 and kind in ({marks})"
            db.execute(sql, (self.clock(), number, *kinds))

    def cancelled(self, number: int, *, since: int = 0) -> bool:
        """Whether somebody asked for the run to stop, since the command `since`. It stays asked for."""
        sql = "select 1 from controls where run_id = ? and kind = 'cancel' and applied = 0 and id > ? limit 1"
        return bool(self.read(sql, number, since))
