"""What a path is to a test suite: a test, a helper, a snapshot, data, configuration, CI. Judged by its name alone."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

SCRIPT_SUFFIXES = frozenset({".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts", ".vue", ".svelte"})
_LANGUAGES = {".py": "python", ".pyi": "python", ".go": "go", ".rs": "rust"} | dict.fromkeys(SCRIPT_SUFFIXES, "script")
_TEST_DIRECTORIES = frozenset({"test", "tests", "__tests__", "spec", "specs", "testing", "e2e", "__mocks__"})
_DATA_DIRECTORIES = frozenset(
    {"testdata", "golden", "goldens", "__snapshots__", "__fixtures__", "cassettes", "snapshots"}
)
_DATA_NAMES = re.compile(r"\.(golden|snap|ambr|approved)\b|^(expected|golden)[._-]|[._-](expected|golden)\.", re.I)
_SNAPSHOT = re.compile(r"\.(snap|ambr|storyshot|snapshot)$|(^|/)__snapshots__/|(^|/)snapshots?/", re.I)
_PROSE = frozenset({".md", ".rst", ".adoc", ".license"})
_SCRIPT_TEST = re.compile(r"(\.|^|[-_])(test|tests|spec)\.[cm]?[jt]sx?$|^test-[^/]*\.[cm]?[jt]sx?$")
_CI = re.compile(
    r"^(\.github/(workflows|actions)/.+|\.gitlab-ci(\.ya?ml|/.+)|\.gitlab/ci/.+|\.circleci/.+|\.travis\.ya?ml"
    r"|azure-pipelines\.ya?ml|Jenkinsfile|\.?appveyor\.ya?ml|bitbucket-pipelines\.ya?ml|\.drone\.ya?ml|\.buildkite/.+"
    r"|\.woodpecker(\.ya?ml|/.+)|\.cirrus\.ya?ml|\.ci/.+|\.forgejo/workflows/.+|\.gitea/workflows/.+)$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Which files, classes and functions the Python runner takes for tests; empty `testpaths` is everywhere."""

    files: tuple[str, ...] = ("test_*.py", "*_test.py")
    classes: tuple[str, ...] = ("Test",)
    functions: tuple[str, ...] = ("test",)
    testpaths: tuple[str, ...] = ()
    ignored: tuple[str, ...] = field(default=())

    def takes_function(self, name: str) -> bool:
        return _takes(self.functions, name)

    def takes_class(self, name: str) -> bool:
        return _takes(self.classes, name)

    def reaches(self, path: str) -> bool:
        """Whether the runner comes to this path when it is given none."""
        inside = not self.testpaths or any(_under(path, p) for p in self.testpaths)
        return inside and not any(_under(path, p) for p in self.ignored)


def _takes(patterns: tuple[str, ...], name: str) -> bool:
    return any(fnmatchcase(name, p) if set(p) & set("*?[") else name.startswith(p) for p in patterns)


def _under(path: str, place: str) -> bool:
    place = place.removeprefix("./").rstrip("/")
    if place in ("", "."):
        return True
    return path == place or path.startswith(place + "/") or fnmatchcase(path, place) or fnmatchcase(path, place + "/*")


def language(path: str) -> str:
    """`python`, `script` (JavaScript and TypeScript), `go`, `rust`, or nothing."""
    return _LANGUAGES.get(PurePosixPath(path).suffix, "")


def found(path: str, rules: Collection) -> int:
    """How surely a runner takes the file for a test file: 2 by its name, 1 by its directory, 0 not at all."""
    name, kind = PurePosixPath(path).name, language(path)
    if kind == "python":
        named = any(fnmatchcase(name, p.rsplit("/", 1)[-1]) for p in rules.files) or name == "tests.py"
        named |= name == "test.py" and (in_test_directory(path) or "/" not in path)
        return 2 if named and rules.reaches(path) else 0
    if kind == "script":
        return 2 if _SCRIPT_TEST.search(name) or "__tests__/" in f"/{path}" else int(in_test_directory(path))
    if kind == "go":
        return 2 if name.endswith("_test.go") and not name.startswith(("_", ".")) else 0
    return 2 if kind == "rust" else 0


def in_test_directory(path: str) -> bool:
    return bool(_TEST_DIRECTORIES & set(PurePosixPath(path).parts[:-1]))


def is_test_side(path: str, rules: Collection | None = None) -> bool:
    """Whether the file belongs to the tests: one of them, or code that stands beside them."""
    name, kind = PurePosixPath(path).name, language(path)
    if not kind:
        return False
    by_name = name == "conftest.py" or (kind != "rust" and found(path, rules or Collection()) == 2)
    looks = kind == "python" and re.search(r"^tests?_|_tests?\.py$", name) is not None
    return by_name or looks or in_test_directory(path)


def is_source(path: str, rules: Collection | None = None) -> bool:
    """Whether the file is code that the tests are about."""
    return bool(language(path)) and not is_test_side(path, rules)


def is_snapshot(path: str) -> bool:
    return _SNAPSHOT.search(path) is not None and not language(path)


def is_test_data(path: str) -> bool:
    """Whether the file is something that tests read or compare with, snapshots left out."""
    pure = PurePosixPath(path)
    if language(path) or pure.suffix.lower() in _PROSE or is_snapshot(path) or is_plumbing(path):
        return False
    parts = set(pure.parts[:-1])
    return bool(parts & (_TEST_DIRECTORIES | _DATA_DIRECTORIES)) or _DATA_NAMES.search(pure.name) is not None


def is_plumbing(path: str) -> bool:
    """Whether the file steers tools, wherever it lies: judged by what it says, not as data."""
    name = PurePosixPath(path).name
    return name.startswith(".") or name in {
        "pytest.ini",
        "pyproject.toml",
        "tox.ini",
        "setup.cfg",
        "package.json",
        "package-lock.json",
        "tsconfig.json",
        "requirements.txt",
        "Makefile",
        "Dockerfile",
        "py.typed",
    }


def is_ci(path: str) -> bool:
    return _CI.match(path) is not None
