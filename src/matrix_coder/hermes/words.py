"""The team's words file of a HERMES_HOME, read once for a process."""

from __future__ import annotations

import logging
from pathlib import Path

from ..core.errors import InputError
from ..core.words import MOST_CHARS, TeamWords, parse_words, use_words
from ..engine.paths import hermes_home, state_dir

log = logging.getLogger("matrix_coder")


def words_file(home: Path | None = None) -> Path:
    """Where the file lies; it need not exist."""
    return state_dir(home or hermes_home()) / "words.toml"


def load_words(home: Path | None = None) -> TeamWords | None:
    """The team's words; None without a file. Raises InputError for a file that can't be used, naming it."""
    path = words_file(home)
    try:
        with path.open("rb") as file:
            raw = file.read(4 * MOST_CHARS + 1)
        return parse_words(raw.decode("utf-8-sig"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"a readable file {path}", error.strerror or str(error), "make it readable") from error
    except UnicodeDecodeError as error:
        raise InputError(f"UTF-8 in {path}", f"byte {error.start} that is not", "save it as UTF-8") from error
    except InputError as error:
        raise InputError(f"{error.expected} in {path}", error.found, error.remedy) from error


def apply_words(home: Path | None = None) -> str:
    """Route with the team's words from now on. A broken file is left out whole; the line that says why, else empty."""
    try:
        use_words(load_words(home))
    except InputError as error:
        use_words(None)
        return f"the words file is left out: {error}; then try: matrix-coder words check"
    return ""


def connect_words(home: Path | None = None) -> None:
    """The same for a chat, which must go on: what is wrong with the file is one line in the log."""
    told = apply_words(home)
    if told:
        log.warning("matrix_coder: %s", told)
