"""Who speaks in a turn: a person, or the host itself."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tools.skill_provenance import is_background_review as is_review

__all__ = ["is_person", "is_review"]

HOST_PLATFORMS = frozenset(("subagent", "cron", "curator"))
HOST_OPENINGS = (
    "[ASYNC DELEGATION",
    "[kanban] ",
    "[IMPORTANT: ",
    "[Continuing toward ",
    "[System: ",
    "[Background process ",
    "[Cron delivery: ",
    "[Your active task list was preserved",
)


def is_person(kwargs: Mapping[str, object]) -> bool:
    """Whether a turn's hook arguments come from a person's message rather than the host's own."""
    message = kwargs.get("user_message")
    return (
        kwargs.get("platform") not in HOST_PLATFORMS
        and not os.environ.get("HERMES_KANBAN_TASK")
        and not os.environ.get("HERMES_CRON_SESSION")
        and not str(kwargs.get("session_id") or "").startswith("cron_")
        and not (isinstance(message, str) and message.startswith(HOST_OPENINGS))
        and not is_review()
    )
