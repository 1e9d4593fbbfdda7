"""Amounts as a person writes them: the command line takes what a chat's header takes, and plain numbers."""

from __future__ import annotations

import math

import click

from ..core.gate_options import OptionError, read_option

_LONGEST_MIN = 7 * 24 * 60
_MOST_DOLLARS = 100_000


def minutes(text: str) -> float:
    """Minutes: from `30`, `0.5`, or a time such as `90s`, `30m` or `2h`; at most a week. Raises click.BadParameter."""
    found = _number(text)
    if found is None:
        try:
            found = float(str(read_option("budget", text))) / 60
        except OptionError as error:
            raise click.BadParameter(f"{text!r} is neither minutes nor a time such as 90s, 30m or 2h") from error
    if not 0.1 <= found <= _LONGEST_MIN:
        raise click.BadParameter(f"{text} is not in the range 0.1<=x<={_LONGEST_MIN} minutes")
    return found


def tokens(text: str) -> int:
    """A number of tokens: from `200000`, `200k` or `2m`. Raises click.BadParameter."""
    try:
        return int(str(read_option("tokens", text)))
    except OptionError as error:
        raise click.BadParameter(f"{text!r} is not a number of tokens such as 200000, 200k or 2m") from error


def dollars(text: str) -> float:
    """Dollars: from `5`, `2.50` or `$5`. Raises click.BadParameter."""
    found = _number(text.removeprefix("$"))
    if found is None or not 0.01 <= found <= _MOST_DOLLARS:
        raise click.BadParameter(f"{text!r} is not an amount of dollars such as 5, 2.50 or $5")
    return found


def _number(text: str) -> float | None:
    """The finite number that a text is; None for any other."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
