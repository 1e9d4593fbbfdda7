"""Chats that live on after an answer: an interactive one in a terminal, and a gateway with a messenger and an API."""

from __future__ import annotations

import json
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from ptyprocess import PtyProcessUnicode

from matrix_coder.testing import HermesHome

SECONDS = 90


def wait_until(what: Callable[[], Any], said: Callable[[], str], seconds: float = SECONDS) -> Any:
    """The first true answer of `what`; fails with what `said` gives."""
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, said()
        time.sleep(0.1)
    return found


class Repl:
    """A running `hermes`, and what its screen has shown so far, without the control sequences."""

    def __init__(self, home: HermesHome, *words: str, cwd: Path | None = None) -> None:
        program = str(Path(sys.executable).parent / "hermes")
        env = home.environment({"TERM": "xterm-256color"})
        spawn = PtyProcessUnicode.spawn
        self.process = spawn([program, *words], env=env, cwd=str(cwd or home.cwd), dimensions=(60, 200))
        self._parts: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            try:
                self._parts.append(self.process.read(4096))
            except (EOFError, ValueError, OSError):
                return

    @property
    def screen(self) -> str:
        return re.sub(r"\x1b\[[0-9;? ]*[A-Za-z]", "", "".join(self._parts))

    def wait_for(self, text: str, times: int = 1) -> None:
        wait_until(lambda: self.screen.count(text) >= times, lambda: f"{text!r} not seen in:\n{self.screen[-3000:]}")

    def say(self, text: str) -> None:
        self.process.write(text)
        time.sleep(0.3)
        self.process.write("\r")

    def leave(self) -> int:
        """End it as a person does; its exit code."""
        self.say("/exit")
        wait_until(lambda: not self.process.isalive(), lambda: f"still there:\n{self.screen[-3000:]}", 30)
        return int(self.process.exitstatus or 0)


class Messenger:
    """A message server of topics on 127.0.0.1, as ntfy is one: what one publishes, its readers get."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self._readers: list[queue.Queue[dict[str, Any]]] = []
        self.stopping = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def readers(self) -> int:
        return len(self._readers)

    def say(self, text: str) -> None:
        """A person writes."""
        for reader in self._readers:
            reader.put({"event": "message", "id": f"m{time.monotonic_ns()}", "topic": "shop", "message": text})

    def wait_for(self, text: str, times: int = 1) -> str:
        """The last message that holds this text, once there are so many of them."""

        def found() -> list[str]:
            hits = [m for m in self.sent if text in m]
            return hits if len(hits) >= times else []

        return str(wait_until(found, lambda: f"{text!r} not among {self.sent}")[-1])

    def count(self, text: str) -> int:
        return sum(text in message for message in self.sent)

    def read(self) -> queue.Queue[dict[str, Any]]:
        self._readers.append(queue.Queue())
        return self._readers[-1]

    def gone(self, reader: queue.Queue[dict[str, Any]]) -> None:
        self._readers.remove(reader)

    def close(self) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._http.server_close()


def _handler(server: Messenger) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            server.sent.append(text)
            body = json.dumps({"id": f"s{len(server.sent)}"}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            mine = server.read()
            try:
                while not server.stopping.is_set():
                    try:
                        event = mine.get(timeout=0.2)
                    except queue.Empty:
                        event = {"event": "keepalive"}
                    self.wfile.write((json.dumps(event) + "\n").encode())
                    self.wfile.flush()
            except OSError:
                pass
            finally:
                server.gone(mine)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


class Gateway:
    """A running `hermes gateway` with a chat of the messenger and the API server."""

    KEY = "a-key-of-this-test-0123456789abcdef"

    def __init__(self, home: HermesHome, messenger: Messenger, cwd: Path) -> None:
        self.messenger = messenger
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self._env = home.environment(
            {
                "NTFY_SERVER_URL": messenger.url,
                "NTFY_TOPIC": "shop",
                "NTFY_ALLOWED_USERS": "shop",
                "API_SERVER_ENABLED": "true",
                "API_SERVER_KEY": self.KEY,
                "API_SERVER_PORT": str(self.port),
                "TERMINAL_CWD": str(cwd),
            }
        )
        self._home, self._cwd = home, cwd
        self.start()

    def start(self) -> Self:
        program = str(Path(sys.executable).parent / "hermes")
        self._log = (self._home.root / "gateway.log").open("ab")
        self.process = subprocess.Popen(
            [program, "gateway", "run"], env=self._env, cwd=self._cwd, stdout=self._log, stderr=self._log
        )
        wait_until(lambda: self.messenger.readers, self.log)
        return self

    def log(self) -> str:
        return (self._home.root / "gateway.log").read_text(errors="replace")[-4000:]

    def ask(self, text: str, session: str) -> str:
        """The API's answer to one message in a session of its own."""
        body = {"model": "hermes-agent", "messages": [{"role": "user", "content": text}]}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/chat/completions",
            data=json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self.KEY}",
                "Content-Type": "application/json",
                "X-Hermes-Session-Id": session,
            },
        )
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            found: Mapping[str, Any] = json.load(answer)
        return str(found["choices"][0]["message"]["content"])

    def stop(self) -> int:
        """End it as a service manager does; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._log.close()
        return int(self.process.returncode)
