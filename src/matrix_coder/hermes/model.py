"""Whether the host has a model to talk to, asked before a run is started from a terminal."""

from __future__ import annotations

from ..core.errors import ModelMissing

_REMEDY = "run `hermes model` to choose a provider and a model"


def require_model() -> str:
    """The name of the model that the host's configuration leads to. Raises ModelMissing with one line."""
    from hermes_cli.config import load_config  # noqa: PLC0415 - the host's, and slow to import
    from hermes_cli.runtime_provider import resolve_runtime_provider  # noqa: PLC0415

    try:
        configured = load_config().get("model")
    except OSError as error:
        raise ModelMissing("a Hermes home that can be read", str(error), "point HERMES_HOME at one") from error
    name = str(configured.get("default") or "") if isinstance(configured, dict) else str(configured or "")
    if not name:
        raise ModelMissing("a model in the Hermes configuration", "none", _REMEDY)
    try:
        runtime = resolve_runtime_provider(requested=None, target_model=name)
    except (RuntimeError, ValueError) as error:
        raise ModelMissing("a provider that can be used", " ".join(str(error).split()), _REMEDY) from error
    if not runtime.get("base_url") and not runtime.get("api_key"):
        raise ModelMissing(f"credentials for the model {name}", "none", _REMEDY)
    return name
