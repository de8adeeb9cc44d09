"""Generates the request of the workflow: words, and the delay of each replica.

An equal number of words always gives the same words.
"""

from random import Random
from typing import Any

WORDS = {"test": 4, "small": 20, "large": 200}
DELAYS_MS = [5, 8, 100]


def payload(size: str) -> dict[str, Any]:
    """Return the request of that size: test, small or large."""
    random = Random(WORDS[size])  # noqa: S311 - a data set that can be made again, not a secret
    words = ["".join(random.choices("etaoinshrdlu", k=6)) for _ in range(WORDS[size])]
    return {"words": words, "delays_ms": DELAYS_MS}
