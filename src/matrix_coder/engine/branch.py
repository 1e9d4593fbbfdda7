"""What a unit changed, as commits on a branch in the repository of its checkout.

The checkout is a copy of the workspace in which a model has worked: its git configuration, hooks and links are foreign.
No git command reads that repository. The commits are made and packed through the engine's own record; the pack and the
branch are then put in their places as files, on a way that follows no link.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..core.errors import MatrixError
from .workspace import GitFailed, Trees

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_REFS = 1 << 25
_ID = re.compile(r"[0-9a-f]{40}")
_WHO = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Matrix Coder"), ("EMAIL", "matrix-coder@localhost"))
}


def commit(trees: Trees, branch: str, *, base: str, tree: str, message: str) -> str:
    """The id of a commit of `tree` on one of `base`, which stands on the checkout's HEAD, as `branch` of the checkout.

    A branch of that name is moved. Raises MatrixError or OSError where it can't be made.
    """
    repository = trees.workspace / ".git"
    if not os.path.lexists(repository):
        _make(repository)
    head, shallow = _head(repository), repository / "shallow"
    env = {**_WHO, "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(repository / "objects")}
    if shallow.is_file():
        env["GIT_SHALLOW_FILE"] = str(shallow)
    parent = head if head and _ask(trees, env, "cat-file", "-t", head, silent=True) == "commit" else ""
    first = _commit(trees, env, base, parent, f"The workspace when work began on {message}")
    last = _commit(trees, env, tree, first, message)
    _pack(trees, env, repository, last, parent)
    with _opened(repository, ("refs", "heads", *branch.split("/")[:-1]), make=True) as place:
        _write(place, branch.rpartition("/")[2], f"{last}\n".encode())
    return last


def _make(repository: Path) -> None:
    """An empty repository, for a checkout of a linked worktree, whose own one is elsewhere."""
    for path in ("objects/pack", "objects/info", "refs/heads", "refs/tags"):
        (repository / path).mkdir(parents=True)
    (repository / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
    (repository / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n", encoding="ascii")


def _head(repository: Path) -> str:
    """The commit that HEAD names, in whatever plain way; empty where it names none."""
    found = _text(repository / "HEAD").strip()
    name = found.removeprefix("ref: ")
    if name != found and ".." not in name:
        packed = re.search(rf"^([0-9a-f]{{40,64}}) {re.escape(name)}$", _text(repository / "packed-refs"), re.MULTILINE)
        found = _text(repository / name).strip() or (packed[1] if packed else "")
    if re.fullmatch(r"[0-9a-f]{64}", found) or (repository / "reftable").exists():
        raise GitFailed("a repository of the common format", f"another one in {repository}", "copy the files instead")
    return found if _ID.fullmatch(found) else ""


def _text(file: Path) -> str:
    with suppress(OSError):
        if file.is_file():
            with file.open("rb") as stream:
                return stream.read(_MAX_REFS).decode("utf-8", "replace")
    return ""


def _ask(trees: Trees, env: dict[str, str], *words: str, stdin: str = "", silent: bool = False) -> str:
    try:
        return trees.ask(*words, stdin=stdin.encode(), env=env).decode("utf-8", "replace").strip()
    except MatrixError:
        if silent:
            return ""
        raise


def _commit(trees: Trees, env: dict[str, str], tree: str, parent: str, message: str) -> str:
    return _ask(trees, env, "commit-tree", tree, "-m", message, *(("-p", parent) if parent else ()))


def _pack(trees: Trees, env: dict[str, str], repository: Path, last: str, parent: str) -> None:
    """Put what `last` holds and `parent` does not into the repository, as a pack."""
    folder = trees.git_dir.parent / "packed"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    revs = f"{last}\n" + (f"^{parent}\n" if parent else "")
    name = _ask(trees, env, "pack-objects", "--quiet", "--revs", str(folder / "pack"), stdin=revs)
    with _opened(repository, ("objects", "pack")) as place:
        for end in ("pack", "idx"):
            file = f"pack-{name}.{end}"
            os.rename(folder / file, file, dst_dir_fd=place)
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _opened(root: Path, names: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
    """A directory below `root`, on a way of directories alone. Raises OSError where a link or a file is in it."""
    place = os.open(root, _DIRECTORY)
    try:
        for name in names:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=place)
            below = os.open(name, _DIRECTORY, dir_fd=place)
            os.close(place)
            place = below
        yield place
    finally:
        os.close(place)


def _write(place: int, name: str, data: bytes) -> None:
    fresh = f"{name}.lock"
    with suppress(FileNotFoundError):
        os.unlink(fresh, dir_fd=place)
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644, dir_fd=place)
    with os.fdopen(fd, "wb") as sink:
        sink.write(data)
    os.rename(fresh, name, src_dir_fd=place, dst_dir_fd=place)


def _quoted(path: Path) -> str:
    """A path as git takes it in a list of them."""
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'
