"""What a person has set up in a HERMES_HOME."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

from ..core.errors import InputError, ModelMissing
from ..core.render import counted
from ..engine.paths import state_dir
from .diagnosis import Diagnosis, Place, note, ok, problem, read_only, refused, unseen
from .kanban_board import HostBoard
from .kanban_file import BoardError, troubles
from .kanban_text import ASSIGNEE
from .model import require_model
from .page_link import NAME, PACKAGE
from .settings import Mirror, load_settings, read_config, section
from .words import load_words, words_file

_GB = 1 << 30
_ENABLE = f"hermes plugins enable {NAME} --no-allow-tool-override"


def home(place: Place) -> Diagnosis:
    """The home is a directory that can be written, and nobody else can look into what is ours."""
    expected = f"a Hermes home at {place.home} that can be written"
    way_out = "run `hermes setup`, or point HERMES_HOME at one"
    try:
        if not place.home.is_dir():
            return problem(expected, "no such directory", way_out)
        if not os.access(place.home, os.W_OK | os.X_OK):
            return problem(expected, "it is read-only", "make it writable, or point HERMES_HOME at one that is")
        for directory, others in ((place.home, 0o007), (state_dir(place.home), 0o077)):
            mode = directory.stat().st_mode & 0o777 if directory.is_dir() else 0
            if mode & others:
                return note(f"{directory} is open to others (mode {mode:o})", f"chmod 700 {directory}")
    except OSError as error:
        return problem(expected, error.strerror or str(error), way_out)
    return ok(f"{place.home}, mode {place.home.stat().st_mode & 0o777:o}")


def settings(place: Place) -> Diagnosis:
    """The settings can be used; where not, which key is wrong."""
    try:
        given = section(read_config(place.home), "plugins", "entries", NAME, "settings")
        load_settings(place.home)
    except InputError as error:
        return refused(error)
    return ok(
        f"valid: {', '.join(map(str, given))}" if isinstance(given, dict) and given else "nothing is set: the defaults"
    )


def words(place: Place) -> Diagnosis:
    """The team's words file can be used."""
    try:
        found = load_words(place.home)
    except InputError as error:
        return refused(error)
    return ok("none" if found is None else f"{len(found)} entries in {words_file(place.home)}")


def plugin(place: Place) -> Diagnosis:
    """The host loads this plugin."""
    try:
        config = read_config(place.home)
    except InputError:
        return unseen("see settings")
    enabled, disabled = section(config, "plugins", "enabled"), section(config, "plugins", "disabled")
    if isinstance(disabled, list) and NAME in disabled:
        return problem(f"{NAME} among the host's enabled plugins", "it is disabled", _ENABLE)
    if not isinstance(enabled, list) or NAME not in enabled:
        return problem(f"{NAME} among the host's enabled plugins", "it is not enabled", _ENABLE)
    return ok("enabled")


def model(place: Place) -> Diagnosis:
    """The host has a model to talk to. Nothing is sent to it."""
    try:
        read_config(place.home)
    except InputError:
        return unseen("see settings")
    # The host would make a home to look into.
    if not (place.home / "config.yaml").is_file():
        return problem("a model in the Hermes configuration", "no config.yaml", "run `hermes model` to choose one")
    try:
        return ok(require_model())
    except ModelMissing as error:
        return refused(error)
    except ImportError as error:
        return unseen(f"the host can't be loaded ({error})")


def board(place: Place) -> Diagnosis:
    """The Kanban board that cards go to is there and can be read."""
    try:
        wanted = load_settings(place.home).kanban
    except InputError:
        return unseen("see settings")
    if wanted.mirror is Mirror.OFF:
        return ok("no cards are kept (kanban.mirror: off)")
    try:
        slug = HostBoard(wanted.board).slug
        database = _board_file(slug)
    except BoardError as error:
        return problem("a Kanban board for the cards", str(error), "or set kanban.board, or kanban.mirror to off")
    told = f"board {slug!r}, kanban.mirror: {wanted.mirror}"
    if not database.exists():
        return ok(f"{told}; the first card makes {database}")
    try:
        with read_only(database) as db:
            (cards,) = db.execute("select count(*) from tasks where assignee = ?", (ASSIGNEE,)).fetchone()
    except (sqlite3.Error, OSError) as error:
        remedy = "`hermes kanban list` says more; runs go on without cards"
        return problem(f"a Kanban board at {database} that can be read", str(error), remedy)
    return ok(f"{told}, {counted(cards, 'card')} of ours")


def _board_file(slug: str) -> Path:
    with troubles():
        from hermes_cli import kanban_db  # noqa: PLC0415 - the host's

        return Path(kanban_db.kanban_db_path(board=slug))


def page(place: Place) -> Diagnosis:
    """The dashboard finds the page of this installation."""
    link = place.home / "plugins" / NAME
    try:
        if link.resolve() == PACKAGE:
            return ok(f"{link} is this installation's")
        if link.exists():
            return note(f"{link} is the page of another installation", "remove it, then: matrix-coder dashboard-link")
        if link.is_symlink():
            remedy = "remove it, then: matrix-coder dashboard-link"
            return problem(f"the page at {link}", f"a link to {link.readlink()}, which is gone", remedy)
    except (OSError, RuntimeError) as error:
        return problem(f"the page at {link}", str(error), "remove it, then: matrix-coder dashboard-link")
    return note("not in the dashboard", "matrix-coder dashboard-link puts it there")


def disk(place: Place) -> Diagnosis:
    """There is room for the records of runs."""
    try:
        existing = next(p for p in (place.home, *place.home.parents) if p.exists())
        return room(shutil.disk_usage(existing).free, existing)
    except OSError as error:
        return unseen(f"the disk of {place.home} tells nothing ({error})")


def room(free: int, directory: Path) -> Diagnosis:
    """The same of any number of free bytes."""
    told = f"{free / _GB:.1f} GB free at {directory}"
    return ok(told) if free >= _GB else note(told, "make room: runs keep trees, copies and outputs there")
