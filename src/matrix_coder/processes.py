"""The composition root of this package's own processes: which adapters the engine works with."""

from __future__ import annotations

from collections.abc import Callable
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

    notify, stop = _mirror(home)
    Worker(home, on_change=notify, on_leave=stop).serve()
    return 0


def _mirror(home: Path) -> tuple[Callable[[int], None], Callable[[], None]]:
    """What tells the Kanban mirror about a run, and what lets it finish; nothing where it is switched off."""
    from .engine import views  # noqa: PLC0415 - as above
    from .engine.store import Store  # noqa: PLC0415
    from .hermes.settings import Mirror, load_settings  # noqa: PLC0415

    kanban = load_settings(home).kanban
    if kanban.mirror is Mirror.OFF:
        return (lambda _: None), (lambda: None)
    from .hermes.card_book import StoreCardBook  # noqa: PLC0415
    from .hermes.kanban import KanbanMirror  # noqa: PLC0415 - loads the host's board
    from .hermes.kanban_thread import MirrorThread  # noqa: PLC0415

    store = Store(home)
    mirror = KanbanMirror(StoreCardBook(store), board=kanban.board or None)
    thread = MirrorThread(mirror, lambda run_id: views.view(store, views.run_number(run_id)))
    return (lambda number: thread.notify(views.run_id_of(number))), (lambda: _finish(thread.stop))


def _finish(stop: Callable[..., bool]) -> None:
    stop(timeout=10.0)
