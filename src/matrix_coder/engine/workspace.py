"""Where a run works, and what its tree looked like at each point.

Trees are recorded with a git directory of the engine's own that has the workspace as its work tree. The
repository's own `.git` is never read by these commands: its hooks, filters, attributes, drivers and index
belong to whoever wrote them.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..core.errors import MatrixError, WorkspaceRefused
from .paths import remove_all

# Left out of every tree: what interpreters and test runners leave behind when they merely run.
_CACHES = (
    "__pycache__/",
    "*.pyc",
    ".pytest_cache/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".hypothesis/",
    "node_modules/",
)

# Takes precedence over any .gitattributes in the tree: bytes go in and out as they are.
_ATTRIBUTES = "* -text -filter -ident !diff !merge -working-tree-encoding\n"

_CONFIG = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.autocrlf=false",
    "core.safecrlf=false",
    "core.excludesFile=/dev/null",
    "core.attributesFile=/dev/null",
    "core.quotePath=false",
    "gc.auto=0",
    "core.protectHFS=false",
    "core.protectNTFS=false",
    "protocol.allow=never",
    "advice.addEmbeddedRepo=false",
)
_GIT_SECONDS = 300
_Fds = tuple[int, ...]
# What git calls a nested repository that it knows by its id alone.
_LINK_MODE = "160000"
# The id of an empty file, in every repository.
_EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


class GitFailed(MatrixError):
    """The git binary did not do what it was asked."""

    code = "git"


def find_workspace(path: Path) -> Path:
    """The root of the repository that holds `path`. Raises WorkspaceRefused, with the way out."""
    try:
        # RuntimeError: a home of nobody, a circle of links; OSError: a name too long, a place that is shut.
        start = path.expanduser().resolve()
        is_directory = start.is_dir()
    except (RuntimeError, OSError, ValueError):
        start, is_directory = path, False
    if not is_directory:
        raise WorkspaceRefused(
            "a directory inside a git repository", f"{path} (no such directory)", "name one that exists"
        )
    root = next((p for p in (start, *start.parents) if (p / ".git").exists()), None)
    if root is None:
        raise WorkspaceRefused(
            "a directory inside a git repository", str(path), f"run `git init {start}` or name a repository"
        )
    if root in (Path("/"), Path.home().resolve()):
        raise WorkspaceRefused("a project's own directory", f"{root}", "runs never work in / or in the home directory")
    return root


class Trees:
    """The record of a workspace's trees, kept in `store` (a directory outside the workspace).

    With `origin` it is the record of a copy of that workspace: it knows the same files, and its trees can be read
    and restored through either of the two.
    """

    def __init__(self, workspace: Path, store: Path, *, origin: Trees | None = None) -> None:
        self.workspace = workspace
        self.git_dir = store / "trees.git"
        self._origin = origin
        self._last = ""
        self._last_at = 0.0
        # What is nested is looked for before the first record; later git itself tells when it meets some.
        self._looked = False
        self._stats: dict[tuple[str, str], str] = {}
        # Which index the last tree was written from.
        self._written: tuple[tuple[int, int, int] | None, str] = None, ""
        self._held = threading.local()
        if not (self.git_dir / "ready").exists():
            self.git_dir.parent.mkdir(parents=True, exist_ok=True)
            with self._alone():
                self._create()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """While this lasts, no other thread or process writes to this record: each may look at a run that is live."""
        fd = os.open(self.git_dir.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            # Git holds on to it, too: one that outlives its killed engine is waited for.
            self._held.fds = (fd,)
            yield
        finally:
            self._held.fds = ()
            os.close(fd)

    def _create(self) -> None:
        if (self.git_dir / "ready").exists():
            return
        template = self.git_dir.parent / "empty-template"
        template.mkdir(exist_ok=True)
        command = ["git", "init", "--quiet", "--bare", f"--template={template}", "--", str(self.git_dir)]
        _run(command, cwd=self.git_dir.parent, env=self._environment(with_repository=False))
        # Nothing refers to the trees but the run store: whoever tidies up in here may not take them for waste.
        with (self.git_dir / "config").open("a", encoding="utf-8") as config:
            config.write("[gc]\n\tauto = 0\n\tpruneExpire = never\n")
        info = self.git_dir / "info"
        if self._origin is not None:
            shutil.copytree(self._origin.git_dir / "info", info, dirs_exist_ok=True)
            shutil.copyfile(self._origin.git_dir / "index", self.git_dir / "index")
            (self.git_dir / "ready").touch()
            return
        info.mkdir(exist_ok=True)
        own = self.workspace / ".git" / "info" / "exclude"
        kept = own.read_text(encoding="utf-8", errors="replace") if own.is_file() else ""
        (info / "exclude").write_text(kept + "\n" + "\n".join(_CACHES) + "\n", encoding="utf-8")
        (info / "attributes").write_text(_ATTRIBUTES, encoding="utf-8")
        self._add_tracked()
        (self.git_dir / "ready").touch()

    def _add_tracked(self) -> None:
        """Take in the files that the repository tracks although it ignores them.

        Their names come from a copy of its index, read with our own configuration; an index that can't be
        read names none.
        """
        copy = self.git_dir / "their-index"
        with contextlib.suppress(OSError, GitFailed):
            index = _git_dir(self.workspace) / "index"
            if not index.is_file():
                return
            shutil.copyfile(index, copy)
            env = self._environment() | {"GIT_INDEX_FILE": str(copy)}
            listing = ["git", "ls-files", "-z", "--cached", "--ignored", "--exclude-standard"]
            names = [n for n in _run(listing, cwd=self.workspace, env=env).split("\0") if n and not is_cache(n)]
            present = [n for n in names if (self.workspace / n).is_symlink() or (self.workspace / n).is_file()]
            if present:
                copy.write_bytes(os.fsencode("\0".join(present)))
                self._git(
                    "--literal-pathspecs", "add", "--force", f"--pathspec-from-file={copy}", "--pathspec-file-nul"
                )

    def _environment(self, *, with_repository: bool = True) -> dict[str, str]:
        env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.git_dir.parent),
            "LC_ALL": "C.UTF-8",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
        }
        if with_repository:
            env |= {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(self.workspace)}
            if self._origin is not None:
                env["GIT_OBJECT_DIRECTORY"] = str(self._origin.git_dir / "objects")
        return env

    def _git(self, *arguments: str, silent: bool = False, stdin: str = "") -> str:
        config = [x for c in _CONFIG for x in ("-c", c)]
        words, sent, fds = ["git", *config, *arguments], os.fsencode(stdin), getattr(self._held, "fds", ())
        return _run(words, cwd=self.workspace, env=self._environment(), stdin=sent, silent=silent, fds=fds)

    def ask(self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> bytes:
        """What a git command says, as bytes, that leaves the workspace and what is recorded of it alone."""
        config = [x for c in _CONFIG for x in ("-c", c)]
        env = self._environment() | dict(env or {})
        out = _run(["git", *config, *arguments], cwd=self.workspace, env=env, stdin=stdin)
        return out.encode("utf-8", "surrogateescape")

    def record(self) -> str:
        """The id of the tree that the workspace holds now, untracked files included, ignored files left out."""
        with self._alone():
            return self._record()

    def _record(self) -> str:
        # A recorder that was killed may have left git's own lock; nobody else is at work here.
        with contextlib.suppress(FileNotFoundError):
            (self.git_dir / "index.lock").unlink()
        if not (self._looked and self._add_plainly()):
            self._drop_links()
            self._open_nested()
            self._git("add", "--all", "--", ".")
            self._looked = True
        # Git replaces its index when anything in it changes, and only then.
        if self._written[0] is None or self._written[0] != self._index():
            tree = self._git("write-tree").strip()
            self._written = self._index(), tree
        tree = self._written[1]
        self._last, self._last_at = tree, time.monotonic()
        return tree

    def _index(self) -> tuple[int, int, int] | None:
        try:
            found = (self.git_dir / "index").stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def last(self, *, within_s: float = math.inf) -> str:
        """The tree that was recorded last, in so many seconds; what is now where something of ours has worked since."""
        known = self._last and time.monotonic() - self._last_at <= within_s
        return self._last if known else self.record()

    def worked_on(self) -> None:
        """Something of ours has worked on the workspace: what was recorded last may not be what is there."""
        self._last = ""

    def _add_plainly(self) -> bool:
        """Take everything in with one command; False where git had anything to say, as it has of a nested repository.

        It has then taken in the repository's id, or nothing, and the long way has to be gone.
        """
        try:
            self._git("add", "--all", "--", ".", silent=True)
        except GitFailed:
            return False
        return True

    def _drop_links(self) -> None:
        """Forget nested repositories that were taken in by their id alone."""
        listing = self._git("ls-files", "--stage", "-z").split("\0")
        links = [entry.partition("\t")[2] for entry in listing if entry.startswith(_LINK_MODE)]
        if links:
            self._git("update-index", "--force-remove", "-z", "--stdin", stdin="\0".join(links))

    def _open_nested(self) -> None:
        """Make git take nested repositories for the directories that they are.

        It would record a nested repository as one id and not look into it, or refuse it; where its index knows
        a file inside, it records the files. The file named here does not exist, so no tree ever holds it.
        """
        opened: set[str] = set()
        while nested := {p for p in self._others() if p.endswith("/")} - opened:
            for path in nested:
                self._git("update-index", "--add", "--cacheinfo", f"100644,{_EMPTY},{path}.matrix-coder")
            opened |= nested

    def _others(self) -> list[str]:
        return self._git("ls-files", "--others", "--exclude-standard", "-z").split("\0")

    def changed(self, before: str, after: str) -> tuple[str, ...]:
        """The paths that differ between two recorded trees, sorted."""
        if before == after:
            return ()
        out = self._git("diff-tree", "-r", "-z", "--no-renames", "--name-only", before, after)
        return tuple(sorted(_printable(p) for p in out.split("\0") if p))

    def changed_raw(self, before: str, after: str) -> list[str]:
        """The same paths as git and the file system know them, for handing back to `restore`."""
        out = self._git("diff-tree", "-r", "-z", "--no-renames", "--name-only", before, after)
        return sorted(p for p in out.split("\0") if p)

    def restore(self, tree: str, paths: Sequence[str]) -> None:
        """Make these paths what they are in a recorded tree; what is not in it is removed."""
        if not paths:
            return
        self.worked_on()
        words = ("--literal-pathspecs", "restore", f"--source={tree}", "--staged", "--worktree", "--no-overlay")
        with self._alone():
            listing = self.git_dir / "to-restore"
            listing.write_bytes(os.fsencode("\0".join(paths)))
            self._git(*words, f"--pathspec-from-file={listing}", "--pathspec-file-nul")

    def diff(self, before: str, after: str) -> str:
        """The unified diff between two recorded trees."""
        return self._git("diff-tree", "-r", "-p", "--no-ext-diff", "--no-textconv", "--no-color", before, after)

    def write_diff(self, before: str, after: str, file: Path) -> None:
        """The unified diff between two recorded trees, written to a file as it comes; binaries are only named."""
        words = ["diff-tree", "-r", "-p", "--no-ext-diff", "--no-textconv", "--no-color", before, after]
        config = [x for c in _CONFIG for x in ("-c", c)]
        with file.open("wb") as sink:
            done = subprocess.run(
                ["git", *config, *words],
                cwd=self.git_dir,
                env=self._environment(),
                stdout=sink,
                stderr=subprocess.DEVNULL,
                timeout=_GIT_SECONDS,
                check=False,
            )
        if done.returncode:
            raise GitFailed("a diff of two recorded trees", f"exit {done.returncode}", f"look at {self.git_dir}")

    def stat(self, before: str, after: str) -> str:
        """The diff between two recorded trees as a short table of files and line counts."""
        if before == after:
            return ""
        if (before, after) not in self._stats:
            out = self._git("diff-tree", "-r", "--stat=100", "--no-color", before, after)
            # Only the newest is asked for again.
            self._stats = {(before, after): _printable(out).rstrip()}
        return self._stats[before, after]


def throw_away_copy(workspace: Path, target: Path) -> Path:
    """A copy of the workspace, everything in it included, that a read-only step may do anything to."""
    remove_all(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(GitFailed):
        # A file that vanishes while it is copied, or that can't be read, is no reason not to look at the others.
        _run(["cp", "--archive", "--reflink=auto", "--", str(workspace), str(target)], cwd=target.parent, env=None)
    if not target.is_dir():
        raise GitFailed(f"a copy of {workspace}", f"none at {target}", "check the disk's space")
    link = target / ".git"
    if link.is_symlink() or link.is_file():
        # A linked worktree or submodule: git commands in the copy would write into the original's directory.
        link.unlink()
    return target


def _git_dir(workspace: Path) -> Path:
    """Where the repository keeps its own index: `.git`, or where a linked worktree's file points."""
    own = workspace / ".git"
    if own.is_file():
        return workspace / own.read_text(encoding="utf-8", errors="replace").removeprefix("gitdir:").strip()
    return own


def is_cache(name: str) -> bool:
    """Whether a path is what interpreters and test runners leave behind when they merely run."""
    folders = {c.rstrip("/") for c in _CACHES if c.endswith("/")}
    return name.endswith(".pyc") or not folders.isdisjoint(name.split("/"))


def _printable(text: str) -> str:
    """Text with the bytes that are no UTF-8, which file names may hold, written out as escapes."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def line_count(workspace: Path, file: str) -> int | None:
    """How many lines a file of the workspace has; None when there is no such file inside it."""
    try:
        # The name is a model's: it may be no name at all, too long, or a circle of links.
        path = (workspace / file).resolve()
        if not path.is_relative_to(workspace.resolve()) or not path.is_file():
            return None
        with path.open("rb") as stream:
            return sum(chunk.count(b"\n") for chunk in iter(lambda: stream.read(1 << 16), b"")) + 1
    except (OSError, ValueError, RuntimeError):
        return None


def _run(
    command: list[str],
    *,
    cwd: Path,
    env: dict[str, str] | None,
    stdin: bytes = b"",
    silent: bool = False,
    fds: _Fds = (),
) -> str:
    """What the command prints; with `silent` a word on its standard error is a failure, too. Raises GitFailed."""
    try:
        done = subprocess.run(
            command, cwd=cwd, env=env, input=stdin, capture_output=True, timeout=_GIT_SECONDS, pass_fds=fds, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        found = f"no {command[0]} on PATH" if isinstance(error, FileNotFoundError) and cwd.is_dir() else str(error)
        remedy = "check that it is installed" if cwd.is_dir() else f"{cwd} is gone"
        raise GitFailed(f"`{command[0]}` to run", found, remedy) from error
    if done.returncode or (silent and done.stderr):
        words = done.stderr.decode("utf-8", "replace").strip()[-400:]
        raise GitFailed(
            f"`{' '.join(command[:1] + command[-4:])}` to succeed",
            words or f"exit {done.returncode}",
            "see the message",
        )
    return done.stdout.decode("utf-8", "surrogateescape")
