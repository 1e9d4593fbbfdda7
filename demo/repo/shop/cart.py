"""Carts and what they cost. All amounts are whole cents."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One article in a cart."""

    name: str
    cents: int
    quantity: int = 1


def subtotal(lines: list[Line]) -> int:
    """The price of all lines together."""
    return sum(line.cents for line in lines)


def discount(cents: int, percent: int) -> int:
    """What a discount takes off, rounded in the customer's favour."""
    return cents * percent // 100


def total(lines: list[Line], percent: int = 0) -> int:
    """The price after the discount."""
    price = subtotal(lines)
    return price - discount(price, percent)
