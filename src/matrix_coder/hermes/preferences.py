"""What a person does not want inferred: in this session, about a phrase, or at all. Explicit triggers always work."""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from ..core.errors import InputError
from ..engine.paths import hermes_home, private_dir, state_dir

SWITCH = "MATRIX_CODER_IMPLICIT_ROUTING"
_OFF = frozenset({"0", "no", "off", "false"})
_MOST_SESSIONS = 500
_MOST_PHRASES = 200
_LONGEST_PHRASE = 200


def switched_off() -> bool:
    """Whether this process's environment says that nothing is to be inferred."""
    return os.environ.get(SWITCH, "").strip().lower() in _OFF


class Preferences:
    """The preferences under one HERMES_HOME. Read when a turn is about to get something, and only if they changed."""

    def __init__(self, home: Path | None = None) -> None:
        self._home = home or hermes_home()
        self._file = state_dir(self._home) / "preferences.json"
        self._stamp = -1
        self._off: list[str] = []
        self._never: list[str] = []
        self._setting: bool | None = None

    def allows(self, message: str, session_id: str) -> bool:
        """Whether something may be inferred from this message."""
        if switched_off() or not self._implicit():
            return False
        self._refresh()
        lowered = message.lower()
        return session_id not in self._off and not any(phrase in lowered for phrase in self._never)

    def switch(self, session_id: str, on: bool) -> None:
        """Infer in this session, or do not."""
        self._refresh()
        self._off = [s for s in self._off if s != session_id][-_MOST_SESSIONS:]
        if not on:
            self._off.append(session_id)
        self._save()

    def never(self, phrase: str) -> None:
        """Infer nothing from messages that hold this phrase. Raises InputError for one that can't be used."""
        text = " ".join(phrase.lower().split())
        if not 3 <= len(text) <= _LONGEST_PHRASE:
            found = f"{len(text)} characters"
            raise InputError(f"a phrase of 3 to {_LONGEST_PHRASE} characters", found, 'such as "the deck"')
        if any(0xD800 <= ord(c) <= 0xDFFF for c in text):
            raise InputError("a phrase of text", repr(text[:80]), "leave the bytes out that are none")
        self._refresh()
        if len(self._never) >= _MOST_PHRASES:
            raise InputError(f"at most {_MOST_PHRASES} phrases", "one more", "forget some first")
        self._never = [*(p for p in self._never if p != text), text]
        self._save()

    def forget(self, phrase: str) -> None:
        """Drop a phrase. Raises InputError for one that is not kept."""
        text = " ".join(phrase.lower().split())
        self._refresh()
        if text not in self._never:
            kept = ", ".join(repr(p) for p in self._never) or "none"
            raise InputError("one of the phrases that are kept", phrase or "nothing", f"kept: {kept}")
        self._never.remove(text)
        self._save()

    def phrases(self) -> tuple[str, ...]:
        """The phrases that nothing is inferred from."""
        self._refresh()
        return tuple(self._never)

    def _implicit(self) -> bool:
        if self._setting is None:
            from .settings import chat_settings  # noqa: PLC0415 - with the first turn that would get something

            self._setting = chat_settings(self._home).routing.implicit
        return self._setting

    def _refresh(self) -> None:
        try:
            stamp = self._file.stat().st_mtime_ns
        except OSError:
            stamp = 0
        if stamp == self._stamp:
            return
        self._stamp = stamp
        self._off, self._never = [], []
        with suppress(OSError, ValueError, AttributeError):
            data = json.loads(self._file.read_text(encoding="utf-8"))
            self._off = [str(s) for s in data.get("off", [])]
            self._never = [str(p) for p in data.get("never", [])]

    def _save(self) -> None:
        folder = private_dir(self._file.parent)
        text = json.dumps({"off": self._off, "never": self._never}, ensure_ascii=False, indent=1)
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as new:
            new.write(text)
        Path(new.name).replace(self._file)
        self._stamp = self._file.stat().st_mtime_ns
