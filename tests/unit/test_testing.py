"""The doubles that ship with the package do what they promise."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from matrix_coder.testing import ManualClock, Rule, Script, ScriptedModel
from matrix_coder.testing.script import rule_from


def ask(base_url: str, messages: list[dict[str, Any]], **body: Any) -> str:
    """The raw answer to a chat request."""
    data = json.dumps({"model": "m", "messages": messages, **body}).encode()
    request = urllib.request.Request(f"{base_url}/chat/completions", data, {"Content-Type": "text/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return str(answer.read().decode())


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(call_id: str = "") -> dict[str, Any]:
    calls = [{"id": call_id, "type": "function", "function": {"name": "t", "arguments": "{}"}}]
    return {"role": "assistant", "content": "", "tool_calls": calls if call_id else []}


def test_step_when_assistant_messages_follow_then_their_number_chooses_it() -> None:
    """The request alone says which step is due, and the last step repeats."""
    script = Script(rules=[Rule(match="go", steps=({"text": "one"}, {"text": "two"}))])
    texts = [script.play([user("go"), *[said()] * n]).answer["text"] for n in range(4)]
    assert texts == ["one", "two", "two", "two"]


def test_attempts_when_a_conversation_starts_again_then_the_next_script_plays() -> None:
    """The second start of a rule's conversation gets the second script, and running ones keep theirs."""
    first, second = ({"tool": "t"}, {"text": "1"}), ({"tool": "t"}, {"text": "2"})
    script = Script(rules=[Rule(match="go", attempts=(first, second))])
    starts = [script.play([user("go")]) for _ in range(2)]
    ends = [script.play([user("go"), said(start.call_id(0))]).answer["text"] for start in starts]
    assert ends == ["1", "2"]
    assert script.unplayed() == []


def test_fail_times_when_used_up_then_the_rest_of_the_step_plays_without_a_new_attempt() -> None:
    """A step may fail a number of times first; the host's retries are no new conversation."""
    step = {"http": 500, "fail_times": 1, "text": "fine"}
    script = Script(rules=[Rule(match="go", attempts=((step,), ({"text": "again"},)))])
    assert script.play([user("go")]).answer["http"] == 500
    assert script.play([user("go")]).answer == {"text": "fine"}
    assert script.play([user("go")]).answer == {"text": "again"}


def test_named_groups_when_a_step_names_them_then_their_text_is_filled_in() -> None:
    """What the user message holds can go into the arguments of a tool."""
    step = {"tool": "write_file", "args": {"path": "${where}/a.py", "content": "$HOME ${other}"}}
    play = Script(rules=[Rule(match=r"in (?P<where>\S+)", steps=(step,))]).play([user("work in /tmp/w")])
    assert play.answer["args"] == {"path": "/tmp/w/a.py", "content": "$HOME ${other}"}


def test_rule_when_a_step_has_an_unknown_key_then_it_is_refused() -> None:
    """A typo in a script fails when it is loaded, not in the middle of a test."""
    with pytest.raises(ValueError, match="unknown step keys"):
        rule_from({"match": "x", "steps": [{"txt": "hello"}]})


def test_server_when_asked_to_stream_then_chunks_end_with_usage_and_done(
    scripted_model: Callable[..., ScriptedModel],
) -> None:
    """A stream holds the text, a chunk with the usage, and the end mark."""
    model = scripted_model([Rule(match="go", steps=({"text": "hello", "usage": {"input": 7}},))])
    lines = [line[6:] for line in ask(model.base_url, [user("go")], stream=True).splitlines() if line]
    chunks = [json.loads(line) for line in lines[:-1]]
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in chunks[:-1]) == "hello"
    assert chunks[-1]["usage"] == {"prompt_tokens": 7, "completion_tokens": 20, "total_tokens": 27}
    assert lines[-1] == "[DONE]"
    model.assert_played()


def test_server_when_a_step_was_not_asked_for_then_assert_played_names_it(
    scripted_model: Callable[..., ScriptedModel],
) -> None:
    """A script that was not played to its end is told."""
    model = scripted_model([Rule(match="go", steps=({"text": "a"}, {"text": "b"}), name="walk")])
    ask(model.base_url, [user("go")])
    with pytest.raises(AssertionError, match="walk / attempt 1 / step 2"):
        model.assert_played()


def test_serve_when_run_as_a_process_then_it_answers_and_logs(tmp_path: Path) -> None:
    """The server runs as a process of its own, from a file of rules, and logs what it was asked."""
    rules, port, log = tmp_path / "rules.json", tmp_path / "port", tmp_path / "log.jsonl"
    rules.write_text(json.dumps([{"match": "go", "steps": [{"text": "served"}]}]))
    options = ["--rules", str(rules), "--port-file", str(port), "--log", str(log)]
    command = [sys.executable, "-m", "matrix_coder.testing", "serve", *options]
    with subprocess.Popen(command) as server:
        while not port.exists():
            assert server.poll() is None
            time.sleep(0.02)
        answer = json.loads(ask(f"http://127.0.0.1:{port.read_text().strip()}/v1", [user("go")]))
        server.terminate()
        assert server.wait(20) == 0
    assert answer["choices"][0]["message"]["content"] == "served"
    assert json.loads(log.read_text())["body"]["messages"] == [user("go")]


def test_manual_clock_when_advanced_then_only_then_it_moves() -> None:
    """Time is what the test says."""
    clock = ManualClock(10.0)
    clock.sleep(5)
    assert clock() == 15.0
