"""The closed sets of names that people type, in the order in which they are shown."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """A specialist."""

    REVIEW = "review"
    EXECUTOR = "executor"
    EXPLORE = "explore"
    PLAN = "plan"
    DEBUG = "debug"
    TEST = "test"
    VERIFY = "verify"
    SIMPLIFY = "simplify"


class Lens(StrEnum):
    """What a review looks for."""

    SECURITY = "security"
    CODE = "code"
    API = "api"
    PERFORMANCE = "performance"
    QUALITY = "quality"
    DEPS = "deps"


class Domain(StrEnum):
    """A stack whose rules a specialist knows."""

    FRONTEND = "frontend"
    BACKEND_API = "backend-api"
    DATA_DB = "data-db"
    INFRA_CLI = "infra-cli"
    PLUGIN_SKILL_AUTHORING = "plugin-skill-authoring"


class Workflow(StrEnum):
    """A loop that the engine drives."""

    RALPH = "ralph"
    AUTOPILOT = "autopilot"
    ULTRAWORK = "ultrawork"
    ULTRAQA = "ultraqa"
