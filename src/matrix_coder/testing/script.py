"""What the scripted model says: rules, and the step that a request asks for.

The script keeps no conversation state: the request alone says which step is due. The last user
message that some rule matches starts the conversation, and the number of assistant messages after it
is the number of the step. So a parent and its children may share one server.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Step = Mapping[str, Any]
PLAYED_KEYS = ("text", "tool", "args", "tools", "http", "body", "fail_times", "usage", "finish")
STEP_KEYS = frozenset((*PLAYED_KEYS, "sleep", "chunk_sleep", "touch", "until"))
TITLE_PROMPT = "Generate a short, descriptive title"
CALL_ID = re.compile(r"call_r(\d+)a(\d+)s\d+n\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Answers for conversations that a user message starts.

    `match` is searched in the text of a user message, `system` (optional) in the system prompt.
    `steps` is one script; `attempts` is a list of scripts, the n-th for the n-th time that this
    rule's conversation starts, the last one for all further times. In every text of a step,
    `${name}` stands for the named group of `match`.

    The host joins a message that got no answer with the next one into one text: put the rule of the
    later message first.

    A step holds any of: `text`; `tool` and `args`; `tools` (a list of those, called in parallel);
    `sleep` and `chunk_sleep` (seconds); `touch` (a file made when the request arrives) and `until`
    (a file to wait for, before the answer); `http` and `body` with an optional `fail_times` (how
    often this step fails before the rest of it is played); `usage` ({"input", "output"} tokens);
    `finish` (the finish reason).
    """

    match: str
    steps: tuple[Step, ...] = ()
    attempts: tuple[tuple[Step, ...], ...] = ()
    system: str = ""
    name: str = ""

    def __post_init__(self) -> None:
        re.compile(self.match), re.compile(self.system)
        if bool(self.steps) == bool(self.attempts):
            raise ValueError(f"rule {self.match!r}: expected either steps or attempts")
        for step in (s for script in self.scripts for s in script):
            unknown = set(step) - STEP_KEYS
            if unknown or not step:
                raise ValueError(f"rule {self.match!r}: unknown step keys {sorted(unknown)} in {step!r}")

    @property
    def scripts(self) -> tuple[tuple[Step, ...], ...]:
        return self.attempts or (self.steps,)


def load_rules(path: Path) -> list[Rule]:
    """The rules of a JSON file: a list of objects with the fields of `Rule`."""
    return [rule_from(item) for item in json.loads(Path(path).read_text(encoding="utf-8"))]


def rule_from(item: Mapping[str, Any]) -> Rule:
    """One rule from its JSON object."""
    known = dict(item)
    known["steps"] = tuple(known.get("steps", ()))
    known["attempts"] = tuple(tuple(script) for script in known.get("attempts", ()))
    return Rule(**known)


def text_of(content: Any) -> str:
    """The plain text of a message's content, whether it is a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(p.get("text", "")) for p in parts if isinstance(p, Mapping))


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """The step that a request gets: which rule (-1: none), attempt (from 0), step (from 0)."""

    rule: int
    attempt: int
    step: int
    answer: Step

    def call_id(self, index: int) -> str:
        return f"call_r{self.rule}a{self.attempt}s{self.step}n{index}"


@dataclass(kw_only=True)
class Script:
    """Ordered rules, and how often each one's conversation has been started. Safe to share by threads."""

    rules: Sequence[Rule] = ()
    default: str = "scripted model: no rule matches"
    played: set[tuple[int, int, int]] = field(default_factory=set)
    _starts: Counter[int] = field(default_factory=Counter)
    _failures: Counter[tuple[int, int, int]] = field(default_factory=Counter)
    _failed_start: set[int] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def play(self, messages: Sequence[Mapping[str, Any]]) -> Play:
        """The step due for a request with these messages."""
        system = "\n".join(text_of(m.get("content")) for m in messages if m.get("role") == "system")
        if system.startswith(TITLE_PROMPT):  # the host names a session: no part of any conversation
            return Play(rule=-1, attempt=0, step=0, answer={"text": "Scripted title"})
        found = self._find(messages, system)
        if found is None:
            return Play(rule=-1, attempt=0, step=0, answer={"text": self.default})
        index, groups, rest = found
        with self._lock:
            return self._due(index, groups, rest)

    def unplayed(self) -> list[str]:
        """The steps that no request has asked for, as `rule / attempt / step` lines."""
        return [
            f"{rule.name or rule.match} / attempt {a + 1} / step {s + 1}"
            for r, rule in enumerate(self.rules)
            for a, script in enumerate(rule.scripts)
            for s in range(len(script))
            if (r, a, s) not in self.played
        ]

    def _find(
        self, messages: Sequence[Mapping[str, Any]], system: str
    ) -> tuple[int, dict[str, str], Sequence[Mapping[str, Any]]] | None:
        for at in range(len(messages) - 1, -1, -1):
            if messages[at].get("role") != "user":
                continue
            text = text_of(messages[at].get("content"))
            for index, rule in enumerate(self.rules):
                hit = re.search(rule.match, text)
                if hit and re.search(rule.system, system):
                    return index, hit.groupdict(default=""), messages[at + 1 :]
        return None

    def _due(self, index: int, groups: dict[str, str], rest: Sequence[Mapping[str, Any]]) -> Play:
        rule = self.rules[index]
        said = [m for m in rest if m.get("role") == "assistant"]
        attempt = min(self._attempt(index, said), len(rule.scripts) - 1)
        step = min(len(said), len(rule.scripts[attempt]) - 1)
        answer = self._after_failures(rule.scripts[attempt][step], (index, attempt, step))
        if not said and "http" in answer:
            self._failed_start.add(index)
        self.played.add((index, attempt, step))
        return Play(rule=index, attempt=attempt, step=step, answer=filled(answer, groups))

    def _attempt(self, index: int, said: Sequence[Mapping[str, Any]]) -> int:
        if not said:
            if index not in self._failed_start:
                self._starts[index] += 1
            self._failed_start.discard(index)
            return self._starts[index] - 1
        for message in said:
            for call in message.get("tool_calls") or ():
                mark = CALL_ID.fullmatch(str(call.get("id", "")))
                if mark and int(mark[1]) == index:
                    return int(mark[2])
        return max(self._starts[index] - 1, 0)

    def _after_failures(self, answer: Step, key: tuple[int, int, int]) -> Step:
        if "http" not in answer or "fail_times" not in answer:
            return answer
        self._failures[key] += 1
        if self._failures[key] <= int(answer["fail_times"]):
            return answer
        return {k: v for k, v in answer.items() if k not in ("http", "body", "fail_times")}


def filled(value: Any, groups: Mapping[str, str]) -> Any:
    """The value with `${name}` replaced by the group of that name, in every text it holds."""
    if isinstance(value, str):
        for name, text in groups.items():
            value = value.replace("${" + name + "}", text)
        return value
    if isinstance(value, Mapping):
        return {k: filled(v, groups) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [filled(v, groups) for v in value]
    return value
