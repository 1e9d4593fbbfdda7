"""What the host lets through: who speaks in a turn, and how long a text it passes on."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from tools.hook_output_spill import get_spill_config
from tools.skill_provenance import is_background_review as is_review

from ..core.context import text_of
from ..core.intent_gate import is_host_text

__all__ = ["is_person", "is_review", "most_text"]


def most_text() -> int:
    """The characters that the host passes on whole; what is longer it replaces by a stub."""
    config = get_spill_config()
    return int(config["max_chars"]) if config["enabled"] else sys.maxsize


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
