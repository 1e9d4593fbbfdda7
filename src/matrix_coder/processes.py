"""The composition root of this package's own processes: which adapters the engine works with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Run `worker HOME`, `step JOB_FILE CHANNEL_FD` or `forkserver SOCKET_FD`; the exit code of the process."""
    if arguments[:1] == ["worker"]:
        return _worker(Path(arguments[1]))
    if arguments[:1] == ["step"]:
        from .hermes.step_process import main as step  # noqa: PLC0415 - the worker needs no host

        return step(arguments[1], int(arguments[2]))
    if arguments[:1] == ["forkserver"]:
        from .engine.forkserver import serve  # noqa: PLC0415 - the worker needs no host
        from .hermes import step_process  # noqa: PLC0415

        return serve(int(arguments[1]), step_process.preload, step_process.main)
    raise SystemExit(
        f"expected `worker`, `step` or `forkserver`; found {arguments[:1]}; this file is started by matrix-coder itself"
    )


def _worker(home: Path) -> int:
    from .core.errors import MatrixError  # noqa: PLC0415 - as above
    from .engine.spawn import trouble_file  # noqa: PLC0415
    from .engine.worker import Worker  # noqa: PLC0415 - a step needs no durable engine

    trouble = trouble_file(home)
    try:
        notify, stop = _mirror(home)
        Worker(home, on_change=notify, on_leave=stop).serve()
    except MatrixError as error:
        # Whoever waits for a run reads it there; nobody waits for this process.
        trouble.write_text(f"{error}\n", encoding="utf-8")
        print(f"the worker could not work: {error}", flush=True)  # noqa: T201 - the worker's log
        return error.exit_code
    trouble.unlink(missing_ok=True)
    return 0


def _mirror(home: Path) -> tuple[Callable[[int], None], Callable[[], None]]:
    """What tells the Kanban mirror about a run, and what lets it finish; nothing where it is switched off."""
    from .engine import views  # noqa: PLC0415 - as above
    from .engine.store import Store  # noqa: PLC0415
    from .hermes.settings import Mirror, chat_settings  # noqa: PLC0415

    kanban = chat_settings(home).kanban
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
