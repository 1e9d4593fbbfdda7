"""The host's hooks for a turn. Registering them imports nothing heavy: the first turn does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .boundary import boundary
from .chats import dispatched

if TYPE_CHECKING:
    from ..core.intake import Intake

_providers: dict[str, Callable[[], Any]] = {}
_connected: list[Intake] = []
_lock = threading.Lock()


def provide(port: str, make: Callable[[], Any]) -> None:
    """Names who fills a port (`workflow`, `command` or `card`); `make` is called at the first turn."""
    _providers[port] = make


def connected() -> Intake:
    """This process's intake, connected to the host on first use."""
    with _lock:
        if not _connected:
            _connected.append(_connect())
        return _connected[0]


def _connect() -> Intake:
    from ..core import intake  # noqa: PLC0415 - the lexicon and the personas load with the first turn
    from . import guard, marks, surface  # noqa: PLC0415 - the host's
    from .words import connect_words  # noqa: PLC0415 - the file is read once, with the first turn

    connect_words()
    ports = intake.Ports(key=marks.key, most_text=guard.most_text, is_person=guard.is_person, is_review=guard.is_review)
    for name, make in _providers.items():
        setattr(ports, name, make())
    ports.notice, ports.streams = surface.notice, surface.shows_answers_as_they_come
    return intake.connect(ports)


def _forget(*_: object, turn_id: object = "", **__: object) -> None:
    """After a fault: the turn injects nothing any more."""
    if _connected and isinstance(turn_id, str):
        _connected[0].turns.end(turn_id)


@boundary(_forget)
def _inject_persona(**kwargs: object) -> dict[str, str] | None:
    return connected().inject(kwargs)


@boundary(lambda **_: None)
def _remember(*, turn_id: str = "", user_message: object = None, **_: object) -> None:
    """A callback of its own, so that a fault of it costs the turn nothing."""
    from ..core.context import text_of  # noqa: PLC0415 - with the first turn
    from .decisions import remember  # noqa: PLC0415

    remember(connected().turns.of(turn_id), text_of(user_message))


@boundary(_forget)
def _clear_persona(**kwargs: object) -> None:
    connected().clear(kwargs)


@boundary(_forget)
def _session_end(**kwargs: object) -> None:
    connected().session_end(kwargs)


@boundary(_forget)
def _request_failed(**kwargs: object) -> None:
    connected().request_failed(kwargs)


@boundary(_forget)
def _tip(*, response_text: str = "", session_id: str = "", **_: object) -> str | None:
    return connected().output(response_text, session_id)


@boundary(_forget)
def _request(
    request: dict[str, object], *, turn_id: str = "", session_id: str = "", **_: object
) -> dict[str, object] | None:
    """The host hands over a copy of its own, so it is changed in place; None leaves the request as it is."""
    changed = connected().request(request, turn_id, session_id or "")
    return {"request": request, "source": "matrix_coder"} if changed else None


def _dispatched(*, event: object = None, gateway: object = None, **_: object) -> None:
    """Remembers, for this task alone, which message the gateway is about to answer: its commands are not told."""
    dispatched.set((event, gateway))


def register_hooks(ctx: Any) -> None:
    """Registers what a turn needs with the host's plugin context."""
    ctx.register_hook("pre_llm_call", _inject_persona)
    ctx.register_hook("pre_llm_call", _remember)
    ctx.register_hook("post_llm_call", _clear_persona)
    ctx.register_hook("on_session_end", _session_end)
    ctx.register_hook("api_request_error", _request_failed)
    ctx.register_hook("transform_llm_output", _tip)
    ctx.register_hook("pre_gateway_dispatch", _dispatched)
    ctx.register_middleware("llm_request", _request)
