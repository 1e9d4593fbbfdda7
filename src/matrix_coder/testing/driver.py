"""Many turns in one process: a real `AIAgent`, with plugins discovered and sessions stored.

Reads a job from standard input, plays its turns in order, and prints one JSON line for each:

    {"turns": [{"text": "...", ...}], "toolsets": ["terminal", "file"], "max_iterations": 90,
     "platform": "cli", "session": "id to continue"}

A turn may hold: `session`, the name of a conversation of this job (turns without one share a
conversation); `resume`, the id of a stored session to continue from the database; `max_iterations`;
`platform`; `interrupt_when`, a file whose appearance interrupts the turn; `review`, which runs the
host's background review after the turn and waits for it; `delegate`, a goal for a child of this agent
after the turn; `save_history`, a file for the messages.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from hermes_cli.config import load_config
from hermes_cli.plugins import discover_plugins
from hermes_cli.runtime_provider import resolve_runtime_provider
from hermes_state import SessionDB
from run_agent import AIAgent
from tools.delegate_tool import delegate_task

KEPT = ("final_response", "session_id", "completed", "interrupted", "failed", "api_calls", "turn_exit_reason")


class Conversation:
    """One session with a real agent."""

    def __init__(self, job: Mapping[str, Any], resume: str = "") -> None:
        self.job = job
        self.db = SessionDB()
        self.history: list[dict[str, Any]] = []
        if resume:
            self.history = self.db.get_messages_as_conversation(resume, repair_alternation=True)
        self.agent = self._agent(resume)

    def _agent(self, session_id: str) -> Any:
        model = load_config()["model"]["default"]
        found = resolve_runtime_provider(requested=None, target_model=model)
        access = {key: found.get(key) for key in ("api_key", "base_url", "provider", "api_mode")}
        agent = AIAgent(
            **access,
            model=model,
            credential_pool=found.get("credential_pool"),
            enabled_toolsets=list(self.job.get("toolsets", ["file"])),
            max_iterations=int(self.job.get("max_iterations", 90)),
            platform=self.job.get("platform", "cli"),
            session_db=self.db,
            session_id=session_id or None,
            quiet_mode=True,
            thinking_callback=lambda *_: None,  # in place of a spinner that takes half a second to stop
        )
        agent._print_fn = agent._safe_print = lambda *a, **k: None
        return agent

    def turn(self, turn: Mapping[str, Any]) -> dict[str, Any]:
        """Plays one turn and returns what the host says about it."""
        self.agent.max_iterations = int(turn.get("max_iterations", self.job.get("max_iterations", 90)))
        self.agent.platform = turn.get("platform", self.job.get("platform", "cli"))
        over = threading.Event()
        if turn.get("interrupt_when"):
            args = (Path(turn["interrupt_when"]), over)
            threading.Thread(target=self._interrupt, args=args, daemon=True).start()
        try:
            result = self.agent.run_conversation(turn["text"], conversation_history=self.history)
        finally:
            over.set()
            self.agent.clear_interrupt()
        self.history = result["messages"]
        if turn.get("review"):
            self._review()
        if turn.get("delegate"):
            delegate_task(goal=turn["delegate"], parent_agent=self.agent)
        if turn.get("save_history"):
            Path(turn["save_history"]).write_text(json.dumps(self.history, default=str), encoding="utf-8")
        return {**{key: result.get(key) for key in KEPT}, "session_id": self.agent.session_id}

    def _interrupt(self, sign: Path, over: threading.Event) -> None:
        while not over.wait(0.02):
            if sign.exists():
                self.agent.interrupt()
                return

    def _review(self) -> None:
        before = set(threading.enumerate())
        self.agent._spawn_background_review(messages_snapshot=list(self.history), review_skills=True)
        for thread in set(threading.enumerate()) - before:
            if thread.name == "bg-review":
                thread.join(60)


def play(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Plays a job in this process; one result for each turn."""
    discover_plugins()
    talks: dict[str, Conversation] = {}
    results = []
    for turn in job["turns"]:
        name = str(turn.get("session", ""))
        if turn.get("resume") or name not in talks:
            talks[name] = Conversation(job, resume=str(turn.get("resume") or job.get("resume") or ""))
        results.append(talks[name].turn(turn))
    return results


def main() -> int:
    """Plays the job on standard input; prints a JSON line for each turn."""
    job = json.load(sys.stdin)
    with redirect_stdout(sys.stderr):
        results = play(job)
    for result in results:
        sys.stdout.write(json.dumps(result, default=str) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
