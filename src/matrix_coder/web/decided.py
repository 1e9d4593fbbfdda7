"""The decisions that chats made, as the chats' processes kept them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from ..hermes.decisions import DecisionLog, Kept
from .shapes import DecidedSession, DecisionsAnswer, KeptDecision, RouteAnswer

S = TypeVar("S", DecidedSession, KeptDecision)
_UNKNOWN: dict[str, Any] = {"score": None, "roles": {}, "runner_up": None, "masked": []}


def route_answer(told: dict[str, Any]) -> RouteAnswer:
    """A decision as plain values, as it is sent. Raises ValidationError for what is none."""
    kept = {key: told[key] for key in RouteAnswer.model_fields if key in told}
    return RouteAnswer.model_validate(_UNKNOWN | kept)


def decisions_answer(home: Path, session_id: str) -> DecisionsAnswer:
    """The sessions and the last decisions of this one, or of the newest where none is named."""
    log = DecisionLog(home)
    newest = log.sessions()
    chosen = session_id or (newest[0].session_id if newest else "")
    return DecisionsAnswer(
        remembers=log.allowed(),
        sessions=_readable(_session, newest),
        session_id=chosen,
        decisions=_readable(_decision, log.of(chosen)),
        now=time.time(),
    )


def _session(kept: Kept) -> DecidedSession:
    route = kept.decision.get("route")
    return DecidedSession(
        session_id=kept.session_id,
        at=kept.at,
        message=kept.message,
        outcome=str(kept.decision.get("outcome", "")),
        route=str(route) if route else None,
    )


def _decision(kept: Kept) -> KeptDecision:
    return KeptDecision(at=kept.at, message=kept.message, cut=kept.cut, decision=route_answer(kept.decision))


def _readable(shape: Callable[[Kept], S], rows: Sequence[Kept]) -> list[S]:
    """What can be read of them: a line that another version wrote may hold more or less."""
    found = []
    for kept in rows:
        try:
            found.append(shape(kept))
        except ValidationError:
            continue
    return found
