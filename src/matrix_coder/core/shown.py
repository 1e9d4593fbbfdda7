"""Texts of models, files and repositories as a terminal may be shown them: nothing in them is obeyed."""

from __future__ import annotations

import re

# What a terminal would obey or hide: control characters but for line ends and tabs, directions, invisible marks.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def cleaned(text: str) -> str:
    """`text` with every control character shown as a sign of its own; line ends and tabs stay."""
    return _OBEYED.sub(_sign, text)


def one_line(text: str) -> str:
    """`text` cleaned and on one line."""
    return cleaned(" ".join(text.split()))


def _sign(found: re.Match[str]) -> str:
    code = ord(found[0])
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"
