"""The guard against gamed tests, over two recorded trees: reads what it needs of them and lets the core judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from ..core import tamper_files as files
from ..core.tamper import Exemption, TamperReport
from ..core.tamper import examine as examine_texts
from ..core.tamper_goal import read_goal
from ..core.tamper_options import CONFIG_FILES
from . import runners
from .workspace import Trees

# Larger files are no code that a person wrote; they are compared by their first part.
_LARGEST = 1_000_000
# How many unchanged tests are read when something that serves them all has changed.
_NEIGHBOURS = 600
_ZERO = "0" * 40
_LINK = "160000"


@dataclass(frozen=True, slots=True)
class _Entry:
    """A path that differs between two trees: the ids of its contents, empty where it does not exist."""

    path: str
    before: str
    after: str


def watch(trees: Trees) -> None:
    """Keep what the programs and packages that run the checks are now; call it when a run opens.

    They lie outside of the recorded trees. `examine` compares with what was kept, if anything was.
    """
    runners.watch(trees.workspace, trees.git_dir.parent)


def examine(trees: Trees, before: str, after: str, *, goal: str, checks: tuple[str, ...] = ()) -> TamperReport:
    """What the change from one recorded tree to another did to the tests, and what of it the goal did ask for and why.

    Findings come worst first; only those with `certain` are accusations. `checks` are the run's check commands.
    """
    told = TamperReport() if before == after else _compared(trees, before, after, goal, checks)
    reading = read_goal(goal)
    findings, exempted = [*told.findings], [*told.exempted]
    for finding in runners.changes(trees.workspace, trees.git_dir.parent):
        reason = reading.asked(finding, frozenset())
        if reason:
            exempted.append(Exemption(finding=finding, reason=reason))
        else:
            findings.insert(0, finding)
    return TamperReport(findings=tuple(findings), exempted=tuple(exempted))


def _compared(trees: Trees, before: str, after: str, goal: str, checks: tuple[str, ...]) -> TamperReport:
    entries = _changed(trees, before, after)
    neighbours = _neighbours(trees, before, {e.path for e in entries}) if _needs_neighbours(entries) else {}
    same = {**neighbours, **_roots(trees, before, {e.path for e in entries})}
    contents = _contents(trees, {i for e in entries for i in (e.before, e.after) if i} | set(same.values()))
    unchanged = {_shown(path): contents[i] for path, i in same.items() if i in contents}
    old = {_shown(e.path): contents[e.before] for e in entries if e.before in contents}
    new = {_shown(e.path): contents[e.after] for e in entries if e.after in contents}
    return examine_texts({**unchanged, **old}, {**unchanged, **new}, goal=goal, checks=checks)


def _shown(path: str) -> str:
    """The path as text that can be stored, whatever bytes its name has."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _changed(trees: Trees, before: str, after: str) -> list[_Entry]:
    out = trees.ask("diff-tree", "-r", "-z", "--no-renames", "--raw", before, after)
    parts = out.decode("utf-8", "surrogateescape").split("\0")
    found = []
    for header, path in zip(parts[::2], parts[1::2], strict=False):
        old_mode, new_mode, old, new, _ = header.lstrip(":").split(" ")
        sides = (("" if i == _ZERO or m == _LINK else i) for m, i in ((old_mode, old), (new_mode, new)))
        found.append(_Entry(path, *sides))
    return found


def _needs_neighbours(entries: Iterable[_Entry]) -> bool:
    """Whether something changed that tests in files which did not change depend on."""
    return any(
        e.path in CONFIG_FILES
        or PurePosixPath(e.path).name in ("conftest.py", ".gitignore")
        or (
            files.is_test_side(e.path)
            and files.language(e.path) == "python"
            and not files.found(e.path, files.Collection())
        )
        for e in entries
    )


def _neighbours(trees: Trees, tree: str, changed: set[str]) -> dict[str, str]:
    listing = _listing(trees.ask("ls-tree", "-r", "-z", tree))
    tests = [p for p in sorted(listing) if p not in changed and files.is_test_side(p)]
    return {p: listing[p] for p in tests[:_NEIGHBOURS]}


def _roots(trees: Trees, tree: str, changed: set[str]) -> dict[str, str]:
    """Configuration at the root that did not change and says what is a test."""
    listing = _listing(trees.ask("ls-tree", "-z", tree))
    named = {*CONFIG_FILES, "Makefile", "makefile", "package.json"}
    return {p: i for p, i in listing.items() if p in named and p not in changed}


def _listing(out: bytes) -> dict[str, str]:
    """Path to content id, of what `ls-tree -z` says about plain files."""
    entries: dict[str, str] = {}
    for line in out.decode("utf-8", "surrogateescape").split("\0"):
        header, _, path = line.partition("\t")
        words = header.split()
        if len(words) == 3 and words[1] == "blob":
            entries[path] = words[2]
    return entries


def _contents(trees: Trees, ids: Iterable[str]) -> Mapping[str, bytes]:
    """Contents by id, each cut at a size that no hand-written file reaches."""
    wanted = sorted(ids)
    out = trees.ask("cat-file", "--batch", "--buffer", stdin="\n".join(wanted).encode()) if wanted else b""
    contents: dict[str, bytes] = {}
    at = 0
    for one in wanted:
        end = out.index(b"\n", at)
        header = out[at:end].split()
        at = end + 1
        if len(header) == 3:
            size = int(header[2])
            contents[one] = out[at : at + min(size, _LARGEST)]
            at += size + 1
    return contents
