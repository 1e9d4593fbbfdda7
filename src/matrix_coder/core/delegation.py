"""What `delegate_task` answered, as one of a closed set of results.

The host says "completed" for any non-empty text: an answer, an HTTP error that became the answer, an empty
reply with its apology, the summary after an iteration limit. So its status is read as "the call came back"
and nothing more; whether the model's server refused is told by the error hook, whether work was done by the report.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from .models import Usage

_TERMINAL_STATUS = frozenset({401, 402, 403})
_TERMINAL_WORDS = (
    "insufficient_quota",
    "quota exceeded",
    "billing",
    "invalid api key",
    "invalid_api_key",
    "credit balance",
)


class CallKind(StrEnum):
    """How a call to `delegate_task` came back."""

    ANSWERED = "answered"
    PROVIDER_ERROR = "provider_error"
    INTERRUPTED = "interrupted"
    TIMEOUT = "timeout"
    REFUSED = "refused"
    NOT_A_RESULT = "not_a_result"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderProblem:
    """What the model's server answered instead of a completion."""

    status: int | None
    words: str

    @property
    def rate_limited(self) -> bool:
        """Whether the server only asks to come back later."""
        return self.status == 429 and not self.terminal

    @property
    def terminal(self) -> bool:
        """Whether trying again can't help: the key, the account or the right to use the model."""
        text = self.words.lower()
        return self.status in _TERMINAL_STATUS or any(w in text for w in _TERMINAL_WORDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateCall:
    """One call: how it came back, the child's closing text, what it used."""

    kind: CallKind
    text: str = ""
    usage: Usage = Usage()


def read_delegate(answer: str, *, problem: ProviderProblem | None = None) -> DelegateCall:
    """The typed result of one single-task call, from the JSON text that the host returned.

    `problem` is the last error that the error hook saw during the call and no later success followed.
    """
    try:
        data = json.loads(answer)
    except ValueError:
        return DelegateCall(kind=CallKind.NOT_A_RESULT, text=f"no JSON: {answer[:200]}")
    if not isinstance(data, Mapping):
        return DelegateCall(kind=CallKind.NOT_A_RESULT, text=f"no object: {answer[:200]}")
    results = data.get("results")
    if not isinstance(results, list) or not results or not isinstance(results[0], Mapping):
        kind = CallKind.REFUSED if data.get("error") else CallKind.NOT_A_RESULT
        return DelegateCall(kind=kind, text=str(data.get("error") or answer[:200]))
    return _entry(cast("Mapping[str, object]", results[0]), problem)


def _entry(entry: Mapping[str, object], problem: ProviderProblem | None) -> DelegateCall:
    text = str(entry.get("summary") or entry.get("error") or "")
    usage = _usage(entry)
    status = str(entry.get("status") or "")
    if problem is not None:
        return DelegateCall(kind=CallKind.PROVIDER_ERROR, text=problem.words, usage=usage)
    kinds = {"completed": CallKind.ANSWERED, "interrupted": CallKind.INTERRUPTED, "timeout": CallKind.TIMEOUT}
    return DelegateCall(kind=kinds.get(status, CallKind.NOT_A_RESULT), text=text, usage=usage)


def _usage(entry: Mapping[str, object]) -> Usage:
    tokens = entry.get("tokens")
    counts = tokens if isinstance(tokens, Mapping) else {}
    seconds = entry.get("duration_seconds")
    return Usage(
        input_tokens=_whole(counts.get("input")),
        output_tokens=_whole(counts.get("output")),
        seconds=float(seconds) if isinstance(seconds, (int, float)) else 0.0,
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
