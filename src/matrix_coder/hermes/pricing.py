"""What one call of the model cost, as far as the host knows. The host's figures are estimates from its price lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Prices come from lists that others serve: text where a mapping belongs, an endless number, an address that is none.
# A host without this function, or with another shape of it, knows no price for us.
_CANT_PRICE = (ArithmeticError, AttributeError, ImportError, TypeError, ValueError)
_BUCKETS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """One call: tokens in (cached ones too) and out, dollars, and its tokens that the host knew no price for."""

    input: int
    output: int
    cost: float = 0.0
    unpriced: int = 0


def price(call: Mapping[str, Any]) -> Priced | None:
    """What the host's hook after a call of the model tells, priced; None where no usage was told. Never raises.

    What is included in a subscription, and what the host knows to cost nothing, is priced at 0.
    """
    usage = call.get("usage")
    if not isinstance(usage, Mapping):
        return None
    buckets = {name: _whole(usage.get(name)) for name in _BUCKETS}
    output = buckets["output_tokens"]
    given = sum(buckets.values()) - output
    cost = _host_estimate(call, buckets)
    if cost is None:
        return Priced(input=given, output=output, unpriced=given + output)
    return Priced(input=given, output=output, cost=cost)


def _host_estimate(call: Mapping[str, Any], buckets: Mapping[str, int]) -> float | None:
    try:
        from agent.usage_pricing import CanonicalUsage, estimate_usage_cost  # noqa: PLC0415 - the host's

        amount = estimate_usage_cost(
            str(call.get("model") or ""),
            CanonicalUsage(**buckets),
            provider=str(call.get("provider") or ""),
            base_url=str(call.get("base_url") or ""),
        ).amount_usd
    except _CANT_PRICE:
        return None
    # A router that picks the model itself is listed at -1; that is no price.
    return float(amount) if amount is not None and amount.is_finite() and amount >= 0 else None


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
