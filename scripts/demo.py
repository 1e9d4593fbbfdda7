"""The main job, for real: a real Hermes with the plugin routes messages and mends a real repository.

Only the model is a double: a scripted server that this project ships (`python -m matrix_coder.testing serve`),
which plays the answers in demo/model.json. Everything else is what a person runs. Exits non-zero if any part of
what it shows did not happen.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from matrix_coder.core.intent_gate import decide
from matrix_coder.engine.client import Client
from matrix_coder.engine.spawn import worker_pid
from matrix_coder.testing import HermesHome

ROOT = Path(__file__).resolve().parent.parent
console = Console(highlight=False, soft_wrap=False, width=None if sys.stdout.isatty() else 140)
# The same in short, for the picture in the README (`demo.py --picture FILE`).
picture = Console(highlight=False, record=True, width=112, file=io.StringIO())

MESSAGES = [
    ("matrix review:security@backend-api check the login flow", "A", "review:security@backend-api"),
    ("why does the API endpoint crash on empty input?", "D", "debug@backend-api"),
    ("review the auth endpoint", "D", "review:security@backend-api"),
    ("add tests for the tokenizer module", "D", "test"),
    ("fix src/components/Nav.tsx so the menu closes", "D", "executor@frontend"),
    ("fix README typo", "C", "executor"),
    ("plan a weekend trip to the mountains", "B", None),
    ("fix the login bug in auth.py, but handle it directly", "B", None),
]
HEADER = 'matrix ralph check="python -m pytest -q": make the tests pass'


class DemoFailed(Exception):
    """Something that the demo shows did not happen."""


def expect(seen: bool, what: str) -> None:
    if not seen:
        raise DemoFailed(what)


def heading(text: str) -> None:
    console.print()
    console.rule(f"[bold]{text}", align="left")


@contextmanager
def scripted_model(folder: Path) -> Iterator[tuple[str, Path]]:
    """The base URL of a running scripted model, and the log of what it was asked."""
    port_file, log = folder / "port", folder / "requests.jsonl"
    words = ["--rules", str(ROOT / "demo" / "model.json"), "--port-file", str(port_file), "--log", str(log)]
    with subprocess.Popen([sys.executable, "-m", "matrix_coder.testing", "serve", *words]) as server:
        try:
            deadline = time.monotonic() + 20
            while not (port_file.exists() and port_file.read_text().strip()):
                expect(time.monotonic() < deadline and server.poll() is None, "the scripted model did not start")
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port_file.read_text().strip()}/v1", log
        finally:
            server.terminate()


def asked(log: Path) -> list[dict[str, Any]]:
    """The requests that the scripted model got, as the host sent them."""
    entries = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return [e.get("body", e) for e in entries]


def user_text(body: dict[str, Any]) -> str:
    """The last user message of a request."""
    return next((str(m["content"]) for m in reversed(body["messages"]) if m["role"] == "user"), "")


def show_routing(home: HermesHome, log: Path) -> None:
    heading("1. Eight messages, each one turn of a real Hermes chat")
    home.converse([{"text": text, "session": f"chat-{i}"} for i, (text, _, _) in enumerate(MESSAGES)])
    sent = [user_text(b) for b in asked(log)]
    table = Table(show_lines=True)
    for column in ("message", "outcome", "route", "what decided", "added to the turn"):
        table.add_column(column, overflow="fold")
    for text, outcome, route in MESSAGES:
        decision = decide(text)
        expect((decision.outcome.value, decision.route) == (outcome, route), f"{text!r} was routed as {decision.route}")
        request = next((s for s in sent if s.startswith(text)), None)
        expect(request is not None, f"the model never got {text!r}")
        added = len(request or "") - len(text)
        expect((added > 0) == (decision.verdict == "matrix"), f"{text!r} got {added} characters")
        signals = "\n".join(f"{s.text!r} {s.rule}" for s in decision.signals[:4])
        persona = f"persona, {added:,} characters" if added else "a tip" if outcome == "C" else "nothing"
        picture.print(f"{text[:56]:<57}[bold]{outcome}[/] {decision.verdict:<8}[cyan]{route or '-'}[/]")
        table.add_row(text, f"{outcome} {decision.verdict}", route or "-", signals or "no signal", persona)
    console.print(table)


def _style(line: str) -> str:
    if "checked:" in line or "the engine ran" in line:
        return "green" if " passes (" in line else "red"
    return "bold green" if "ended: verified" in line else "bold" if ": executor" in line or ": verify" in line else ""


def show_run(home: HermesHome, repo: Path) -> None:
    heading("2. A run, started from chat")
    suite = home.command("python", "-m", "pytest", "-q", cwd=repo)
    console.print(f"the suite before: {suite.out.strip().splitlines()[-1]}")
    picture.print()
    expect(suite.rc != 0, "the suite of the demo repository was not failing")
    console.print(f"[bold]$ hermes chat -Q -q '{HEADER}'")
    picture.print(f"[bold]$ hermes chat -q '{HEADER}'")
    words = [str(Path(sys.executable).parent / "hermes"), "chat", "-Q", "-q", HEADER]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(words, cwd=repo, env=home.environment(), **pipes) as chat:
        for line in chat.stderr or ():
            console.print(line.rstrip(), markup=False, soft_wrap=True)
            picture.print(
                line.rstrip().removeprefix("[matrix] "),
                markup=False,
                style=_style(line),
                overflow="ellipsis",
                no_wrap=True,
            )
        answer = (chat.stdout.read() if chat.stdout else "").strip()
    console.print(answer, style="cyan", markup=False)
    picture.print(answer, style="cyan", markup=False)
    expect(chat.returncode == 0, f"hermes ended with {chat.returncode}")
    result = Client(home.path).result("r1")
    expect(result.verified, f"the run ended as {result.outcome}: {result.reason}")
    counts = [e.counts() for s in result.steps for e in s.evidence]
    expect(result.iterations == 2 and len(result.steps) == 4, f"expected two iterations of two steps; found {counts}")
    expect(not result.steps[1].evidence[0].passed, "the first attempt was enough, so the loop was not shown")
    heading("The report of the run (matrix-coder show r1)")
    console.print(home.command("matrix-coder", "show", "r1").out, markup=False)
    console.print(
        subprocess.run(["git", "diff"], cwd=repo, capture_output=True, text=True, check=True).stdout, markup=False
    )
    expect(home.command("python", "-m", "pytest", "-q", cwd=repo).rc == 0, "the suite still fails")


def show_cards(home: HermesHome) -> None:
    heading("3. The cards it left on the Kanban board (hermes kanban list, show)")
    deadline = time.monotonic() + 30
    while (listed := home.hermes("kanban", "list").out).count(" done ") < 5 and time.monotonic() < deadline:
        time.sleep(0.5)
    console.print(listed, markup=False)
    picture.print("\n[bold]$ hermes kanban list")
    picture.print(listed.rstrip(), markup=False)
    for words in ("r1 ralph · verified", "1/5 verify · FAIL", "2/5 verify · PASS"):
        expect(words in listed, f"no card says {words!r}")
    card = next(w for line in listed.splitlines() if "2/5 verify" in line for w in line.split() if w.startswith("t_"))
    console.print(home.hermes("kanban", "show", card).out, markup=False)


def main() -> int:
    """Run the demo; the exit code."""
    begun = time.monotonic()
    picture.print("[bold]$ matrix-coder route ...")
    folder = Path(tempfile.mkdtemp(prefix="matrix-coder-demo-"))
    home = None
    try:
        repo = folder / "shop"
        shutil.copytree(ROOT / "demo" / "repo", repo)
        git = ["git", "-c", "user.name=Demo", "-c", "user.email=demo@example.invalid", "-c", "init.defaultBranch=main"]
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "start"]):
            subprocess.run([*git, *words], cwd=repo, check=True)
        console.print(
            f"A real Hermes Agent in {folder}, with this plugin. The model is a scripted double: demo/model.json"
        )
        with scripted_model(folder) as (url, log):
            home = HermesHome(folder / "home", url)
            show_routing(home, log)
            show_run(home, repo)
            show_cards(home)
    except DemoFailed as failure:
        console.print(f"\n[bold red]demo failed:[/] {failure}; what it left is in {folder}", soft_wrap=True)
        return 1
    finally:
        if home is not None and (pid := worker_pid(home.path)):
            os.kill(pid, signal.SIGTERM)
    shutil.rmtree(folder, ignore_errors=True)
    if sys.argv[1:2] == ["--picture"]:
        svg = picture.export_svg(title="Matrix Coder")
        # The reader's own monospace font, instead of one that the picture would fetch.
        Path(sys.argv[2]).write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL), encoding="utf-8")
    console.print(f"[bold green]demo passed[/] in {time.monotonic() - begun:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
