"""Makes the request of the workflow in the sizes that every benchmark has."""

from typing import Any

from .portfolio import portfolio

TRADES = {"test": 50, "small": 300, "large": 3000}


def payload(size: str) -> dict[str, Any]:
    """Return the request of that size: test, small or large."""
    return portfolio(TRADES[size])
