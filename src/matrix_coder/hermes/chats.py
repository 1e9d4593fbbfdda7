"""The chats that live in this process, and how each is shown a line that nobody asked for.

What the host offers for that is its own inner wiring, read here and nowhere else; where it is not as expected, the
process has no such chat, and the line is not lost: the session's next turn tells it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

_SEND_S = 30.0

# The gateway's message that the current task answers: the event and the gateway.
dispatched: ContextVar[tuple[Any, Any] | None] = ContextVar("matrix_coder_dispatched", default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chat:
    """One chat of this process. `show` shows a text of some lines; false when it surely was not shown."""

    session_id: str
    show: Callable[[str], bool]


def live_chats() -> Iterator[Chat]:
    """The chats of this process: the interactive one, the dashboard's and terminal interface's, the gateway's."""
    yield from _interactive()
    yield from _tabs()
    yield from _messengers()


def can_show() -> bool:
    """Whether this process is of a kind that has such chats; costs a look at what is loaded."""
    return _cli() is not None or "tui_gateway.server" in sys.modules or _gateway() is not None


# -- the interactive chat


def _cli() -> Any:
    from hermes_cli.plugins import get_plugin_manager  # noqa: PLC0415 - the host's

    return getattr(get_plugin_manager(), "_cli_ref", None)


def _interactive() -> Iterator[Chat]:
    cli = _cli()
    if cli is None:
        return
    session_id = getattr(getattr(cli, "agent", None), "session_id", None) or getattr(cli, "session_id", None)
    if session_id:
        yield Chat(session_id=str(session_id), show=print_lines)


def print_lines(text: str) -> bool:
    """Print above the prompt of the interactive chat; false elsewhere."""
    cli = _cli()
    shell = sys.modules.get(type(cli).__module__) if cli is not None else None
    show = getattr(shell, "_cprint", None)
    if not callable(show):
        return False
    show("\n".join(f"  [matrix] {line}" for line in text.splitlines()))
    return True


# -- the dashboard's chat and the terminal interface


def _tabs() -> Iterator[Chat]:
    server = sys.modules.get("tui_gateway.server")
    sessions = getattr(server, "_sessions", None)
    write = getattr(server, "write_json", None)
    if not isinstance(sessions, dict) or not callable(write):
        return
    for tab, session in list(sessions.items()):
        if not isinstance(session, dict) or session.get("_finalized"):
            continue
        session_id = getattr(session.get("agent"), "session_id", None) or session.get("session_key")
        if session_id:
            yield Chat(session_id=str(session_id), show=_TabWriter(str(tab), write))


@dataclass(frozen=True, slots=True)
class _TabWriter:
    tab: str
    write: Callable[[dict[str, Any]], Any]

    def __call__(self, text: str) -> bool:
        # What the host sends for its own reviews of a session: the interface shows it as a line of its own.
        event = {"type": "review.summary", "session_id": self.tab, "payload": {"text": text}}
        return bool(self.write({"jsonrpc": "2.0", "method": "event", "params": event}))


# -- the gateway's chats


def _gateway() -> Any:
    reference = getattr(sys.modules.get("gateway.run"), "_gateway_runner_ref", None)
    return reference() if callable(reference) else None


def _messengers() -> Iterator[Chat]:
    gateway = _gateway()
    if gateway is None or getattr(gateway, "_gateway_loop", None) is None:
        return
    for entry in gateway.session_store.list_sessions():
        source = getattr(entry, "origin", None)
        adapter = gateway._adapter_for_source(source) if source is not None else None
        if adapter is not None and getattr(adapter, "supports_async_delivery", True):
            yield Chat(session_id=str(entry.session_id), show=_Messenger(gateway, adapter, source))


@dataclass(frozen=True, slots=True)
class _Messenger:
    gateway: Any
    adapter: Any
    source: Any

    def __call__(self, text: str) -> bool:
        """Send as the gateway sends its own notices: each platform's adapter formats the text."""
        metadata = self.gateway._thread_metadata_for_source(self.source)
        sending = self.adapter.send(self.source.chat_id, text, metadata=metadata)
        future = asyncio.run_coroutine_threadsafe(sending, self.gateway._gateway_loop)
        try:
            result = future.result(_SEND_S)
        except concurrent.futures.TimeoutError:
            return True  # It may have arrived; said once too seldom is better than twice.
        return bool(getattr(result, "success", False))


def dispatched_session() -> str:
    """The session of the gateway's message that the current task answers; empty outside of one."""
    found = dispatched.get()
    if found is None:
        return ""
    event, gateway = found
    key = gateway._session_key_for_source(event.source)
    return str(gateway.session_store.peek_session_id(key) or "")
