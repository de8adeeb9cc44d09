"""Generates the request of the workflow: an order of some lines.

An equal number of lines always gives the same order.
"""

from random import Random
from typing import Any

LINES = {"test": 2, "small": 6, "large": 24}


def article(random: Random) -> str:
    """Return a GTIN-13: twelve digits and their check digit."""
    digits = [4, 0, *(random.randrange(10) for _ in range(10))]
    check = -(sum(digits[::2]) + 3 * sum(digits[1::2])) % 10
    return "".join(map(str, [*digits, check]))


def order(lines: int) -> dict[str, Any]:
    """Return a valid order of `lines` lines, whose buyer is no debtor."""
    random = Random(lines)  # noqa: S311 - a data set that can be made again, not a secret
    return {
        "id": f"A{lines:03}",
        "buyer": "Ada Lovelace",
        "card": "4539578763621486",
        "lines": [
            {
                "article": article(random),
                "quantity": random.randrange(5, 36),
                "cents": random.randrange(99, 999),
                "cl": random.randrange(50, 150),
            }
            for _ in range(lines)
        ],
    }


def payload(size: str) -> dict[str, Any]:
    """Return the request of that size: test, small or large."""
    return order(LINES[size])
