"""The last routing decisions of each chat session, kept so that the dashboard's process can show them.

One file of JSON lines for a session, for the owner alone, with the first characters of the message and the decision
with its signals. `routing.remember: false` keeps nothing and removes what was kept.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.decision import Decision
from ..core.errors import StoreUnwritable
from ..core.turns import Turn
from ..engine.paths import hermes_home, private_dir, state_dir

log = logging.getLogger("matrix_coder")

KEPT = 20
MOST_SESSIONS = 100
MOST_TEXT = 200
_MOST_SIGNALS = 8
_MOST_SIGNAL_TEXT = 80
_MOST_NAME = 300
# Twenty of the longest lines are shorter, so a file is rewritten once in many turns.
_MOST_BYTES = 160_000
_SETTING = b"remember"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One decision as it was kept; `decision` holds plain JSON values, `cut` that the message was longer."""

    session_id: str
    at: float
    message: str
    cut: bool
    decision: dict[str, Any]


@dataclass(slots=True)
class DecisionLog:
    """The kept decisions under one HERMES_HOME. Writing costs an append; reading never raises for what is not there."""

    home: Path
    clock: Callable[[], float] = time.time
    _allowed: bool = True
    _seen: tuple[int, int] = (-1, -1)
    _known: set[str] = field(default_factory=set)

    @property
    def folder(self) -> Path:
        """Where the files lie; it need not exist."""
        return state_dir(self.home) / "decisions"

    def add(self, session_id: str, message: str, decision: Decision) -> None:
        """Keep the decision on this message of the session. Raises OSError, StoreUnwritable."""
        if not self.allowed():
            shutil.rmtree(self.folder, ignore_errors=True)
            self._known.clear()
            return
        line = _line(session_id, message, decision, self.clock())
        file = self._file(session_id)
        if file.name not in self._known:
            self._make_room(file)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as stream:
            stream.write(line)
            size = stream.tell()
        if size > _MOST_BYTES:
            _rewrite(file)

    def allowed(self) -> bool:
        """Whether the settings let decisions be kept. The file is read only when it changed, and rarely parsed."""
        config = self.home / "config.yaml"
        try:
            found = config.stat()
        except OSError:
            return True
        stamp = (found.st_mtime_ns, found.st_size)
        if stamp != self._seen:
            self._seen, self._allowed = stamp, self._read(config)
        return self._allowed

    def _read(self, config: Path) -> bool:
        if _SETTING not in config.read_bytes():
            return True
        from .settings import chat_settings  # noqa: PLC0415 - only a home that sets it pays for the validation

        return chat_settings(self.home).routing.remember

    def sessions(self) -> list[Kept]:
        """The newest decision of each session, newest session first."""
        newest = (next(_read_back(file), None) for _, file in self._files())
        found = [kept for kept in newest if kept is not None and isinstance(kept.at, float | int)]
        return sorted(found, key=lambda kept: kept.at, reverse=True)

    def of(self, session_id: str) -> list[Kept]:
        """The session's last decisions, newest first."""
        return list(_read_back(self._file(session_id)))[:KEPT]

    def _file(self, session_id: str) -> Path:
        name = hashlib.sha256(session_id.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return self.folder / f"{name}.jsonl"

    def _files(self) -> list[tuple[float, Path]]:
        found = []
        for file in self.folder.glob("*.jsonl"):
            try:
                found.append((file.stat().st_mtime, file))
            except OSError:
                continue
        return found

    def _make_room(self, file: Path) -> None:
        """Once for each session of this process: a private folder, and no more sessions in it than are kept."""
        private_dir(state_dir(self.home))
        private_dir(self.folder)
        others = sorted(f for f in self._files() if f[1] != file)
        for _, old in others[: max(0, len(others) - MOST_SESSIONS + 1)]:
            old.unlink(missing_ok=True)
        if len(self._known) > MOST_SESSIONS:
            self._known.clear()
        self._known.add(file.name)


_logs: dict[Path, DecisionLog] = {}


def remember(turn: Turn | None, message: str) -> None:
    """Keep what was decided in this turn, if a decision was made. What can't be written costs a line in the log."""
    if turn is None or turn.decision is None or not turn.session_id:
        return
    home = hermes_home()
    try:
        _logs.setdefault(home, DecisionLog(home)).add(turn.session_id, message, turn.decision)
    except (OSError, StoreUnwritable) as error:
        log.info("matrix_coder: a decision was not kept: %s", error)


def _line(session_id: str, message: str, decision: Decision, at: float) -> bytes:
    text = message.strip()
    told = {
        "session_id": _text(session_id, _MOST_NAME),
        "at": round(at, 3),
        "message": _text(text, MOST_TEXT),
        "cut": len(text) > MOST_TEXT,
        "decision": _short(decision),
    }
    return json.dumps(told, ensure_ascii=False).encode() + b"\n"


def _short(decision: Decision) -> dict[str, Any]:
    """The decision without long texts."""
    told: dict[str, Any] = decision.as_dict()
    told["goal"] = _text(told["goal"], MOST_TEXT)
    told["answer"] = _text(told["answer"], MOST_TEXT)
    told["options"] = {name: _option(value) for name, value in told["options"].items()}
    told["signals"] = [s | {"text": _text(s["text"], _MOST_SIGNAL_TEXT)} for s in told["signals"][:_MOST_SIGNALS]]
    return told


def _option(value: object) -> object:
    if isinstance(value, list):
        return [_text(str(one), MOST_TEXT) for one in value[:_MOST_SIGNALS]]
    return _text(value, MOST_TEXT) if isinstance(value, str) else value


def _text(text: str, most: int) -> str:
    """The first characters, as text that can be encoded."""
    return text[:most].encode("utf-8", "replace").decode()


def _read_back(file: Path) -> Iterator[Kept]:
    """The decisions of a file, newest first; a line that is none is passed over."""
    try:
        lines = file.read_bytes().splitlines()
    except OSError:
        return
    for line in reversed(lines):
        try:
            kept = Kept(**json.loads(line))
        except (ValueError, TypeError):
            continue
        if isinstance(kept.decision, dict):
            yield kept


def _rewrite(file: Path) -> None:
    kept = file.read_bytes().splitlines(keepends=True)[-KEPT:]
    with tempfile.NamedTemporaryFile("wb", dir=file.parent, delete=False) as new:
        new.writelines(kept)
    Path(new.name).replace(file)
