"""The options of a workflow header: `cap=3 check="pytest -q" budget=30m tokens=200k money=5 in=path isolate=yes`."""

from __future__ import annotations

import re
from collections.abc import Callable

from .decision import OptionValue

ACCEPTED = (
    'cap=3 (1 to 100 iterations), check="pytest -q" (a command, may be given more than once), '
    "budget=30m (s, m or h), tokens=200k (k or m), money=5 (dollars, by the host's prices), "
    "in=path/to/repo, isolate=yes or no, "
    "check_runs=3 (green runs in a row that a check needs), approve=plan (wait for a person after that step)"
)

_KEY = re.compile(r"([A-Za-z_][\w-]{0,31})=(?!=)")
_DURATION = re.compile(r"(?:(\d{1,4})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s)?", re.IGNORECASE)
_COUNT = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)([km]?)", re.IGNORECASE)
_DOLLARS = re.compile(r"\$?([0-9]{1,6}(?:\.[0-9]{1,2})?)")
_LONGEST_BUDGET_S = 7 * 24 * 3600
_BOOLS = {"yes": True, "true": True, "on": True, "1": True, "no": False, "false": False, "off": False, "0": False}


class OptionError(ValueError):
    """An option that can't be used; the text says what is accepted."""


def _cap(raw: str) -> int:
    if not (raw.isascii() and raw.isdigit() and 1 <= int(raw[:9]) <= 100):
        raise OptionError(f"cap={raw} is not a number of iterations from 1 to 100")
    return int(raw)


def _budget(raw: str) -> int:
    found = _DURATION.fullmatch(raw)
    parts = found.groups() if found else (None, None, None)
    seconds = sum(int(n) * unit for n, unit in zip(parts, (3600, 60, 1), strict=True) if n)
    if not 0 < seconds <= _LONGEST_BUDGET_S:
        raise OptionError(f"budget={raw} is not a time such as 90s, 30m or 2h, at most 168h")
    return seconds


def _tokens(raw: str) -> int:
    found = _COUNT.fullmatch(raw)
    count = int(float(found[1]) * {"": 1, "k": 1_000, "m": 1_000_000}[found[2].lower()]) if found else 0
    if not 0 < count <= 1_000_000_000:
        raise OptionError(f"tokens={raw} is not a number of tokens such as 200k or 2m")
    return count


def _money(raw: str) -> float:
    found = _DOLLARS.fullmatch(raw)
    if found is None or not float(found[1]):
        raise OptionError(f"money={raw} is not an amount of dollars such as 5, 2.50 or $5")
    return float(found[1])


def _isolate(raw: str) -> bool:
    if raw.lower() not in _BOOLS:
        raise OptionError(f"isolate={raw} is neither yes nor no")
    return _BOOLS[raw.lower()]


def _check_runs(raw: str) -> int:
    if not (raw.isascii() and raw.isdigit() and 1 <= int(raw[:9]) <= 20):
        raise OptionError(f"check_runs={raw} is not a number of runs from 1 to 20")
    return int(raw)


def _approve(raw: str) -> str:
    if not re.fullmatch(r"[a-z]{1,20}(,[a-z]{1,20}){0,4}", raw):
        raise OptionError(f"approve={raw} is not the name of a step such as plan")
    return raw


def _text(key: str) -> Callable[[str], str]:
    def take(raw: str) -> str:
        if not raw.strip() or "\x00" in raw:
            raise OptionError(f"{key}= needs a value")
        return raw

    return take


_READERS: dict[str, Callable[[str], OptionValue]] = {
    "cap": _cap,
    "check": _text("check"),
    "budget": _budget,
    "tokens": _tokens,
    "money": _money,
    "in": _text("in"),
    "isolate": _isolate,
    "check_runs": _check_runs,
    "approve": _approve,
}


def read_option(key: str, raw: str) -> OptionValue:
    """One option's value from its text. Raises OptionError."""
    if key not in _READERS:
        raise OptionError(f"{key}= is not an option of a workflow")
    return _READERS[key](raw)


def parse_options(text: str) -> tuple[dict[str, OptionValue], str, bool]:
    """The options at the start of `text`, the rest of it, and whether a colon ended them.

    Raises OptionError on an unknown key, an impossible value, a key given twice or an open quote.
    """
    options: dict[str, OptionValue] = {}
    while key := _KEY.match(text):
        raw, text, closed = _value(key[1], text[key.end() :])
        _store(options, key[1].lower(), raw)
        if closed:
            return options, text, True
    return options, text, False


def _value(key: str, text: str) -> tuple[str, str, bool]:
    """One value, plain or quoted, what follows it, and whether a colon glued to it or alone ends the header."""
    if text[:1] in ('"', "'"):
        end = text.find(text[0], 1)
        if end < 0:
            raise OptionError(f"the quote of {key}= is never closed")
        raw, rest = text[1:end], text[end + 1 :]
    else:
        parts = text.split(None, 1)
        raw = parts[0] if parts and not text[:1].isspace() else ""
        rest = text[len(raw) :]
        if raw.endswith(":"):
            return raw[:-1], rest, True
    stripped = rest.lstrip()
    if stripped.startswith(":"):
        return raw, stripped[1:], True
    return raw, stripped if _KEY.match(stripped) else rest, False


def _store(options: dict[str, OptionValue], key: str, raw: str) -> None:
    value = read_option(key, raw)
    if key == "check":
        earlier = options.get("check", ())
        assert isinstance(earlier, tuple) and isinstance(value, str)
        options["check"] = (*earlier, value)
    elif key in options:
        raise OptionError(f"{key}= is given twice")
    else:
        options[key] = value
