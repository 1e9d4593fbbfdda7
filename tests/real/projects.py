"""Small open-source projects with suites of their own, and a bug for each. Fetched as source, never kept here."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

# Inside the environment, so that `make clean` takes it away and git never sees it.
CACHE = Path(sys.prefix) / "real-sources"
CHECK = "python -m pytest -q"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A released source distribution, and the bug put into it: in `file`, `good` becomes `bad`."""

    name: str
    version: str
    file: str
    good: str
    bad: str
    breaks: str
    goal: str

    @property
    def stem(self) -> str:
        return f"{self.name}-{self.version}"


PROJECTS = (
    Project(
        name="toolz",
        version="1.0.0",
        file="toolz/itertoolz.py",
        good="    next(inposed)\n    return inposed\n",
        bad="    return inposed\n",
        breaks="test_interpose",
        goal="interpose must put its element between the others and not before the first one",
    ),
    Project(
        name="parse",
        version="1.20.2",
        file="parse.py",
        good="    return float(string[:-1]) / 100.0\n",
        bad="    return float(string[:-1]) / 10.0\n",
        breaks="test_numbers",
        goal="a percentage is parsed as its hundredth",
    ),
    Project(
        name="pathspec",
        version="0.12.1",
        file="pathspec/patterns/gitwildmatch.py",
        good="\t\t\t\tregex += '[^/]*'\n",
        bad="\t\t\t\tregex += '.*'\n",
        breaks="test_0",
        goal="a single star in a pattern must not reach over a slash",
    ),
)


def fetch(project: Project) -> Path:
    """The project's source archive, from the cache or, once, from the package registry."""
    CACHE.mkdir(parents=True, exist_ok=True)
    archive = CACHE / f"{project.stem}.tar.gz"
    if not archive.exists():
        words = ["download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", str(CACHE)]
        subprocess.run(
            [sys.executable, "-m", "pip", *words, f"{project.name}=={project.version}"],
            check=True,
            timeout=300,
        )
    return archive


def unpack(project: Project, target: Path) -> Path:
    """The project's files in `target`, as they were released."""
    parts = target.with_name(f"{target.name}.parts")
    with tarfile.open(fetch(project)) as archive:
        archive.extractall(parts, filter="data")
    shutil.move(parts / project.stem, target)
    parts.rmdir()
    return target
