"""Reading the requests that a real host sent: whose persona is in them, and is the rest the user's own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matrix_coder.core.prompts import compose
from matrix_coder.testing.script import text_of

GAP = "\n\n"
# Written down here on its own: what the product puts around a block, seen from outside.
BLOCK = re.compile(r"\n\n<matrix-coder [^>\n]*>\n(.*?)\n</matrix-coder [0-9a-f]{32}>", re.DOTALL)


def persona(route: str) -> str:
    """The composition of a route name, empty for the empty name."""
    if not route:
        return ""
    head, _, domain = route.partition("@")
    role, _, lens = head.partition(":")
    return compose(role, lens=lens or None, domain=domain or None, surface="chat")


def user_texts(body: Mapping[str, Any]) -> list[str]:
    """The texts of the user messages of a request, in their order."""
    return [text_of(m.get("content")) for m in body["messages"] if m["role"] == "user"]


def blocks(body: Mapping[str, Any]) -> list[str]:
    """The bodies of all blocks in a request, in any message."""
    return [found for m in body["messages"] for found in BLOCK.findall(text_of(m.get("content")))]


def without(text: str) -> str:
    """A message without its blocks."""
    return BLOCK.sub("", text)


@dataclass(kw_only=True)
class Conversation:
    """What was said in one session, and which route each message was to get (empty: none).

    `host` are openings of messages that the host itself adds as the user.
    """

    said: Sequence[tuple[str, str]]
    host: Sequence[str] = ("You've reached the maximum number of tool-calling iterations",)
    checked: int = 0
    seen: set[int] = field(default_factory=set)

    def turn_of(self, body: Mapping[str, Any]) -> int:
        """The turn that a request belongs to: the last message said that it ends with."""
        for text in reversed(user_texts(body)):
            rest = without(text)
            for index in range(len(self.said) - 1, -1, -1):
                if rest == self.said[index][0] or rest.endswith(GAP + self.said[index][0]):
                    return index
        raise AssertionError(f"no turn said what this request ends with: {user_texts(body)[-1][:300]!r}")

    def check(self, body: Mapping[str, Any]) -> None:
        """Fails unless the request holds its turn's persona, no other, and the user's texts as they were."""
        turn = self.turn_of(body)
        route = self.said[turn][1]
        found = blocks(body)
        where = f"turn {turn + 1} ({route or 'none'}): {self.said[turn][0][:60]!r}"
        assert len(found) == (1 if route else 0), f"{where}: {len(found)} blocks"
        if route:
            assert persona(route) in found[0], where
            assert any(BLOCK.search(t) and self.said[turn][0] in t for t in user_texts(body)), where
        for text in user_texts(body):
            assert self.is_own(without(text)), f"{where}: changed text {text[:400]!r}"
        self.checked += 1
        self.seen.add(turn)

    def is_own(self, rest: str) -> bool:
        """Whether a text is what was said, alone or joined by the host with the next, or the host's own."""
        if not rest or rest.startswith(tuple(self.host)):
            return True
        for text, _ in self.said:
            if rest.startswith(text):
                left = rest[len(text) :]
                if not left or (left.startswith(GAP) and self.is_own(left[len(GAP) :])):
                    return True
        return False
