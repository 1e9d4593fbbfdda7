"""What the kernel and the container let the tests do, asked without a line of the product."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest


@cache
def has_layers() -> bool:
    """Whether this user can mount an overlay in a namespace of its own, and the kernel has Landlock."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        return False
    if ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), ctypes.c_uint32(1)) < 1:
        return False
    root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as folder:
        for name in ("lower", "upper", "work", "merged"):
            Path(folder, name).mkdir()
        options = f"lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work{'' if root else ',userxattr'}"
        mount = f"mount -t overlay overlay -o {options} {folder}/merged && : > {folder}/merged/file"
        words = ["unshare", "-m" if root else "-Urm", "sh", "-c", mount]
        done = subprocess.run(words, capture_output=True, check=False)
        left = Path(folder, "work", "work")
        if left.exists():
            left.chmod(0o700)
    return done.returncode == 0


needs_layers = pytest.mark.skipif(
    not has_layers(), reason="no overlay and Landlock for this user here: copies take the place of layers"
)
