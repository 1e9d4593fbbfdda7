"""What a run was started with, as the store keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from ..core.errors import InputError
from ..core.money import dollars
from ..core.registry import WorkflowDefinition, parse_workflow
from . import views
from .checks import Check
from .store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a run may use. Seconds, tokens, and dollars by the host's prices (0 sets no such limit).

    `cap` counts iterations started.
    """

    cap: int = 5
    budget_s: float = 7_200.0
    tokens: int = 2_000_000
    step_s: float = 1_800.0
    check_s: float = 600.0
    rate_wait_s: float = 30.0
    money_usd: float = 0.0

    def words(self) -> str:
        """The limits in one line, as they are shown at the start."""
        money = (f"{dollars(self.money_usd)} by the host's prices",) if self.money_usd else ()
        time, step = f"{self.budget_s / 60:g} min", f"{self.step_s / 60:g} min a step"
        return ", ".join([f"cap {self.cap}", time, f"{self.tokens:,} tokens", *money, step])


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a run is to be run: steps after which a person is asked, green runs in a row that a check needs.

    With `isolate` it works in a checkout of its own; `origin` is then the repository that this was made of.
    """

    approve: tuple[str, ...] = ()
    check_runs: int = 1
    isolate: bool = False
    origin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run was started with; its limits as they are now. `environment` is the starter's: paths and locale."""

    number: int
    run_id: str
    definition: WorkflowDefinition
    goal: str
    domain: str
    workspace: Path
    checks: tuple[Check, ...]
    limits: Limits
    options: Options
    environment: dict[str, str]


# A worker asks for the same few again and again, before each step.
_definition = lru_cache(maxsize=32)(parse_workflow)


def load_plan(store: Store, number: int) -> Plan:
    """The plan of one run. Raises RunUnknown."""
    row = store.run_row(number)
    options = json.loads(row["options"])
    return Plan(
        number=number,
        run_id=views.run_id_of(number),
        definition=_definition(row["definition"]),
        goal=row["goal"],
        domain=row["domain"],
        workspace=Path(row["workspace"]),
        checks=tuple(Check(**c) for c in json.loads(row["checks"])),
        limits=Limits(**json.loads(row["limits"])),
        environment={str(k): str(v) for k, v in json.loads(row["environment"]).items()},
        options=Options(
            approve=tuple(options.get("approve", ())),
            check_runs=int(options.get("check_runs", 1)),
            isolate=bool(options.get("isolate")),
            origin=str(options.get("origin") or ""),
        ),
    )


_NAMES = {
    "cap": "cap",
    "tokens": "number of tokens",
    "budget_s": "time budget",
    "money_usd": "money budget in dollars",
}


def raise_stored(store: Store, number: int, more: Mapping[str, float]) -> Limits:
    """A run's limits with these raised, as they are kept from now on. Raises InputError for one that is not above.

    Read and written in one go: of two who raise different limits at once, neither takes the other's back.
    """
    with store.transaction() as db:
        row = db.execute("select limits from runs where id = ?", (number,)).fetchone()
        limits = Limits(**json.loads(row["limits"]))
        for name, wanted in more.items():
            _require_more(views.run_id_of(number), name, wanted, getattr(limits, name))
        limits = replace(limits, **cast("dict[str, Any]", dict(more)))
        db.execute("update runs set limits = ? where id = ?", (json.dumps(asdict(limits)), number))
    return limits


def _require_more(run_id: str, name: str, wanted: float, now: float) -> None:
    if name == "money_usd" and not now:
        # One set now would only take something away.
        raise InputError("a run with a money budget", f"{run_id}, which has none", "limits only go up")
    if wanted <= now:
        raise InputError(f"a {_NAMES[name]} above {_amount(name, now)}", _amount(name, wanted), "limits only go up")


def _amount(name: str, value: float) -> str:
    return f"{value / 60:,.10g} min" if name == "budget_s" else f"{value:,.10g}"
