"""What `delegate_task` answers, row by row: none of its shapes is success by itself."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrix_coder.core.delegation import CallKind, DelegateCall, ProviderProblem, read_delegate
from matrix_coder.core.models import Usage

TOKENS = {"input": 200, "output": 40}
USED = Usage(input_tokens=200, output_tokens=40, seconds=1.65)
OK = {
    "task_index": 0,
    "status": "completed",
    "summary": "child says hi",
    "api_calls": 2,
    "duration_seconds": 1.65,
    "model": "lab-model",
    "exit_reason": "completed",
    "tokens": TOKENS,
    "tool_trace": [{"tool": "terminal", "args_bytes": 18, "result_bytes": 63, "status": "ok"}],
}


def answer(**changed: object) -> str:
    """The host's JSON for one task."""
    return json.dumps({"results": [OK | changed], "total_duration_seconds": 1.78})


@pytest.mark.parametrize(
    ("changed", "kind", "text"),
    [
        ({}, CallKind.ANSWERED, "child says hi"),
        (
            {"summary": "⚠️ No reply: the model returned empty content", "api_calls": 4},
            CallKind.ANSWERED,
            "⚠️ No reply: the model returned empty content",
        ),
        ({"exit_reason": "max_iterations", "summary": "wrapped up"}, CallKind.ANSWERED, "wrapped up"),
        (
            {
                "exit_reason": "max_iterations",
                "summary": "I reached the iteration limit and couldn't generate a summary.",
            },
            CallKind.ANSWERED,
            "I reached the iteration limit and couldn't generate a summary.",
        ),
        ({"status": "interrupted", "exit_reason": "interrupted", "summary": ""}, CallKind.INTERRUPTED, ""),
        (
            {
                "status": "interrupted",
                "exit_reason": "interrupted",
                "summary": "Operation interrupted: waiting for model response (1.8s elapsed).",
            },
            CallKind.INTERRUPTED,
            "Operation interrupted: waiting for model response (1.8s elapsed).",
        ),
        (
            {
                "status": "timeout",
                "exit_reason": "timeout",
                "summary": None,
                "error": "Subagent timed out after 30s",
                "diagnostic_path": "/tmp/x",
            },
            CallKind.TIMEOUT,
            "Subagent timed out after 30s",
        ),
        ({"status": "failed", "summary": None, "error": "boom"}, CallKind.NOT_A_RESULT, "boom"),
        ({"status": "", "summary": "text"}, CallKind.NOT_A_RESULT, "text"),
        ({"status": None, "summary": "text"}, CallKind.NOT_A_RESULT, "text"),
    ],
)
def test_read_when_the_call_came_back_then_its_kind_and_text(
    changed: dict[str, object], kind: CallKind, text: str
) -> None:
    """Each shape the host returns has one kind; "completed" means only that the call came back."""
    assert read_delegate(answer(**changed)) == DelegateCall(kind=kind, text=text, usage=USED)


@pytest.mark.parametrize(
    ("status", "words"), [(400, "bad request"), (401, "invalid key"), (500, "overloaded"), (None, "connection refused")]
)
def test_read_when_the_model_server_refused_then_provider_error_whatever_the_status_says(
    status: int | None, words: str
) -> None:
    """An HTTP error that the host reports as "completed" is no answer."""
    problem = ProviderProblem(status=status, words=words)
    completed = answer(
        exit_reason="max_iterations", summary=f"HTTP {status}: {words}", tokens={"input": 0, "output": 0}
    )
    call = read_delegate(completed, problem=problem)
    assert (call.kind, call.text, call.usage.tokens) == (CallKind.PROVIDER_ERROR, words, 0)


def test_read_when_a_batch_entry_was_cut_off_then_interrupted_with_no_usage() -> None:
    """An entry without tokens, trace or exit reason is read as it is."""
    entry = {"task_index": 0, "status": "interrupted", "summary": None, "error": "Parent agent interrupted"}
    call = read_delegate(json.dumps({"results": [entry]}))
    assert call == DelegateCall(kind=CallKind.INTERRUPTED, text="Parent agent interrupted", usage=Usage())


@pytest.mark.parametrize("words", ["Too many tasks: 9 > 3", "Delegation depth limit reached", "spawning is paused"])
def test_read_when_the_call_was_refused_before_the_start_then_refused(words: str) -> None:
    """An error without results means that nothing ran."""
    assert read_delegate(json.dumps({"error": words})) == DelegateCall(kind=CallKind.REFUSED, text=words)


@pytest.mark.parametrize(
    "text",
    ["", "completed", "null", "[]", '"done"', "{}", '{"results": []}', '{"results": ["done"]}', '{"results": "done"}'],
)
def test_read_when_it_is_no_result_then_that_is_what_it_is(text: str) -> None:
    """Nothing that is not a result is ever taken for an answer."""
    assert read_delegate(text).kind is CallKind.NOT_A_RESULT


@pytest.mark.parametrize(
    "tokens", [None, "200", [], {}, {"input": -5, "output": True}, {"input": 1.5, "output": None}, {"in": 3}]
)
def test_read_when_the_token_counts_are_odd_then_nothing_is_counted(tokens: object) -> None:
    """Usage is what the host counted in whole numbers, never less than nothing."""
    assert read_delegate(answer(tokens=tokens, duration_seconds="long")).usage == Usage()


@settings(deadline=None)
@given(text=st.text() | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps))
def test_read_when_anything_comes_back_then_it_is_typed_and_never_answered(text: str) -> None:
    """Whatever the host returned, reading it raises nothing."""
    assert read_delegate(text).kind is CallKind.NOT_A_RESULT


@pytest.mark.parametrize(
    ("status", "words", "terminal"),
    [
        (401, "Unauthorized", True),
        (402, "Payment Required", True),
        (403, "Forbidden", True),
        (429, "You exceeded your current quota: insufficient_quota", True),
        (400, "Your credit balance is too low", True),
        (None, "Invalid API key provided", True),
        (429, "Rate limit reached", False),
        (500, "server error", False),
        (503, "overloaded", False),
        (None, "connection reset", False),
        (None, "", False),
    ],
)
def test_problem_when_trying_again_cannot_help_then_terminal(status: int | None, words: str, terminal: bool) -> None:
    """Only the key, the account or the right to use the model end a run at once."""
    assert ProviderProblem(status=status, words=words).terminal is terminal
