"""Where a command may not write, when that is more than one place: in the terms that the guard takes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """The guard's `protect` and `keep`: nothing below `protect` may be written but for what lies below `keep`.

    `shut` are the places themselves that are to stay as they are.
    """

    protect: Path
    keep: tuple[Path, ...]
    shut: tuple[Path, ...]

    def environment(self, env: Mapping[str, str], temporary: Path) -> dict[str, str]:
        """What a command under it needs: a directory for temporary files where it could make none in the usual one.

        No new entry can be made in a directory that leads to a place that is shut.
        """
        usual = Path(env.get("TMPDIR") or tempfile.gettempdir()).resolve()
        if not any(place.is_relative_to(usual) for place in self.shut):
            return {}
        temporary.mkdir(parents=True, exist_ok=True)
        return {"TMPDIR": str(temporary)}


def confine(places: Sequence[Path], *, own: Sequence[Path]) -> Confinement:
    """Shut these places, but for what lies below `own`; all that lies beside them stays open."""
    shut = tuple(place.resolve() for place in places)
    above = Path(os.path.commonpath(shut))
    return Confinement(protect=above, keep=(*_beside(above, shut), *own), shut=shut)


def _beside(directory: Path, shut: Sequence[Path]) -> Iterator[Path]:
    """What lies below a directory, as far up as it leads to nothing that is shut."""
    if directory in shut:
        return
    with suppress(OSError):
        for entry in directory.iterdir():
            if any(place.is_relative_to(entry) for place in shut):
                yield from _beside(entry, shut)
            else:
                yield entry
