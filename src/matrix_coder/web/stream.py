"""Events as they happen, as server-sent events that a page reads with an authorised fetch."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

from ..core.errors import StoreError
from ..engine import views
from ..engine.paths import state_dir
from ..engine.store import Store

_POLL_S = 0.1
_PING_S = 10.0
_BATCH = 500
# A stream ends by itself now and then and its reader comes back to where it was: whatever holds it, not for long.
_LIFETIME_S = 45.0

Gone = Callable[[], Awaitable[bool]]


async def follow(home: Path, number: int | None, after: int, gone: Gone) -> AsyncIterator[str]:
    """The events of a run, or of all runs for None, with an id above `after`, each once and in order.

    The store is read in a thread of its own a few times a second; an error of it ends the stream, and its
    reader comes back.
    """
    yield "retry: 1000\n: follows the run store\n\n"
    store: Store | None = None
    ends = time.monotonic() + _LIFETIME_S
    pinged = time.monotonic()
    while time.monotonic() < ends and not _stopping() and not await gone():
        try:
            store = store or await asyncio.to_thread(_opened, home)
            rows = await asyncio.to_thread(_after, store, number, after) if store else []
        except (StoreError, sqlite3.Error):
            return
        for row in rows:
            after = int(row["id"])
            yield _message(row)
        if time.monotonic() - pinged > _PING_S:
            pinged = time.monotonic()
            yield ": here\n\n"
        if len(rows) < _BATCH:
            await asyncio.sleep(_POLL_S)


def _stopping() -> bool:
    """Whether the server that we run in was told to stop. It waits for every answer under way, so ours has to end.

    The server's signal handler is one of its own methods, and the server says of itself that it is to go.
    """
    server = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    return getattr(server, "should_exit", False) is True


def _opened(home: Path) -> Store | None:
    """The store; None before the first run makes it."""
    return Store(home) if (state_dir(home) / "runs.db").is_file() else None


def _after(store: Store, number: int | None, after: int) -> list[sqlite3.Row]:
    which, values = ("", [after]) if number is None else ("and run_id = ?", [after, number])
    return store.read(f"select * from events where id > ? {which} order by id limit {_BATCH}", *values)


def _message(row: sqlite3.Row) -> str:
    """One event in ASCII: some readers take other characters for line ends, and half of a pair is none at all."""
    event = {
        "id": row["id"],
        "run_id": views.run_id_of(row["run_id"]),
        "at": row["at"],
        "kind": row["kind"],
        "data": json.loads(row["data"]),
    }
    return f"id: {row['id']}\ndata: {json.dumps(event)}\n\n"
