"""Chance is a parameter: who runs a machine says what is random, so a replay comes to the same."""

from __future__ import annotations

from typing import Protocol


class Chance(Protocol):
    """Where random values come from: a `random.Random`, for example."""

    def uniform(self, low: float, high: float, /) -> float:
        """A number from `low` to `high`."""

    def randrange(self, low: int, high: int, /) -> int:
        """An integer from `low` on, below `high`."""

    def getrandbits(self, bits: int, /) -> int:
        """An integer of so many bits."""
