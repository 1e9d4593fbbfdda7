"""The person's settings, from the host's own configuration file.

plugins:
  entries:
    matrix_coder:
      settings:
        limits: {cap: 5, minutes: 120, tokens: 2000000, money: 0, step_minutes: 30, check_minutes: 10}
        kanban: {mirror: explicit, board: ""}
        routing: {implicit: true, remember: true}
        chat: {milestones: outcome}
"""

from __future__ import annotations

import logging
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from ..core.errors import InputError
from ..engine.plan import Limits, Options

log = logging.getLogger("matrix_coder")


class Mirror(StrEnum):
    """Which work gets Kanban cards."""

    ALL = "all"
    EXPLICIT = "explicit"
    WORKFLOWS = "workflows"
    OFF = "off"


class Milestones(StrEnum):
    """What a chat is shown of its runs unasked."""

    OFF = "off"
    OUTCOME = "outcome"
    ITERATIONS = "iterations"


def _bare_off(value: object) -> object:
    """YAML reads an `off` without quotes as false."""
    return "off" if value is False else value


class LimitSettings(BaseModel):
    """What a run may use unless its start says otherwise; `money` in dollars, 0 for no such budget."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cap: int = Field(5, ge=1, le=100)
    minutes: float = Field(120, gt=0)
    tokens: int = Field(2_000_000, gt=0)
    money: float = Field(0, ge=0, allow_inf_nan=False)
    step_minutes: float = Field(30, gt=0)
    check_minutes: float = Field(10, gt=0)


class KanbanSettings(BaseModel):
    """Which cards are kept, and on which board (empty: the current one)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mirror: Annotated[Mirror, BeforeValidator(_bare_off)] = Mirror.EXPLICIT
    board: str = ""


class RoutingSettings(BaseModel):
    """Whether specialists are inferred (explicit triggers always work), and whether last decisions are kept."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    implicit: bool = True
    remember: bool = True


class ChatSettings(BaseModel):
    """What a chat is shown of its runs before the person's next message."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    milestones: Annotated[Milestones, BeforeValidator(_bare_off)] = Milestones.OUTCOME


class Settings(BaseModel):
    """All settings of the plugin."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    limits: LimitSettings = LimitSettings()  # type: ignore[call-arg]
    kanban: KanbanSettings = KanbanSettings()
    routing: RoutingSettings = RoutingSettings()
    chat: ChatSettings = ChatSettings()

    def run_limits(self, options: dict[str, Any]) -> Limits:
        """The limits of one run: `cap`, `budget` (seconds), `tokens`, `money` (dollars) where its start gave them."""
        own = self.limits
        return Limits(
            cap=int(options.get("cap") or own.cap),
            budget_s=float(options.get("budget") or own.minutes * 60),
            tokens=int(options.get("tokens") or own.tokens),
            money_usd=float(options.get("money") or own.money),
            step_s=own.step_minutes * 60,
            check_s=own.check_minutes * 60,
        )


def run_options(options: dict[str, Any]) -> Options:
    """How one run is to be run: `check_runs` and `approve` where its start gave them."""
    approve = str(options.get("approve") or "")
    return Options(
        approve=tuple(name for name in approve.split(",") if name),
        check_runs=int(options.get("check_runs") or 1),
        isolate=bool(options.get("isolate")),
    )


def read_config(home: Path) -> object:
    """What the host's configuration file under this HERMES_HOME holds; empty without one. Raises InputError."""
    file = home / "config.yaml"
    try:
        return yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"a readable {file}", " ".join(str(error).split()), "mend the file") from error


def load_settings(home: Path) -> Settings:
    """The settings under this HERMES_HOME; the defaults where it says nothing. Raises InputError."""
    raw = read_config(home)
    try:
        return Settings.model_validate(section(raw, "plugins", "entries", "matrix_coder", "settings") or {})
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(("settings", *(str(p) for p in first["loc"])))
        wrong = "a key that is none of ours" if first["type"] == "extra_forbidden" else first["msg"]
        known = ", ".join(f"{name}.{key}" for name, field in Settings.model_fields.items() for key in _keys(field))
        raise InputError(
            f"a valid plugins.entries.matrix_coder.{where}",
            f"{first.get('input')!r} ({wrong})",
            f"mend {home / 'config.yaml'}; the keys are {known}",
        ) from error


def _keys(field: FieldInfo) -> list[str]:
    section = field.annotation
    return list(section.model_fields) if isinstance(section, type) and issubclass(section, BaseModel) else []


def chat_settings(home: Path) -> Settings:
    """The settings for a chat turn: where they can't be used, the defaults, and one line in the log.

    A start of a run tells of the fault; a turn must not lose its specialist over it.
    """
    try:
        return load_settings(home)
    except InputError as error:
        log.error("matrix_coder: the settings can't be used, the defaults hold: %s", error)
        return Settings()


def section(raw: object, *keys: str) -> object:
    """The part of a configuration that these keys lead to; None where it has none."""
    for key in keys:
        raw = raw.get(key) if isinstance(raw, dict) else None
    return raw
