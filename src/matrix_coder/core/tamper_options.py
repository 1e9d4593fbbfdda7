"""The options that decide which Python tests run and what counts as green, read from every place they can stand in."""

from __future__ import annotations

import configparser
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from .tamper_files import Collection
from .tamper_model import Mark, text_of

Table: TypeAlias = Mapping[str, object]
# In the order in which pytest looks; the first that speaks for pytest wins, and pytest.ini wins even when empty.
_PLACES = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
CONFIG_FILES = frozenset({*_PLACES, ".coveragerc"})
_NARROWING = ("-k", "-m", "--ignore", "--ignore-glob", "--deselect", "-p", "-c", "--rootdir", "--confcutdir", "-o")
_NARROWING_ALONE = frozenset(
    [
        "--collect-only",
        "--co",
        "--lf",
        "--last-failed",
        "--sw",
        "--stepwise",
        "--no-cov",
        "--noconftest",
        "--continue-on-collection-errors",
        "--suppress-no-test-exit-code",
        "--nf",
        "--setup-only",
        "--setup-plan",
        "--fixtures",
        "--help",
        "-h",
        "--version",
        "--doctest-only",
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """pytest's own options, where they stand, and the coverage rules."""

    file: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    coverage: Mapping[str, str] = field(default_factory=dict)
    coverage_file: str = ""

    def words(self, name: str) -> list[str]:
        """An option's value as a list of words."""
        text = self.values.get(name, "")
        with suppress(ValueError):
            return shlex.split(text.replace("\n", " "))
        return text.split()

    def collection(self) -> Collection:
        """The rules of collection that follow from the options."""
        default = Collection()
        ignored = [w.split("=", 1)[1] for w in self.words("addopts") if w.startswith(("--ignore=", "--ignore-glob="))]
        pairs = zip(self.words("addopts"), self.words("addopts")[1:], strict=False)
        ignored += [value for option, value in pairs if option in ("--ignore", "--ignore-glob")]
        return Collection(
            files=tuple(self.words("python_files")) or default.files,
            classes=tuple(self.words("python_classes")) or default.classes,
            functions=tuple(self.words("python_functions")) or default.functions,
            testpaths=tuple(self.words("testpaths")),
            ignored=tuple(ignored),
        )


def read_options(files: Mapping[str, bytes]) -> Options:
    """The options in force at the root of a tree."""
    values: dict[str, str] = {}
    place = ""
    for name in _PLACES:
        tables = _tables(name, text_of(files[name])) if name in files else {}
        found = _pytest_table(name, tables)
        if name in files and found is not None:
            values, place = found, name
            break
    coverage, coverage_file = _coverage(files)
    return Options(file=place, values=values, coverage=coverage, coverage_file=coverage_file)


def _tables(name: str, text: str) -> dict[str, dict[str, str]]:
    """A configuration file as sections of plain text values; unreadable is empty."""
    if name.endswith(".toml"):
        with suppress(tomllib.TOMLDecodeError):
            return _toml_tables(tomllib.loads(text))
        return {}
    parser = configparser.RawConfigParser(strict=False)
    with suppress(configparser.Error):
        parser.read_string(text)
        return {s: dict(parser.items(s)) for s in parser.sections()}
    return {}


def _toml_tables(data: Table) -> dict[str, dict[str, str]]:
    tool = data.get("tool")
    tool = tool if isinstance(tool, Mapping) else {}
    tables: dict[str, dict[str, str]] = {}
    for path in (("pytest",), ("pytest", "ini_options"), ("coverage", "report"), ("coverage", "run")):
        node: object = tool
        for part in path:
            node = node.get(part) if isinstance(node, Mapping) else None
        if isinstance(node, Mapping):
            tables[".".join(path)] = {str(k): _plain(v) for k, v in node.items() if not isinstance(v, Mapping)}
    root = data.get("pytest")
    if isinstance(root, Mapping):
        tables["root.pytest"] = {str(k): _plain(v) for k, v in root.items()}
    return tables


def _plain(value: object) -> str:
    if isinstance(value, list):
        return "\n".join(shlex.quote(str(v)) for v in value)
    return str(value)


def _pytest_table(name: str, tables: Mapping[str, dict[str, str]]) -> dict[str, str] | None:
    if name in ("pytest.toml", ".pytest.toml"):
        return tables.get("root.pytest", {})
    if name in ("pytest.ini", ".pytest.ini"):
        return tables.get("pytest", {})
    if name == "pyproject.toml":
        native = dict(tables.get("pytest", {}))
        own = tables.get("pytest.ini_options")
        return own if own is not None else native or None
    return tables.get("pytest") if name == "tox.ini" else tables.get("tool:pytest")


def _coverage(files: Mapping[str, bytes]) -> tuple[dict[str, str], str]:
    for name in (".coveragerc", "setup.cfg", "tox.ini", "pyproject.toml"):
        if name not in files:
            continue
        tables = _tables(name, text_of(files[name]))
        parts = {
            key: value
            for section in ("report", "run", "coverage:report", "coverage:run", "coverage.report", "coverage.run")
            for key, value in tables.get(section, {}).items()
        }
        if parts:
            return parts, name
    return {}, ""


def narrowing(words: list[str]) -> Iterator[str]:
    """The options in a pytest command line that leave tests out or make failures pass unseen."""
    for i, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in _NARROWING:
            value = value if equals else " ".join(words[i + 1 : i + 2])
            if name != "-p" or value.startswith("no:") or value:
                yield f"{name} {value}".strip()
        elif word in _NARROWING_ALONE:
            yield word
        elif word.startswith(("-k", "-m")) and len(word) > 2 and not word.startswith("--"):
            yield f"{word[:2]} {word[2:]}"


def option_line(files: Mapping[str, bytes], file: str, *wanted: str) -> Mark:
    """The first line of a file that holds one of these texts, else its first line."""
    text = text_of(files.get(file))
    lines = text.splitlines()
    for word in wanted:
        for number, line in enumerate(lines, 1):
            if word and word in line:
                return Mark(kind="line", line=number, text=line.strip()[:200])
    return Mark(kind="line", line=1, text=lines[0].strip()[:200] if lines else "")
