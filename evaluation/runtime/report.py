"""The figures of a run: what was measured, how it spread, and whether it met its goal."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evaluation.bench.machine import Machine
from workflow.documents import Document

#: What was measured in one round: column -> milliseconds.
Round = Mapping[str, float]
Unit = Literal["ms", "x"]


class Figure(Document):
    """One quantity: median and quartiles of `samples` rounds, and the most that it may be."""

    name: str
    unit: Unit
    median: float
    low: float
    high: float
    samples: int
    goal: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the median meets the goal; None where there is none."""
        return None if self.goal is None else self.median <= self.goal


class RuntimeReport(Document):
    """All figures of one run, and where they come from."""

    format: int = 1
    machine: Machine
    command: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Quantity:
    """How a figure follows from the columns of one round."""

    name: str
    of: Callable[[Round], float]
    goal: float | None = None
    unit: Unit = "ms"

    def figure(self, rounds: Sequence[Round]) -> Figure:
        """The figure of at least two rounds.

        Differences are taken within each round, so that what made a round slow is in neither.
        """
        values = [self.of(one) for one in rounds]
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return Figure(
            name=self.name,
            unit=self.unit,
            median=round(median, 3),
            low=round(low, 3),
            high=round(high, 3),
            samples=len(values),
            goal=self.goal,
        )


def figures(quantities: Iterable[Quantity], rounds: Sequence[Round]) -> tuple[Figure, ...]:
    """The figure of every quantity."""
    return tuple(quantity.figure(rounds) for quantity in quantities)
