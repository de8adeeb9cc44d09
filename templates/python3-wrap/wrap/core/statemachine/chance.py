"""The source of random values is a parameter, so a replay with the same source is identical."""

from __future__ import annotations

from typing import Protocol


class Chance(Protocol):
    """A source of random values, such as a `random.Random`."""

    def uniform(self, low: float, high: float, /) -> float:
        """A number from `low` to `high`."""

    def randrange(self, low: int, high: int, /) -> int:
        """An integer from `low` on, below `high`."""

    def getrandbits(self, bits: int, /) -> int:
        """An integer of `bits` random bits."""
