"""A throw-away layer over a workspace: a step that only reads sees it in its own place and changes nothing of it.

What it writes lies in a folder of its own (an overlay, in a namespace that ends with the step's processes), however
large the workspace is. Where the kernel or the file systems can't do that, a copy takes its place.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .guarded import Guarded
from .paths import remove_all

_PROBE = ".matrix-coder-probe"
# What git writes when it is only asked how things stand.
_LOOKS = frozenset({".git/index", ".git/index.lock"})
_known: dict[Path, bool] = {}


def usable(workspace: Path, folder: Path) -> bool:
    """Whether steps can have a layer over this workspace, with what they write in `folder`; tried once, then known."""
    if workspace not in _known:
        try:
            _known[workspace] = _plain(workspace, folder) and _own(workspace) and _works(workspace, folder)
        finally:
            remove(folder)
    return _known[workspace]


def give_up(workspace: Path) -> None:
    """Steps get copies of this workspace from now on: a layer could not be had after all."""
    _known[workspace] = False


def remove(folder: Path) -> None:
    """Remove what a step wrote."""
    with suppress(OSError):
        remove_all(folder)


def _plain(workspace: Path, folder: Path) -> bool:
    """No name that the mount's options can't hold, and no file system of its own somewhere below."""
    if sys.platform != "linux" or any(c in f"{workspace}{folder}" for c in ",:\\\n"):
        return False
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as table:  # noqa: PTH123 - no real file
        points = [line.split()[4] for line in table]
    return not any(point.startswith(f"{workspace.resolve()}/") for point in points)


def _own(workspace: Path) -> bool:
    """All files are this user's and group's; in a namespace of one's own those of others can't be written at all."""
    if os.geteuid() == 0:
        return True
    words = ["find", str(workspace), "(", "!", "-uid", str(os.geteuid()), "-o", "!", "-gid", str(os.getegid()), ")"]
    found = subprocess.run([*words, "-print", "-quit"], capture_output=True, check=False)
    return found.returncode == 0 and not found.stdout


def _works(workspace: Path, folder: Path) -> bool:
    """A command that writes below the workspace writes into the folder, and nowhere else."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    command = Guarded(
        ["/bin/sh", "-c", f": > {_PROBE}"],
        cookie="",
        protect=workspace,
        layer=folder,
        cwd=workspace,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    command.await_end(10.0)
    code = command.end()
    leaked = workspace / _PROBE
    if leaked.exists():
        leaked.unlink()
        return False
    return code == 0 and (folder / "upper" / _PROBE).exists()


def written(folder: Path, *, most: int = 2_000) -> Iterator[str]:
    """The files that a step wrote or removed so far, relative to the workspace."""
    upper = folder / "upper"
    count = 0
    for directory, _, names in os.walk(upper):
        for name in names:
            count += 1
            if count > most:
                return
            path = os.path.relpath(os.path.join(directory, name), upper)  # noqa: PTH118 - many names
            if path not in _LOOKS:
                yield path
