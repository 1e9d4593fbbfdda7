"""A clock that moves only when it is told to."""

from __future__ import annotations


class ManualClock:
    """Seconds since the epoch that a test advances by hand. Call it to read it."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> float:
        """The new time, `seconds` later."""
        self.now += seconds
        return self.now

    def sleep(self, seconds: float) -> None:
        """Returns at once, with the clock moved."""
        self.advance(seconds)
