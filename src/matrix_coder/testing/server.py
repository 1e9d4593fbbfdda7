"""The scripted model as an OpenAI-compatible server on 127.0.0.1."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from .script import Play, Rule, Script, load_rules

MODEL = "scripted-model"
CHUNK = 400


class ScriptedModel:
    """A model double: answers chat requests from a script and remembers every request body.

    Use it as a context manager. `requests` holds one dict for each chat request: `body`, and `rule`,
    `attempt`, `step` of the answer (rule -1: the default text). With `log`, the same go to a JSONL file.
    """

    def __init__(
        self,
        rules: Sequence[Rule] | Path = (),
        *,
        default: str = "scripted model: no rule matches",
        log: Path | None = None,
        port: int = 0,
    ) -> None:
        known = load_rules(rules) if isinstance(rules, Path) else list(rules)
        self.script = Script(rules=known, default=default)
        self.requests: list[dict[str, Any]] = []
        self.stopping = threading.Event()
        self._log = log
        self._lock = threading.Lock()
        self._http = _Server(("127.0.0.1", port), self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The bodies of the chat requests so far, in the order of their arrival."""
        return [entry["body"] for entry in self.requests]

    def start(self) -> Self:
        self._thread.start()
        return self

    def close(self) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._http.server_close()

    def serve_forever(self) -> None:
        """Serves on the calling thread until it is interrupted."""
        try:
            self._http.serve_forever()
        finally:
            self.stopping.set()
            self._http.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def assert_played(self) -> None:
        """Fails with the steps that no request has asked for."""
        left = self.script.unplayed()
        if left:
            raise AssertionError("never played: " + "; ".join(left))

    def record(self, body: dict[str, Any], play: Play) -> None:
        entry = {"rule": play.rule, "attempt": play.attempt, "step": play.step, "body": body}
        with self._lock:
            self.requests.append(entry)
            if self._log is not None:
                with self._log.open("a", encoding="utf-8") as out:
                    out.write(json.dumps(entry) + "\n")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], model: ScriptedModel) -> None:
        self.model = model
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # An answer in two small packets would wait 40 ms for the first to be acknowledged.
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: the requests are kept instead."""

    def do_GET(self) -> None:
        if self.path.rstrip("/") == "/v1/models":
            self._json(200, {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "test"}]})
        else:
            self._json(404, {"error": {"message": "not found"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        if self.path.rstrip("/") != "/v1/chat/completions":
            self._json(404, {"error": {"message": "not found"}})
            return
        play = self.server.model.script.play(body.get("messages") or [])
        self.server.model.record(body, play)
        try:
            self._answer(body, play)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the host hung up: an interrupt

    def _answer(self, body: Mapping[str, Any], play: Play) -> None:
        self._wait(play.answer)
        if "http" in play.answer:
            default = {"error": {"message": f"scripted HTTP {play.answer['http']}"}}
            self._json(int(play.answer["http"]), play.answer.get("body", default))
        elif body.get("stream"):
            self._stream(body, play)
        else:
            self._json(200, whole(body, play))

    def _wait(self, step: Mapping[str, Any]) -> None:
        if "touch" in step:
            Path(step["touch"]).touch()
        stopping = self.server.model.stopping
        stopping.wait(float(step.get("sleep", 0)))
        while "until" in step and not Path(step["until"]).exists() and not stopping.is_set():
            stopping.wait(0.02)

    def _json(self, status: int, payload: Any) -> None:
        data = (payload if isinstance(payload, str) else json.dumps(payload)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, body: Mapping[str, Any], play: Play) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for chunk in chunks(body, play):
            self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
            self.wfile.flush()
            self.server.model.stopping.wait(float(play.answer.get("chunk_sleep", 0)))
        self.wfile.write(b"data: [DONE]\n\n")


def calls_of(play: Play) -> list[dict[str, Any]]:
    """The tool calls of a step, in the wire's form."""
    step = play.answer
    wanted = list(step.get("tools", ())) or ([step] if "tool" in step else [])
    return [
        {
            "id": play.call_id(n),
            "type": "function",
            "function": {"name": call["tool"], "arguments": json.dumps(call.get("args", {}))},
        }
        for n, call in enumerate(wanted)
    ]


def usage_of(step: Mapping[str, Any]) -> dict[str, int]:
    """The step's usage in the wire's form; 100 tokens in and 20 out unless it says otherwise."""
    told = step.get("usage", {})
    used = {"prompt_tokens": int(told.get("input", 100)), "completion_tokens": int(told.get("output", 20))}
    return {**used, "total_tokens": sum(used.values())}


def finish_of(step: Mapping[str, Any]) -> str:
    return str(step.get("finish") or ("tool_calls" if "tool" in step or "tools" in step else "stop"))


def whole(body: Mapping[str, Any], play: Play) -> dict[str, Any]:
    """The answer as one completion object."""
    message: dict[str, Any] = {"role": "assistant", "content": play.answer.get("text", "")}
    calls = calls_of(play)
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": finish_of(play.answer)}
    head = {"id": "scripted", "object": "chat.completion", "created": int(time.time())}
    model = {"model": body.get("model", MODEL)}
    return {**head, **model, "choices": [choice], "usage": usage_of(play.answer)}


def chunks(body: Mapping[str, Any], play: Play) -> Iterator[dict[str, Any]]:
    """The answer as the chunks of a stream; the last one holds the usage and no choice."""
    head = {"id": "scripted", "object": "chat.completion.chunk", "created": int(time.time())}
    head["model"] = body.get("model", MODEL)

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    text = str(play.answer.get("text", ""))
    for at in range(0, len(text), CHUNK):
        yield chunk({"content": text[at : at + CHUNK]})
    for n, call in enumerate(calls_of(play)):
        yield chunk({"tool_calls": [{"index": n, **call}]})
    yield chunk({}, finish_of(play.answer))
    yield {**head, "choices": [], "usage": usage_of(play.answer)}
