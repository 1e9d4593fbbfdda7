"""The model's one small tool for runs: look at them, hand on what the person said, stop one. It starts none.

A run is started by a person's own message (`matrix ralph: ...`) or command; text that a model, a file or a tool
wrote can't. What reaches a run through this tool is the person's message of this turn, or words of it, to the letter.
The tool is offered where the engine is installed: the host settles a session's tools before its first run starts.
"""

from __future__ import annotations

import importlib.util
import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..core.turns import Turn

NAME = "matrix_runs"
TOOLSET = "matrix_coder"
LOOKS = {"list": "runs", "show": "show", "diff": "diff"}
CHANGES = ("steer", "answer", "cancel")

SCHEMA: dict[str, Any] = {
    "name": NAME,
    "description": (
        "Matrix Coder's runs (durable coding loops): look at them, or act for the person on this turn's message: steer "
        "or answer a run with it, or cancel one that they want stopped. Starts none."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": [*LOOKS, *CHANGES]},
            "run": {
                "type": "string",
                "description": "Its id, such as r8; may be left out where only one can be meant.",
            },
            "text": {
                "type": "string",
                "description": "steer, answer: the part of the person's message to hand on, word for word; else all.",
            },
        },
        "required": ["action"],
    },
}
_MOST = 6_000
# Behind this the host writes out what a message names with an @: files, pages, diffs. None of it is the person's words.
_ATTACHED = "\n\n--- Attached Context ---\n"
# And so, before it, the gateway quotes the message that this one replies to: a model's, or another person's.
_QUOTED = re.compile(r'\A\[Replying to(?: your previous message)?: ".*"\]\n\n', re.DOTALL)


def is_useful() -> bool:
    """Whether there can be runs at all; imports nothing."""
    return importlib.util.find_spec("dbos") is not None


def handle(args: dict[str, Any], **kwargs: Any) -> str:
    """The tool's answer, as the JSON text that the host expects."""
    from ..core.errors import MatrixError  # noqa: PLC0415 - with the first call

    try:
        text = _done(args, str(kwargs.get("session_id") or ""))
    except MatrixError as error:
        return json.dumps({"error": str(error)}, ensure_ascii=False)
    return json.dumps({"result": text[:_MOST]}, ensure_ascii=False)


def _done(args: dict[str, Any], session_id: str) -> str:
    from ..core.errors import InputError  # noqa: PLC0415 - with the first call
    from .commands import Commands  # noqa: PLC0415

    action, run = str(args.get("action") or "list"), str(args.get("run") or "")
    words = [run] if run else []
    if action in LOOKS:
        return Commands().call(LOOKS[action], words, session_id)
    if action not in CHANGES:
        raise InputError(f"action to be one of {', '.join([*LOOKS, *CHANGES])}", action, "name one of them")
    turn = _persons_turn(session_id, action)
    if action == "cancel":
        return Commands().call(action, words, session_id)
    text = _own_words(turn, str(args.get("text") or ""))
    if (action, text) in turn.handed:
        return "That was handed on already in this turn."
    answer = Commands().call(action, [*words, text], session_id)
    turn.handed.add((action, text))
    return answer


def _persons_turn(session_id: str, action: str) -> Turn:
    """The turn under way, if a person's message began it. Raises InputError."""
    from ..core.errors import InputError  # noqa: PLC0415 - with the first call
    from .hooks import connected  # noqa: PLC0415 - the hooks name this module's tool to the host

    turn = connected().turns.current(session_id)
    if turn is None or not turn.person:
        raise InputError(
            f"{action} in a turn that a person's message began",
            "a turn of the host's own, or a child's",
            "leave it to the person",
        )
    return turn


def _own_words(turn: Turn, text: str) -> str:
    """What of the person's message is handed on: the part named, else all of it. Raises InputError for other words."""
    from ..core.errors import InputError  # noqa: PLC0415 - with the first call

    own = _QUOTED.sub("", turn.user_text.partition(_ATTACHED)[0]).strip()
    wanted = text.strip()
    if wanted and wanted not in own:
        remedy = "leave text out: the whole message is handed on then"
        raise InputError("words of the person's own message of this turn", repr(wanted[:80]), remedy)
    return wanted or own
