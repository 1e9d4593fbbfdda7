"""A unified diff as git writes it, taken apart by file. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPED = re.compile(r"\\([0-7]{3}|.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FilePatch:
    """One file's part of a diff."""

    path: str
    old_path: str
    change: Literal["added", "deleted", "changed", "mode"]
    added: int
    removed: int
    patch: str


def parse(text: str) -> Iterator[FilePatch]:
    """The files of a unified diff as git writes it.

    A line of a hunk begins with a blank, `+`, `-` or a backslash, so one that begins with `diff --git` opens a file.
    """
    starts = [m.start() for m in re.finditer(r"^diff --git ", text, re.MULTILINE)]
    for start, end in zip(starts, [*starts, len(text)][1:], strict=True):
        yield _parse_file(text[start:end])


def _parse_file(section: str) -> FilePatch:
    hunks = section.find("\n@@ ")
    head = section if hunks < 0 else section[:hunks]
    patch = "" if hunks < 0 else section[hunks + 1 :]
    lines = head.split("\n")
    old = next((_name(x[4:], "a/") for x in lines if x.startswith("--- ")), "")
    new = next((_name(x[4:], "b/") for x in lines if x.startswith("+++ ")), "")
    same = _same_name(lines[0].removeprefix("diff --git "))
    body = patch.split("\n")
    added = sum(1 for x in body if x.startswith("+"))
    removed = sum(1 for x in body if x.startswith("-"))
    return FilePatch(new or old or same, old or same, _change(lines, patch), added, removed, patch)


def _change(head: list[str], patch: str) -> Literal["added", "deleted", "changed", "mode"]:
    if any(x.startswith("new file mode") for x in head):
        return "added"
    if any(x.startswith("deleted file mode") for x in head):
        return "deleted"
    return "changed" if patch else "mode"


def _name(written: str, prefix: str) -> str:
    """The path of a `---` or `+++` line; empty for /dev/null."""
    written = written.removesuffix("\t")
    name = _unquoted(written)
    return "" if name == "/dev/null" else name.removeprefix(prefix)


def _same_name(both: str) -> str:
    """The path in `a/PATH b/PATH`, where the two are the same."""
    if both.startswith('"'):
        return _unquoted(both[: len(both) // 2]).removeprefix("a/")
    return both[: len(both) // 2].removeprefix("a/")


def _unquoted(written: str) -> str:
    if not (written.startswith('"') and written.endswith('"') and len(written) > 1):
        return written
    return _ESCAPED.sub(_unescape, written[1:-1])


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    return chr(int(code, 8)) if len(code) == 3 else _ESCAPES.get(code, code)
