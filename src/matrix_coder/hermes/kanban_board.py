"""The host's Kanban board, through the host's own functions (`kanban_file` says how its file is opened)."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from .kanban_file import BoardError, BoardFile, troubles
from .kanban_plan import Seen
from .kanban_text import ASSIGNEE, AUTHOR, Card, Scalar

CLAIM_DAYS = 30
ATTACHMENT_BYTES = 1_000_000


class HostBoard:
    """One board of the host, named by its slug; "" is the board that is current when this is built."""

    def __init__(self, slug: str = "") -> None:
        with troubles():
            self._kb = _kanban()
            self.slug = slug or str(self._kb.get_current_board())
            if not self._kb.board_exists(self.slug):
                raise BoardError(missing(self.slug), lasting=True)
        self._file = BoardFile(self._kb, self.slug)

    def shared(self) -> AbstractContextManager[None]:
        """A block whose calls share a fresh connection, where that is safe."""
        return self._file.shared()

    def together(self) -> AbstractContextManager[None]:
        """A block inside `shared` whose calls are one transaction: seen whole by others, or not at all."""
        return self._file.together()

    # Reading ------------------------------------------------------------------------------------------

    def cards(self, keys: Iterable[str]) -> dict[str, list[Seen]]:
        """The cards under each idempotency key, archived ones too, newest last."""
        wanted = list(keys)
        found: dict[str, list[Seen]] = {}
        with self._file.call() as conn:
            for part in _parts(wanted):
                rows = _rows(conn, "tasks where idempotency_key in", part, "order by created_at, rowid")
                extras = _Extras(conn, [row["id"] for row in rows])
                for row in rows:
                    found.setdefault(row["idempotency_key"], []).append(extras.seen(row))
        return found

    def status(self, card_id: str) -> str:
        """The card's column, "" where there is no such card."""
        with self._file.call() as conn:
            task = self._kb.get_task(conn, card_id)
            return str(task.status) if task else ""

    def left_open(self, card: Card, older_than: float) -> list[str]:
        """Cards of single specialists left open by this one's session, or by any before `older_than`."""
        sql = (
            "select id from tasks where idempotency_key like 'matrix:single:%' and assignee = ?"
            " and status in ('running', 'ready') and idempotency_key != ? and (session_id = ? or created_at < ?)"
        )
        values = (ASSIGNEE, card.key, card.session_id, older_than)
        with self._file.call() as conn:
            return [str(row["id"]) for row in conn.execute(sql, values)]

    # Writing ------------------------------------------------------------------------------------------

    def create(self, card: Card) -> str:
        """The id of the card, which exists afterwards: made now, or by an earlier try."""
        place = {"workspace_kind": "dir", "workspace_path": card.workspace} if card.workspace else {}
        with self._file.call() as conn:
            return str(
                self._kb.create_task(
                    conn,
                    title=card.title,
                    body=card.body,
                    assignee=ASSIGNEE,
                    created_by=AUTHOR,
                    tenant=card.tenant,
                    priority=card.priority,
                    idempotency_key=card.key,
                    session_id=card.session_id or None,
                    board=self.slug,
                    **place,
                )
            )

    def claim(self, card_id: str, claimer: str) -> None:
        with self._file.call() as conn:
            self._kb.claim_task(conn, card_id, ttl_seconds=CLAIM_DAYS * 86_400, claimer=claimer)

    def complete(self, card_id: str, line: str, metadata: dict[str, Scalar]) -> bool:
        with self._file.call() as conn:
            return bool(self._kb.complete_task(conn, card_id, result=line, summary=line, metadata=metadata))

    def result(self, card_id: str, line: str, metadata: dict[str, Scalar]) -> None:
        with self._file.call() as conn:
            self._kb.edit_completed_task_result(conn, card_id, result=line, summary=line, metadata=metadata)

    def block(self, card_id: str, reason: str, kind: str) -> None:
        with self._file.call() as conn:
            self._kb.block_task(conn, card_id, reason=reason, kind=kind or None)

    def unblock(self, card_id: str) -> None:
        with self._file.call() as conn:
            self._kb.unblock_task(conn, card_id)

    def reclaim(self, card_id: str) -> None:
        with self._file.call() as conn:
            self._kb.reclaim_task(conn, card_id, reason="the attempt ended without a result")

    def assign(self, card_id: str) -> None:
        with self._file.call() as conn:
            self._kb.assign_task(conn, card_id, ASSIGNEE)

    def link(self, parent: str, card_id: str) -> None:
        with self._file.call() as conn:
            self._kb.link_tasks(conn, parent, card_id)

    def unlink(self, parent: str, card_id: str) -> None:
        with self._file.call() as conn:
            self._kb.unlink_tasks(conn, parent, card_id)

    def comment(self, card_id: str, text: str) -> None:
        with self._file.call() as conn:
            self._kb.add_comment(conn, card_id, AUTHOR, text)

    def attach(self, card_id: str, filename: str, path: str) -> None:
        """Hang the last megabyte of a file on the card."""
        with self._file.call() as conn:
            data = _tail(Path(path))
            self._kb.store_attachment_bytes(
                conn, card_id, filename, data, content_type="text/plain", uploaded_by=AUTHOR, board=self.slug
            )

    def edit(self, card: Card, card_id: str) -> None:
        """Title, body and priority; the host has no function for them, so this is what its own page does."""
        sql = "update tasks set title = ?, body = ?, priority = ? where id = ?"
        self._change(card_id, "edited", sql, (card.title, card.body, card.priority, card_id))

    def retitle(self, card_id: str, title: str, body: str) -> None:
        sql = "update tasks set title = ?, body = ? where id = ?"
        self._change(card_id, "edited", sql, (title, body, card_id))

    def reset(self, card_id: str) -> None:
        """Back to `ready`, from wherever it was dragged; the host's own page writes it the same way."""
        sql = (
            "update tasks set status = 'ready', claim_lock = null, claim_expires = null, worker_pid = null,"
            " completed_at = null, result = null where id = ? and status not in ('running', 'archived')"
        )
        self._change(card_id, "status", sql, (card_id,))

    def _change(self, card_id: str, event: str, sql: str, values: tuple[Any, ...]) -> None:
        payload = '{"status": "ready"}' if event == "status" else None
        with self._file.call() as conn, self._kb.write_txn(conn):
            if conn.execute(sql, values).rowcount == 1:
                conn.execute(
                    "insert into task_events (task_id, kind, payload, created_at) values (?, ?, ?, ?)",
                    (card_id, event, payload, int(time.time())),
                )


def missing(slug: str) -> str:
    """What is said of a board that does not exist."""
    return f"there is no Kanban board {slug!r}; `hermes kanban boards create {slug}` makes it"


class _Extras:
    """Links, comments and files of some cards, by card."""

    def __init__(self, conn: Any, ids: list[str]) -> None:
        self.parents = self._grouped(conn, "task_links where child_id in", ids, "child_id", "parent_id")
        self.comments = self._grouped(conn, "task_comments where task_id in", ids, "task_id", "body")
        self.files = self._grouped(conn, "task_attachments where task_id in", ids, "task_id", "filename")

    @staticmethod
    def _grouped(conn: Any, source: str, ids: list[str], by: str, what: str) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for row in _rows(conn, source, ids):
            found.setdefault(row[by], set()).add(row[what])
        return found

    def seen(self, row: Any) -> Seen:
        card = str(row["id"])
        return Seen(
            card_id=card,
            status=row["status"],
            title=row["title"],
            body=row["body"] or "",
            result=row["result"] or "",
            assignee=row["assignee"] or "",
            priority=row["priority"],
            claim=row["claim_lock"] or "",
            block_kind=row["block_kind"] or "",
            created_at=row["created_at"],
            parents=frozenset(self.parents.get(card, ())),
            comments=frozenset(self.comments.get(card, ())),
            files=frozenset(self.files.get(card, ())),
        )


def _rows(conn: Any, source: str, values: list[str], order: str = "") -> list[Any]:
    marks = ",".join("?" * len(values))
    return list(conn.execute(f"select * from {source} ({marks}) {order}", values))


def _parts(values: list[str], size: int = 500) -> Iterator[list[str]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - ATTACHMENT_BYTES))
        return file.read(ATTACHMENT_BYTES)


def _kanban() -> Any:
    from hermes_cli import kanban_db  # noqa: PLC0415 - costs 200 ms; only a process that writes cards pays

    return kanban_db
