"""A goal cut into units: what a plan may look like, which units would touch the same files, what each came to.

Two units are apart only if no path can belong to both, whether or not it exists yet: a pattern stands for every
path that it could ever match, a directory for all that is below it, and whoever owns a manifest also owns the
lock file that a tool rewrites with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import PurePosixPath

from .definition import READ_ONLY_ROLES
from .models import Evidence, Unit
from .names import Role

MAX_UNITS = 20
MAX_FILES = 200
MAX_GOAL = 4_000
MAX_NAME = 40

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_SHOWN = 5

# The lock files that tools rewrite when they read the manifest beside or below them.
LOCKS: Mapping[str, tuple[str, ...]] = {
    "package.json": (
        *("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml"),
        *("bun.lock", "bun.lockb", "deno.lock"),
    ),
    "pyproject.toml": ("poetry.lock", "uv.lock", "pdm.lock", "pylock.toml"),
    "Pipfile": ("Pipfile.lock",),
    "go.mod": ("go.sum", "go.work.sum"),
    "Cargo.toml": ("Cargo.lock",),
    "Gemfile": ("Gemfile.lock",),
    "composer.json": ("composer.lock",),
    "mix.exs": ("mix.lock",),
    "pubspec.yaml": ("pubspec.lock",),
    "flake.nix": ("flake.lock",),
}
_SOURCE = re.compile(r"\.(?:test|spec)\.[cm]?[jt]sx?$")


class UnitsInvalid(ValueError):
    """The plan's units can't be worked on; the message says what was expected."""


class UnitState(StrEnum):
    """What a unit came to. `READY` and `MERGING` are on the way; every other is its end."""

    READY = "ready"
    MERGING = "merging"
    MERGED = "merged"
    DONE = "done"
    EMPTY = "empty"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Two units that would touch the same files, and why."""

    first: str
    second: str
    reason: str

    def __str__(self) -> str:
        return f"{self.first} and {self.second}: {self.reason}"


def reads_only(unit: Unit) -> bool:
    """Whether the unit looks into a topic and changes nothing."""
    return unit.role in READ_ONLY_ROLES


def parse_units(raw: object) -> tuple[Unit, ...]:
    """The units that a plan handed in. Raises `UnitsInvalid` with one line that the specialist can act on."""
    if not isinstance(raw, list):
        raise UnitsInvalid(f"expected units to be a list; found {type(raw).__name__}")
    if len(raw) > MAX_UNITS:
        raise UnitsInvalid(f"expected at most {MAX_UNITS} units, fewer and larger ones; found {len(raw)}")
    units = tuple(_unit(entry) for entry in raw)
    names = [u.name for u in units]
    for name in {n for n in names if names.count(n) > 1}:
        raise UnitsInvalid(f"expected each unit's name once; found {name} twice")
    return units


def _unit(entry: object) -> Unit:
    if not isinstance(entry, Mapping):
        raise UnitsInvalid(f"expected each unit to be an object; found {type(entry).__name__}")
    name = _text(entry.get("name"))
    if not _NAME.fullmatch(name):
        raise UnitsInvalid(
            f"expected a unit's name of at most {MAX_NAME} lower-case letters, digits, - and _; found {name[:60]!r}"
        )
    role = _text(entry.get("role")) or Role.EXECUTOR.value
    if role not in {r.value for r in Role}:
        raise UnitsInvalid(f"expected the role of unit {name} to be one of {', '.join(Role)}; found {role[:60]!r}")
    goal = _text(entry.get("goal"))
    if not goal:
        raise UnitsInvalid(f"expected unit {name} to have a goal that reads well alone; found none")
    files = _files(name, entry.get("files"))
    unit = Unit(name=name, role=role, goal=goal[:MAX_GOAL], files=files, topic=_text(entry.get("topic"))[:MAX_GOAL])
    if reads_only(unit):
        if files or not unit.topic:
            raise UnitsInvalid(f"expected unit {name}, whose role {role} only reads, to have a topic and no files")
    elif not files:
        raise UnitsInvalid(f"expected unit {name} to name the files that it may change; found none")
    return unit


def _text(value: object) -> str:
    return "" if value is None else str(value).encode("utf-8", "replace").decode("utf-8").strip()


def _files(name: str, raw: object) -> tuple[str, ...]:
    if raw is None:
        return ()
    if not isinstance(raw, list) or len(raw) > MAX_FILES:
        raise UnitsInvalid(f"expected files of unit {name} to be a list of at most {MAX_FILES} paths or patterns")
    return tuple(dict.fromkeys(_pattern(name, f) for f in raw))


def _pattern(name: str, raw: object) -> str:
    """A path or pattern relative to the workspace, in one spelling."""
    text = raw.strip() if isinstance(raw, str) else ""
    parts = [p for p in text.split("/") if p not in ("", ".")]
    inside = not text.startswith(("/", "~")) and ".." not in parts and ".git" not in parts and "\\" not in text
    if not text or not text.isprintable() or not inside:
        raise UnitsInvalid(f"expected files of unit {name} to be paths inside the workspace; found {str(raw)[:60]!r}")
    return "/".join(parts) or "**"


# -- who owns what


def owns(unit: Unit, path: str) -> bool:
    """Whether the unit may change this path: its own files, and what tools rewrite along with them."""
    if any(_covers(f, path) for f in unit.files):
        return True
    return any(_derives(f, path) for f in unit.files)


def _covers(pattern: str, path: str) -> bool:
    return any(_meet(_tokens(p), _plain(path)) for p in _readings(pattern))


def _derives(pattern: str, path: str) -> bool:
    """Whether a tool rewrites `path` when a file of this pattern changes."""
    return any(_covers(pattern, source) for source in _sources(path)) or _locked_by(pattern, path)


def _locked_by(pattern: str, lock: str) -> bool:
    """Whether the pattern names a manifest beside or below this lock file."""
    at = PurePosixPath(lock)
    above = "" if str(at.parent) == "." else f"{at.parent}/"
    for manifest, locks in LOCKS.items():
        if at.name in locks and PurePosixPath(pattern).name == manifest and pattern.startswith(above):
            return True
    return False


def _sources(path: str) -> list[str]:
    """The files that a generated file is made from, by what generators call their output."""
    at = PurePosixPath(path)
    found = []
    for ending in ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py", ".pb.go", "_grpc.pb.go", ".pb.cc", ".pb.h"):
        if at.name.endswith(ending):
            found.append(str(at.with_name(at.name.removesuffix(ending) + ".proto")))
    if at.parent.name == "__snapshots__":
        name = at.name.removesuffix(".snap")
        if name != at.name and _SOURCE.search(name):
            found.append(str(at.parent.parent / name))
        if at.suffix == ".ambr":
            found.append(str(at.parent.parent / f"{at.stem}.py"))
    return found


def overlaps(units: Sequence[Unit], known_files: Iterable[str] = ()) -> tuple[Overlap, ...]:
    """Each pair of writing units that could touch the same path, with the reason.

    `known_files` are the workspace's paths: they name the files that overlap, and the lock and generated files
    that there are. Patterns overlap whether or not a file exists that they share.
    """
    known = sorted(known_files)
    writing = [u for u in units if not reads_only(u)]
    found = []
    for i, one in enumerate(writing):
        for other in writing[i + 1 :]:
            reason = _overlap(one, other, known)
            if reason:
                found.append(Overlap(first=one.name, second=other.name, reason=reason))
    return tuple(found)


def _overlap(one: Unit, other: Unit, known: Sequence[str]) -> str:
    for a in one.files:
        for b in other.files:
            if a == b:
                return f"both name {a}"
            if _patterns_meet(a, b):
                both = [p for p in known if _covers(a, p) and _covers(b, p)]
                return f"{a} and {b} both hold {_some(both)}" if both else f"{a} and {b} can hold the same path"
    shared = {p for p in _rewritten(one, known, other) if owns(other, p)}
    shared |= {p for p in _rewritten(other, known, one) if owns(one, p)}
    return f"both would rewrite {_some(sorted(shared))}" if shared else ""


def _rewritten(unit: Unit, known: Sequence[str], other: Unit) -> list[str]:
    """The lock and generated files that come with the unit's own, as far as they exist or another unit names them."""
    named = {*known, *other.files}
    return sorted(p for p in named if any(_derives(f, p) for f in unit.files))


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:_SHOWN]) + (f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else "")


def merged(units: Sequence[Unit], pairs: Iterable[Overlap]) -> tuple[Unit, ...]:
    """Fewer, larger units: those that overlap, directly or through others, become one where the first of them stood."""
    root = {u.name: u.name for u in units}

    def find(name: str) -> str:
        while root[name] != name:
            name = root[name]
        return name

    order = {u.name: i for i, u in enumerate(units)}
    for pair in pairs:
        first, second = sorted((find(pair.first), find(pair.second)), key=order.__getitem__)
        root[second] = first
    groups: dict[str, list[Unit]] = {}
    for unit in units:
        groups.setdefault(find(unit.name), []).append(unit)
    taken = {u.name for u in units}
    return tuple(_joined(group, taken) for group in groups.values())


def _joined(group: Sequence[Unit], taken: set[str]) -> Unit:
    if len(group) == 1:
        return group[0]
    name = "-and-".join(u.name for u in group)
    if len(name) > MAX_NAME or (name in taken):
        name = group[0].name
    return Unit(
        name=name,
        role=Role.EXECUTOR.value,
        goal="\n".join(f"{u.name}: {u.goal}" for u in group)[: 4 * MAX_GOAL],
        files=tuple(dict.fromkeys(f for u in group for f in u.files)),
    )


def whole(goal: str) -> Unit:
    """The one unit of a goal that was not cut."""
    return Unit(name="whole", role=Role.EXECUTOR.value, goal=goal[: 4 * MAX_GOAL], files=("**",))


def broken(before: Sequence[Evidence], after: Sequence[Evidence]) -> tuple[str, ...]:
    """What fails after a change that did not before it: cases by name, else the check. Empty when nothing does."""
    old = {(e.name, e.command): e for e in before}
    found: list[str] = []
    for new in after:
        was = old.get((new.name, new.command))
        if was is None:
            found += [] if new.passed else [f"`{new.command}` ({new.counts()})"]
            continue
        fresh = [c for c in new.failing if was.cases.get(c) not in ("failed", "error") and not _is_within(c, was)]
        if fresh:
            found.append(f"`{new.command}`: {_some(fresh)}")
        elif not new.passed and (was.passed or _says_less(was, new)):
            found.append(f"`{new.command}` ({new.counts()}; it was {was.counts()})")
    return tuple(found)


def _is_within(case: str, before: Evidence) -> bool:
    """Whether the case is of a file that could not even be collected before."""
    return any(status == "error" and "::" not in c and case.startswith(f"{c}::") for c, status in before.cases.items())


def _says_less(before: Evidence, after: Evidence) -> bool:
    """Whether a check that was red before does not even get as far as it did then."""
    cut = after.exit_code is None and before.exit_code is not None
    return cut or (bool(before.cases) and not after.cases)


# -- patterns that meet

_ANY, _STAR, _DEEP = "?", "*", "**"
_Token = tuple[str, bool]


@cache
def _patterns_meet(one: str, other: str) -> bool:
    """Whether some path could belong to both."""
    return any(_meet(_tokens(a), _tokens(b)) for a in _readings(one) for b in _readings(other))


def _readings(pattern: str) -> tuple[str, ...]:
    """The pattern, and all that is below it where its last part is a plain name, which may be a directory's."""
    plain = not set("*?[") & set(pattern.rpartition("/")[2])
    return (pattern, f"{pattern}/**") if plain else (pattern,)


@cache
def _tokens(pattern: str) -> tuple[_Token, ...]:
    """The pattern as characters and wildcards; the flag says wildcard. A bracket stands for any one character."""
    found: list[_Token] = []
    at = 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            # Any number of directories, none included.
            found.append((_DEEP, True))
            at += 3
        elif pattern.startswith("**", at):
            found.append((_DEEP, True))
            at += 2
        elif pattern[at] in "*?":
            found.append((pattern[at], True))
            at += 1
        elif pattern[at] == "[" and (end := pattern.find("]", at + 2)) > 0:
            found.append((_ANY, True))
            at = end + 1
        else:
            found.append((pattern[at], False))
            at += 1
    return tuple(found)


def _plain(path: str) -> tuple[_Token, ...]:
    return tuple((c, False) for c in path)


def _meet(one: tuple[_Token, ...], other: tuple[_Token, ...]) -> bool:
    """Whether one text matches both token sequences, by walking them side by side."""
    todo, seen = [(0, 0)], {(0, 0)}
    while todo:
        i, j = todo.pop()
        if i == len(one) and j == len(other):
            return True
        for step in _steps(one, other, i, j):
            if step not in seen:
                seen.add(step)
                todo.append(step)
    return False


def _steps(one: tuple[_Token, ...], other: tuple[_Token, ...], i: int, j: int) -> list[tuple[int, int]]:
    a = one[i] if i < len(one) else None
    b = other[j] if j < len(other) else None
    found = []
    if _repeats(a):
        found.append((i + 1, j))
    if _repeats(b):
        found.append((i, j + 1))
    if a is None or b is None:
        return found
    if _takes(a, b) and not _repeats(b):
        found.append((i if _repeats(a) else i + 1, j + 1))
    if _takes(b, a) and not _repeats(a):
        found.append((i + 1, j if _repeats(b) else j + 1))
    return found


def _repeats(token: _Token | None) -> bool:
    return token is not None and token[1] and token[0] in (_STAR, _DEEP)


def _takes(wild: _Token, token: _Token) -> bool:
    """Whether the first may stand for one character that the second stands for."""
    if not wild[1]:
        return wild == token
    if wild[0] == _DEEP or token[1]:
        return True
    return token[0] != "/"
