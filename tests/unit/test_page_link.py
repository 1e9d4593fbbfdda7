"""The link that makes the page appear for an installed package."""

from __future__ import annotations

from pathlib import Path

import pytest

import matrix_coder
from matrix_coder.core.errors import InputError
from matrix_coder.hermes.page_link import link_page

PACKAGE = Path(matrix_coder.__file__).resolve().parent


def test_link_when_there_is_none_then_made_and_the_manifest_found(tmp_path: Path) -> None:
    """The package appears below the home's plugins, with its dashboard manifest."""
    said = link_page(tmp_path)
    place = tmp_path / "plugins" / "matrix_coder"
    assert place.resolve() == PACKAGE
    assert (place / "dashboard" / "manifest.json").is_file()
    assert str(place) in said


def test_link_when_made_twice_then_nothing_changes(tmp_path: Path) -> None:
    """A second call says that the page is there, and leaves it."""
    link_page(tmp_path)
    before = (tmp_path / "plugins" / "matrix_coder").lstat()
    assert "already" in link_page(tmp_path)
    assert (tmp_path / "plugins" / "matrix_coder").lstat() == before


@pytest.mark.parametrize("kind", ["directory", "file", "link elsewhere", "dead link"])
def test_link_when_something_else_has_the_name_then_left_as_it_is(tmp_path: Path, kind: str) -> None:
    """What somebody else put there is never replaced; the error says what stands in the way."""
    place = tmp_path / "plugins" / "matrix_coder"
    place.parent.mkdir()
    other = tmp_path / "other"
    if kind == "directory":
        place.mkdir()
        (place / "mine.txt").write_text("mine")
    elif kind == "file":
        place.write_text("mine")
    else:
        if kind == "link elsewhere":
            other.mkdir()
        place.symlink_to(other)
    before = place.lstat()
    with pytest.raises(InputError, match="remove it"):
        link_page(tmp_path)
    assert place.lstat() == before


def test_link_when_the_home_can_not_be_written_then_told(tmp_path: Path) -> None:
    """A home that takes no directory is an error with a way out."""
    (tmp_path / "plugins").write_text("a file, not a directory")
    with pytest.raises(InputError, match="make it writable"):
        link_page(tmp_path)
