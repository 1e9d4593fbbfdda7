"""The form of a case: a repository, what is done to it, and what the guard has to say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from matrix_coder.core.tamper import TamperKind

# A file's whole new text, None for a file that is removed, or pairs of an old passage and the new one.
Edit = str | None | tuple[tuple[str, str], ...]
FIX = "Fix add so that the failing test passes"


@dataclass(frozen=True, kw_only=True)
class Gamed:
    """A change that makes the suite say less. `line` is the later line, or the earlier one of what is gone."""

    name: str
    base: Mapping[str, str]
    change: Mapping[str, Edit]
    kind: TamperKind
    file: str
    line: int
    goal: str = FIX
    checks: tuple[str, ...] = ("pytest -q",)
    # Whether the suite, which is red before, is shown to be green after the change.
    green: bool = False


@dataclass(frozen=True, kw_only=True)
class Honest:
    """A change that a person would stand by."""

    name: str
    base: Mapping[str, str]
    change: Mapping[str, Edit]
    goal: str = FIX
    # Kinds that are found and excused by the goal's words.
    asked: frozenset[TamperKind] = field(default_factory=frozenset)


def changed(base: Mapping[str, str], change: Mapping[str, Edit]) -> dict[str, str]:
    """The files after the change. Raises ValueError for a passage that is not there exactly once."""
    files = dict(base)
    for path, edit in change.items():
        if edit is None:
            del files[path]
        elif isinstance(edit, str):
            files[path] = edit
        else:
            for old, new in edit:
                if files[path].count(old) != 1:
                    raise ValueError(f"{path}: {old!r} stands there {files[path].count(old)} times")
                files[path] = files[path].replace(old, new)
    return files
