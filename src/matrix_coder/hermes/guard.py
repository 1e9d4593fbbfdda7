"""Who speaks in a turn: a person, or the host itself."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tools.skill_provenance import is_background_review as is_review

from ..core.context import text_of
from ..core.intent_gate import is_host_text

__all__ = ["is_person", "is_review"]


def is_person(kwargs: Mapping[str, object]) -> bool:
    """Whether a turn's hook arguments come from a person's message rather than the host's own."""
    return not (
        os.environ.get("HERMES_KANBAN_TASK")
        or os.environ.get("HERMES_CRON_SESSION")
        or is_review()
        or is_host_text(
            text_of(kwargs.get("user_message")),
            session_id=str(kwargs.get("session_id") or ""),
            platform=str(kwargs.get("platform") or ""),
        )
    )
