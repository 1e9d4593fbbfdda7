"""Where a store that can't be used just now becomes an error that tells what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ..core.errors import StoreError


@contextmanager
def store_troubles() -> Iterator[None]:
    """A block, or a function, that raises StoreError where the run store is locked, full or gone for the moment."""
    try:
        yield
    except _database_errors() as error:
        raise StoreError("a usable run store", str(error), "try again in a moment") from error


def _database_errors() -> tuple[type[Exception], ...]:
    """What a database raises; where nothing has loaded one, nothing does, and it is not loaded for this."""
    database = sys.modules.get("sqlite3")
    return (database.Error,) if database is not None else ()
