"""What the gate decides: frozen values that carry their own reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, overload

from .names import Domain, Lens, Role

OptionValue = int | float | bool | str | tuple[str, ...]


class GateOutcome(StrEnum):
    """The five ends of the decision."""

    EXPLICIT = "A"
    NONE = "B"
    DIRECT = "C"
    MATRIX = "D"
    SKIP = "skip"


class Signal(NamedTuple):
    """One reason: the text that fired, where it stands in the message, the rule, what it voted for and how much.

    A reason that concerns the whole message has the empty span (0, 0). `code` names the features behind it.
    """

    text: str
    span: tuple[int, int]
    rule: str
    vote: str
    weight: float = 0.0
    code: str = ""


class Reasons(Sequence[Signal]):
    """Signals that are put into words when somebody asks for them: most turns nobody does."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], tuple[Signal, ...]]) -> None:
        self._make = make
        self._made: tuple[Signal, ...] | None = None

    def all(self) -> tuple[Signal, ...]:
        """All of them."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def __len__(self) -> int:
        return len(self.all())

    @overload
    def __getitem__(self, at: int) -> Signal: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Signal, ...]: ...
    def __getitem__(self, at: int | slice) -> Signal | tuple[Signal, ...]:
        return self.all()[at]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.all() == tuple(other)

    def __hash__(self) -> int:
        return hash(self.all())

    def __repr__(self) -> str:
        return repr(self.all())


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A specialist: a role, with a lens on a review alone, and a domain."""

    role: Role
    lens: Lens | None = None
    domain: Domain | None = None

    def __post_init__(self) -> None:
        if self.lens is not None and self.role is not Role.REVIEW:
            raise ValueError(f"expected a lens on review alone; found {self.lens} on {self.role}; drop the lens")

    @property
    def name(self) -> str:
        """`role`, `review:lens`, `role@domain` or `review:lens@domain`."""
        lens = f":{self.lens}" if self.lens else ""
        domain = f"@{self.domain}" if self.domain else ""
        return f"{self.role}{lens}{domain}"

    @classmethod
    def parse(cls, name: str) -> Route:
        """The route that a name stands for; ValueError on anything else."""
        head, _, domain = name.partition("@")
        role, _, lens = head.partition(":")
        return cls(role=Role(role), lens=Lens(lens) if lens else None, domain=Domain(domain) if domain else None)


_VERDICTS = {
    GateOutcome.EXPLICIT: "matrix",
    GateOutcome.MATRIX: "matrix",
    GateOutcome.DIRECT: "direct",
    GateOutcome.NONE: "none",
    GateOutcome.SKIP: "none",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What happens to one message, and why.

    `role` is a role's name, or the workflow's when `workflow` is true. `goal` is the person's own text,
    byte for byte. When `asks` is true nothing starts and `answer` is what to tell the person.
    `options` holds only what was given: cap (int), check (tuple of commands), budget (seconds),
    tokens (int), in (path), isolate (bool).
    """

    outcome: GateOutcome
    role: str | None = None
    workflow: bool = False
    lens: str | None = None
    domain: str | None = None
    goal: str = ""
    route: str | None = None
    signals: Sequence[Signal] = ()
    asks: bool = False
    answer: str = ""
    options: Mapping[str, OptionValue] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """`matrix`, `direct` or `none`."""
        return _VERDICTS[self.outcome]

    @property
    def coding(self) -> bool:
        """Whether a specialist, or the tip about one, has to do with this message."""
        return self.verdict != "none"

    def as_dict(self) -> dict[str, object]:
        """The decision as plain JSON values."""
        return {
            "outcome": self.outcome.value,
            "verdict": self.verdict,
            "coding": self.coding,
            "role": self.role,
            "workflow": self.workflow,
            "lens": self.lens,
            "domain": self.domain,
            "route": self.route,
            "goal": self.goal,
            "asks": self.asks,
            "answer": self.answer,
            "options": {k: list(v) if isinstance(v, tuple) else v for k, v in self.options.items()},
            "signals": [
                {
                    "text": s.text,
                    "span": list(s.span),
                    "rule": s.rule,
                    "vote": s.vote,
                    "weight": round(s.weight, 3),
                }
                for s in self.signals
            ],
        }
