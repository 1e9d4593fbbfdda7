"""The composition root of this package's own processes: which adapters the engine works with."""

from __future__ import annotations

from pathlib import Path


def main(arguments: list[str]) -> int:
    """Run `worker HOME` or `step JOB_FILE CHANNEL_FD LEASE_FD`; the exit code of the process."""
    if arguments[:1] == ["worker"]:
        return _worker(Path(arguments[1]))
    if arguments[:1] == ["step"]:
        from .hermes.step_process import main as step  # noqa: PLC0415 - the worker needs no host

        return step(arguments[1], int(arguments[2]), int(arguments[3]))
    raise SystemExit(f"expected `worker` or `step`; found {arguments[:1]}; this file is started by matrix-coder itself")


def _worker(home: Path) -> int:
    from .engine.worker import Worker  # noqa: PLC0415 - a step needs no durable engine

    Worker(home, on_change=lambda _: None).serve()
    return 0
