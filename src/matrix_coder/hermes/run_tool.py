"""The model's one small tool for runs: look at them, tell one something, stop one. It starts none.

A run is started by a person's own message (`matrix ralph: ...`) or command; text that a model, a file or a tool
wrote can't. The tool is offered only where a run store exists.
"""

from __future__ import annotations

import json
from typing import Any

NAME = "matrix_runs"
TOOLSET = "matrix_coder"

SCHEMA: dict[str, Any] = {
    "name": NAME,
    "description": (
        "Look at Matrix Coder's runs (durable coding loops), pass a person's remark to one, or stop one. Use it when "
        "the person asks how far a run is, wants it to mind something, or wants it stopped. It cannot start a run: a "
        "person does that with `matrix ralph: goal`."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["list", "show", "diff", "steer", "cancel"]},
            "run": {"type": "string", "description": "The run's id, such as r8; not needed to list."},
            "text": {"type": "string", "description": "For steer: what the person wants the next step to know."},
        },
        "required": ["action"],
    },
}
_MOST = 6_000


def is_useful() -> bool:
    """Whether there is a run store at all; costs a stat."""
    from ..engine.paths import hermes_home, state_dir  # noqa: PLC0415 - with the first chat

    return (state_dir(hermes_home()) / "runs.db").exists()


def handle(args: dict[str, Any], **kwargs: Any) -> str:
    """The tool's answer, as the JSON text that the host expects."""
    from ..core.errors import MatrixError  # noqa: PLC0415 - with the first call
    from .commands import Commands  # noqa: PLC0415

    action = str(args.get("action") or "list")
    words = [str(args[key]) for key in ("run", "text") if args.get(key)]
    commands = {"list": "runs", "show": "show", "diff": "diff", "steer": "steer", "cancel": "cancel"}
    if action not in commands:
        return json.dumps({"error": f"expected action to be one of {', '.join(commands)}; found {action}"})
    try:
        text = Commands().call(commands[action], words, str(kwargs.get("session_id") or ""))
    except MatrixError as error:
        return json.dumps({"error": str(error)}, ensure_ascii=False)
    return json.dumps({"result": text[:_MOST]}, ensure_ascii=False)
