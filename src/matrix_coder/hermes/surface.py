"""Which surface of the host this process is, and what it knows about its session."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from ..engine.paths import hermes_home

_MOST_ANCESTORS = 20
# A branch and a delegated child name a parent, too; only a compressed session goes on in the one that follows it.
_PREDECESSOR = (
    "select p.id from sessions s join sessions p on p.id = s.parent_session_id "
    "where s.id = ? and p.end_reason = 'compression'"
)


def is_one_shot(platform: str) -> bool:
    """Whether the process ends with this turn's answer: `hermes -z` and `hermes chat -q`, not the interactive chat."""
    if platform != "cli":
        return False
    from hermes_cli.plugins import get_plugin_manager  # noqa: PLC0415 - the host's

    # The host sets the reference in its interactive chat alone.
    return getattr(get_plugin_manager(), "_cli_ref", None) is None


def notice(text: str) -> None:
    """Show the person a line of ours, in the interactive chat alone: elsewhere there is only the answer."""
    from .chats import print_lines  # noqa: PLC0415 - with the first line

    print_lines(text)


def shows_answers_as_they_come() -> bool:
    """Whether the chat has shown an answer before a plugin can put a line before it."""
    from hermes_cli.plugins import get_plugin_manager  # noqa: PLC0415 - the host's

    return bool(getattr(getattr(get_plugin_manager(), "_cli_ref", None), "streaming_enabled", False))


def working_directory() -> str:
    """The directory that this session works in."""
    return os.environ.get("TERMINAL_CWD") or str(Path.cwd())


def command_session() -> str:
    """The session that a slash command was typed in; empty where the host does not say, as in the dashboard's chat."""
    from hermes_cli.plugins import get_plugin_manager  # noqa: PLC0415 - the host's

    from .chats import dispatched_session  # noqa: PLC0415 - with the first command

    agent = getattr(getattr(get_plugin_manager(), "_cli_ref", None), "agent", None)
    return str(getattr(agent, "session_id", "") or "") or dispatched_session()


def ancestors(session_id: str) -> list[str] | None:
    """The sessions that this one goes on from, nearest first, as the host's own session table tells.

    None where the table can't be read, or does not know this session yet.
    """
    database = hermes_home() / "state.db"
    found: list[str] = []
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True, timeout=0.5)) as db:
        if db.execute("select 1 from sessions where id = ?", (session_id,)).fetchone() is None:
            return None
        current = session_id
        while len(found) < _MOST_ANCESTORS:
            row = db.execute(_PREDECESSOR, (current,)).fetchone()
            if row is None or not row[0] or row[0] in found:
                break
            current = row[0]
            found.append(current)
        return found
    return None
