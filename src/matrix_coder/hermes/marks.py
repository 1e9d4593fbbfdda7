"""The key that seals this installation's blocks: one small file in the Hermes home, made on first use."""

from __future__ import annotations

import logging
import os
import secrets
from pathlib import Path

from hermes_constants import get_hermes_home

log = logging.getLogger("matrix_coder")
KEY_BYTES = 32
FOLDER, NAME = "matrix_coder", "marks.key"
_known: dict[Path, bytes] = {}


def key() -> bytes:
    """The key of the Hermes home in use.

    Where the home can't be written, a key of this process alone: its blocks are still taken out in this
    process, and a home that can't be written stores no conversation that a later process could replay.
    """
    home = Path(get_hermes_home())
    if home not in _known:
        _known[home] = _stored(home / FOLDER)
    return _known[home]


def _stored(folder: Path) -> bytes:
    path = folder / NAME
    try:
        return _read(path) or _created(folder, path)
    except OSError as error:
        log.warning(
            "matrix_coder: expected a writable %s for the key of its marks; found %s; "
            "using a key of this process alone",
            folder,
            error.strerror or error,
        )
        return secrets.token_bytes(KEY_BYTES)


def _read(path: Path) -> bytes:
    """The stored key; empty when there is none yet or the file holds something else."""
    try:
        text = path.read_text(encoding="ascii").strip()
        found = bytes.fromhex(text)
    except (FileNotFoundError, ValueError):
        return b""
    return found if len(found) == KEY_BYTES else b""


def _created(folder: Path, path: Path) -> bytes:
    """A new key, or the one that another process stored first: a link appears whole or not at all."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = folder / f".{NAME}.{os.getpid()}.{secrets.token_hex(4)}"
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as out:
            out.write(secrets.token_hex(KEY_BYTES) + "\n")
        try:
            path.hardlink_to(part)
        except FileExistsError:
            if not _read(path):  # damaged: no block of the old key can be recognised any more
                part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return _read(path)
