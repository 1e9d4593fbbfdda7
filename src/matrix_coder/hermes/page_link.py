"""Making the dashboard's page appear where the package was installed by pip: the host scans directories only."""

from __future__ import annotations

from pathlib import Path

from ..core.errors import InputError

PACKAGE = Path(__file__).resolve().parent.parent
NAME = "matrix_coder"
_HINT = f" (the tab needs `hermes plugins enable {NAME}`)"


def link_page(home: Path) -> str:
    """Link this package into the home's plugins, once; what was done, in one line.

    Raises InputError where something else has that name: it is left as it is.
    """
    place = home / "plugins" / NAME
    if place.is_symlink() or place.exists():
        return _there_already(place)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(place.parent, error) from error
    try:
        place.symlink_to(PACKAGE, target_is_directory=True)
    except FileExistsError:
        return _there_already(place)
    except OSError as error:
        raise _unwritable(place.parent, error) from error
    return f"linked {place} to {PACKAGE}; restart the dashboard to see its Matrix tab{_HINT}"


def _there_already(place: Path) -> str:
    if place.resolve() == PACKAGE:
        return f"{place} is the page of this installation already{_HINT}"
    if place.is_symlink() and not place.exists():
        raise InputError(f"no other {place}", f"a link to {place.readlink()}, which is gone", "remove it and try again")
    kind = f"a link to {place.resolve()}" if place.is_symlink() else "a plugin of its own"
    raise InputError(f"no other {place}", kind, "remove it, or use the page that it brings")


def _unwritable(directory: Path, error: OSError) -> InputError:
    return InputError(f"a writable directory {directory}", error.strerror or str(error), "make it writable")
