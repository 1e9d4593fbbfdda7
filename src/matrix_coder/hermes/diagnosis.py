"""What a look at one thing came to, and how it is told. Nothing here looks at anything."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path

from ..core.errors import MatrixError


class State(StrEnum):
    """How a thing is: as it should be, worth a word, or in the way of the work."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What is looked at: a HERMES_HOME, and the directory that a run would be started in."""

    home: Path
    directory: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What was found of one thing; of one that is not `ok` what to do, of a problem what was expected, too."""

    name: str = ""
    state: State
    found: str
    expected: str = ""
    remedy: str = ""

    def line(self) -> str:
        """The whole of it on one line."""
        told = f"expected {self.expected}; found {self.found}" if self.expected else self.found
        return f"{self.state:<7}  {self.name}: {'; '.join(filter(None, (told, self.remedy)))}"

    def data(self) -> dict[str, str]:
        """The same as plain data."""
        return {key: str(value) for key, value in asdict(self).items()}


Check = Callable[[Place], Diagnosis]


def ok(found: str) -> Diagnosis:
    """It is as it should be."""
    return Diagnosis(state=State.OK, found=_flat(found))


def note(found: str, remedy: str) -> Diagnosis:
    """It works, but somebody may want it otherwise; or it could not be looked at."""
    return Diagnosis(state=State.NOTE, found=_flat(found), remedy=_flat(remedy))


def problem(expected: str, found: str, remedy: str) -> Diagnosis:
    """It is in the way."""
    return Diagnosis(state=State.PROBLEM, found=_flat(found), expected=_flat(expected), remedy=_flat(remedy))


def refused(error: MatrixError) -> Diagnosis:
    """An error of ours as a problem."""
    return problem(error.expected, error.found, error.remedy)


def unseen(why: str) -> Diagnosis:
    """It could not be looked at because of something that has a line of its own."""
    return note("not looked at", why)


def named(name: str, diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis under the name of what was looked at."""
    return replace(diagnosis, name=name)


def _flat(text: str) -> str:
    return " ".join(text.split())


@contextmanager
def read_only(database: Path) -> Iterator[sqlite3.Connection]:
    """A connection that changes nothing, and leaves nothing beside the file. Raises sqlite3.Error, OSError.

    A database in write-ahead mode that nobody has open is read as a file that does not change: SQLite would make
    the two files of its log, and leave them there.
    """
    with database.open("rb") as file:
        write_ahead = file.read(20)[18:20] == b"\x02\x02"
    idle = write_ahead and not database.with_name(f"{database.name}-wal").exists()
    uri = f"{database.absolute().as_uri()}?{'immutable=1' if idle else 'mode=ro'}"
    with closing(sqlite3.connect(uri, uri=True, timeout=2.0)) as db:
        db.row_factory = sqlite3.Row
        yield db
