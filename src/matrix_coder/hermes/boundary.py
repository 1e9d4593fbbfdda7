"""The one place that catches everything: around the host's callbacks, so that a fault costs a persona only."""

from __future__ import annotations

import functools
import logging
import secrets
from collections import Counter
from collections.abc import Callable
from typing import ParamSpec, TypeVar

log = logging.getLogger("matrix_coder")
failures: Counter[str] = Counter()

P = ParamSpec("P")
R = TypeVar("R")


def boundary(forget: Callable[..., None]) -> Callable[[Callable[P, R | None]], Callable[P, R | None]]:
    """A callback that never raises: on a fault it forgets the turn, logs one line, counts, and gives None.

    `forget` gets the callback's own arguments and must not raise. The line holds an id to search for.
    """

    def around(callback: Callable[P, R | None]) -> Callable[P, R | None]:
        @functools.wraps(callback)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R | None:
            try:
                return callback(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - the host's turn must go on, whatever we did wrong
                forget(*args, **kwargs)
                _told(callback.__name__, error)
                return None

        return guarded

    return around


def _told(name: str, error: Exception) -> None:
    failures[name] += 1
    what = " ".join(str(error).split())[:300]
    log.error("matrix_coder: %s failed [%s] %s: %s", name, secrets.token_hex(4), type(error).__name__, what)
    log.debug("matrix_coder: %s failed", name, exc_info=error)
