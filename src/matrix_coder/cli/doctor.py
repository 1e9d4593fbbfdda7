"""The command that looks whether everything is in order."""

from __future__ import annotations

from pathlib import Path

import click

from .app import cli, json_option, say_json
from .terminal import say


@cli.command()
@json_option()
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Look at everything that a run needs; exit code 1 where something is in the way."""
    from ..engine.paths import hermes_home  # noqa: PLC0415
    from ..hermes.doctor import doctor_json, doctor_text, examine, is_well  # noqa: PLC0415

    found = examine(hermes_home(), Path.cwd())
    if as_json:
        say_json(doctor_json(found))
    else:
        say(doctor_text(found))
    ctx.exit(0 if is_well(found) else 1)
