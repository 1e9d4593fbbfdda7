"""The commands and ports of this plugin, named to the host. Nothing heavy is imported before one of them is used."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from . import run_tool
from .boundary import boundary
from .hooks import provide

_SERVERS = frozenset({"gateway", "dashboard", "serve"})


def register_all(ctx: Any) -> None:
    """Name the workflow and command ports to the hooks, `/matrix` and `hermes matrix` to the host."""
    provide("workflow", _runs)
    provide("command", _commands)
    provide("card", _cards)
    provide("preferences", _preferences)
    ctx.register_tool(run_tool.NAME, run_tool.TOOLSET, run_tool.SCHEMA, run_tool.handle, check_fn=run_tool.is_useful)
    _watch_at_once()
    _register_slash(ctx, "matrix", "Matrix Coder: runs, status, show, cancel, why", "help")
    ctx.register_cli_command(
        "matrix", "Matrix Coder: routing and runs", _arguments, _handle, description="The same as matrix-coder."
    )


def _register_slash(ctx: Any, name: str, description: str, hint: str) -> None:
    """What `ctx.register_command` does, without its import of the host's whole terminal interface.

    Processes that have no terminal (a gateway's worker, a delegated child) would pay tens of milliseconds for a look-up
    of built-in names, of which `matrix` is none.
    """
    known = getattr(getattr(ctx, "_manager", None), "_plugin_commands", None)
    if known is None or "hermes_cli.commands" in sys.modules:
        ctx.register_command(name, _slash, description=description, args_hint=hint)
        return
    plugin = ctx.manifest.name
    known[name] = {"handler": _slash, "description": description, "plugin": plugin, "args_hint": hint}


def _watch_at_once() -> None:
    """A gateway or dashboard that starts again watches for its chats before one of them has a turn."""
    if not _SERVERS.intersection(sys.argv[1:]):
        return
    from ..engine.paths import hermes_home  # noqa: PLC0415 - in a server alone
    from .markers import any_marker  # noqa: PLC0415

    if any_marker(hermes_home()):
        from .milestones import watch_soon  # noqa: PLC0415

        watch_soon(hermes_home())


def _runs() -> Any:
    from .runs import ChatRuns  # noqa: PLC0415 - with the first turn

    return ChatRuns()


def _cards() -> Any:
    from .specialist_cards import SpecialistCards  # noqa: PLC0415 - with the first turn

    return SpecialistCards()


def _preferences() -> Any:
    from .preferences import Preferences  # noqa: PLC0415 - with the first turn

    return Preferences()


def _commands() -> Any:
    from ..core.intake import last_decision  # noqa: PLC0415 - with the first turn
    from .commands import Commands  # noqa: PLC0415

    return Commands(last_decision=last_decision)


@boundary(lambda *_, **__: None)
def _slash(raw: str) -> str | None:
    from ..engine.paths import hermes_home  # noqa: PLC0415 - with the first command
    from .markers import any_marker  # noqa: PLC0415
    from .surface import command_session  # noqa: PLC0415

    answer = str(_commands().run(raw, command_session()))
    if any_marker(hermes_home()):
        from .milestones import watch  # noqa: PLC0415 - it may have let a run go on

        watch(hermes_home())
    return answer


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="...", help="as for matrix-coder; try: help")


def _handle(args: argparse.Namespace) -> None:
    from ..cli import run_in_host  # noqa: PLC0415 - with the first command

    # The host ignores what a handler returns; leaving is the only way to hand on the exit code.
    sys.exit(run_in_host(list(args.words) or ["help"]))
