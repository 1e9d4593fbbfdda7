"""A real Hermes in a home of its own, talking to a scripted model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .server import MODEL

PASSED_ON = ("LANG", "LC_ALL", "TMPDIR", "TZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a command ended."""

    rc: int
    out: str
    err: str


def merged(base: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `more` laid over it, section by section."""
    result = dict(base)
    for key, value in more.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


class HermesHome:
    """A HERMES_HOME in `root`, and the real `hermes` of this environment run inside it.

    Commands get a clean environment: PATH (this environment's programs first), HOME, HERMES_HOME, the
    locale, and what `env` or the call adds. Nothing of a person's own Hermes is read or written.
    """

    def __init__(
        self,
        root: Path,
        base_url: str,
        *,
        config: Mapping[str, Any] | None = None,
        env: Mapping[str, str] | None = None,
        plugins: Sequence[str] = ("matrix_coder",),
    ) -> None:
        self.root = Path(root)
        self.path = self.root / "hermes"
        self.cwd = self.root / "cwd"
        self.extra = dict(env or {})
        for folder in (self.path, self.cwd, self.root / "home"):
            folder.mkdir(parents=True, exist_ok=True)
        self.config = self._config(base_url, plugins)
        self.configure(config or {})

    def _config(self, base_url: str, plugins: Sequence[str]) -> dict[str, Any]:
        return {
            "model": {
                "provider": "custom",
                "default": MODEL,
                "base_url": base_url,
                "context_length": 128_000,
            },
            # The probe asks several Pythons for their versions before each session's first request.
            "agent": {"api_max_retries": 1, "verify_on_stop": False, "environment_probe": False},
            "security": {"tirith_enabled": False},
            # Else the first edit of a source file waits for a language server to be fetched.
            "lsp": {"enabled": False},
            "plugins": {"enabled": list(plugins)},
        }

    def configure(self, more: Mapping[str, Any]) -> None:
        """Lays `more` over the configuration and writes it. (JSON is YAML.)"""
        self.config = merged(self.config, more)
        text = json.dumps(self.config, indent=2)
        (self.path / "config.yaml").write_text(text + "\n", encoding="utf-8")

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The whole environment a command gets."""
        programs = str(Path(sys.executable).parent)
        env = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        env["PATH"] = programs + os.pathsep + os.environ.get("PATH", os.defpath)
        env["HOME"] = str(self.root / "home")
        env["HERMES_HOME"] = str(self.path)
        env.setdefault("LANG", "C.UTF-8")
        return {**env, **self.extra, **(more or {})}

    def command(
        self,
        *words: str,
        timeout: float = 120,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> Result:
        """Runs any program of this environment inside the home, to its end."""
        program = Path(sys.executable).parent / words[0]
        first = str(program) if program.exists() else words[0]
        done = subprocess.run(
            [first, *words[1:]],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=self.environment(env),
            cwd=cwd or self.cwd,
            check=False,
        )
        return Result(rc=done.returncode, out=done.stdout, err=done.stderr)

    def hermes(self, *words: str, timeout: float = 120, **rest: Any) -> Result:
        """Runs `hermes` with these words."""
        return self.command("hermes", *words, timeout=timeout, **rest)

    def run(self, *words: str, **rest: Any) -> Result:
        """Runs `hermes` with these words, as in `run("-z", "hello")`."""
        return self.hermes(*words, **rest)

    def chat(self, text: str, *words: str, **rest: Any) -> Result:
        """Runs `hermes chat -q` with one message."""
        return self.hermes("chat", "-q", text, *words, **rest)

    def python(self, code: str, *words: str, **rest: Any) -> Result:
        """Runs a piece of Python in this environment inside the home."""
        return self.command(sys.executable, "-c", code, *words, **rest)

    def converse(
        self, turns: Sequence[str | Mapping[str, Any]], *, timeout: float = 170, **job: Any
    ) -> list[dict[str, Any]]:
        """Plays turns in one process with a real agent; one result dict for each turn.

        A turn is a text, or a dict with `text` and any of the options in `matrix_coder.testing.driver`.
        Raises AssertionError with the process's error output if it did not come to its end.
        """
        given = [{"text": t} if isinstance(t, str) else dict(t) for t in turns]
        stdin = json.dumps({**job, "turns": given})
        done = self.command(sys.executable, "-m", "matrix_coder.testing.driver", stdin=stdin, timeout=timeout)
        lines = [line for line in done.out.splitlines() if line.startswith("{")]
        results = [json.loads(line) for line in lines]
        if done.rc != 0 or len(results) != len(given):
            raise AssertionError(f"driver ended with {done.rc}: {done.out[-2000:]}\n{done.err[-4000:]}")
        return results
