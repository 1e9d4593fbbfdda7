"""Money in words. All of it is the host's estimate, from the prices that it knows."""

from __future__ import annotations

from .models import Usage


def dollars(amount: float) -> str:
    """`$5.02`; less than a dime to the hundredth of a cent, and never less than that for more than nothing."""
    shown = max(amount, 0.0001) if amount else 0.0
    whole_cents = shown >= 0.1 or round(shown, 4) == round(shown, 2)
    return f"${shown:,.2f}" if whole_cents else f"${shown:.4f}"


def money_words(usage: Usage) -> str:
    """`$0.42`, `at least $0.42` where some tokens had no price; empty where nothing was priced."""
    if usage.unpriced_tokens:
        return f"at least {dollars(usage.cost_usd)}" if usage.cost_usd else ""
    return dollars(usage.cost_usd) if usage.tokens else ""


def unpriced_words(usage: Usage, budget_usd: float = 0.0) -> str:
    """What is to be said of tokens without a price, beside a money budget or a cost; empty where nothing is."""
    if not usage.unpriced_tokens or not (budget_usd or usage.cost_usd):
        return ""
    counted = f"; the money budget of {dollars(budget_usd)} does not count them" if budget_usd else ""
    return f"{usage.unpriced_tokens:,} tokens had no price the host knows{counted}"
