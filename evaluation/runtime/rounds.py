"""Quantities that are measured in turn, so that drift of the machine affects all of them alike."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple

from chiron.deployment.launcher import Launcher
from chiron.evaluation.bench.machine import Measured
from chiron.workflow.documents import Document

#: The measurements of one round: column -> milliseconds.
Round = Mapping[str, float]
#: Measures once: column -> milliseconds.
Probe = Callable[[], Round]
Unit = Literal["ms", "us", "s", "x", "1/s", "events", "windows", "times", ""]
_WARM_UP = 10
_RESAMPLED = 200


class Figure(Document):
    """One quantity: median and quartiles of `samples` rounds.

    `system` names the measured system if several are compared.
    """

    name: str
    system: str = ""
    unit: Unit
    median: float
    low: float
    high: float
    samples: int

    @classmethod
    def of(cls, name: str, values: Iterable[float], unit: Unit = "ms", system: str = "") -> Figure:
        """Return the figure of at least one value."""
        found = list(values)
        low, median, high = statistics.quantiles(
            found if len(found) > 1 else found * 2, n=4, method="inclusive"
        )
        return cls(
            name=name,
            system=system,
            unit=unit,
            median=round(median, 3),
            low=round(low, 3),
            high=round(high, 3),
            samples=len(found),
        )


class RuntimeReport(Measured):
    """All figures of one run."""

    figures: tuple[Figure, ...]


class Quantity(NamedTuple):
    """A figure's name and unit, and the function that computes it from the columns of a round."""

    name: str
    of: Callable[[Round], float]
    unit: Unit = "ms"
    system: str = ""

    def figure(self, rounds: Sequence[Round]) -> Figure:
        """Return the figure; differences within a round cancel slow spells of the machine."""
        return Figure.of(self.name, map(self.of, rounds), self.unit, self.system)


class Part(NamedTuple):
    """Quantities of the same rounds, hence comparable; `probes` deploys for the length of a block.

    `slower` divides the number of rounds, for parts whose rounds take longer.
    """

    name: str
    quantities: Sequence[Quantity]
    probes: Callable[[Launcher], AbstractContextManager[list[Probe]]]
    slower: int = 1


def resampled(
    name: str,
    samples: Sequence[Sequence[float]],
    of: Callable[[list[float]], float],
    unit: Unit = "ms",
) -> Figure:
    """Return the figure that `of` computes from the 99th percentile of each of `samples`.

    The quartiles are those of resampled samples (bootstrap).
    """
    draw = random.Random(0)  # noqa: S311
    drawn = [of([p99(draw.choices(each, k=len(each))) for each in samples])
             for _ in range(_RESAMPLED)]  # fmt: skip
    low, _, high = statistics.quantiles(drawn, n=4)
    return Figure(
        name=name,
        unit=unit,
        median=round(of([p99(each) for each in samples]), 3),
        low=round(low, 3),
        high=round(high, 3),
        samples=len(samples[0]),
    )


def p99(values: Sequence[float]) -> float:
    """Return the 99th percentile of at least two values."""
    return statistics.quantiles(values, n=100, method="inclusive")[98]


def interleaved(probes: Sequence[Probe], rounds: int) -> list[Round]:
    """Run all probes in each round, after a warm-up; every round begins with the next probe."""
    taken: list[Round] = []
    for number in range(_WARM_UP + rounds):
        columns: dict[str, float] = {}
        for turn in range(len(probes)):
            columns |= probes[(number + turn) % len(probes)]()
        taken.append(columns)
    return taken[_WARM_UP:]


def starts(moments_ms: Sequence[float], asked_ms: float = 0.0) -> tuple[float, float]:
    """Return the delay of the first process and the mean delay between the next ones, in ms.

    `moments_ms` are the times of the processes' first instructions.
    """
    ordered = sorted(moments_ms)
    return ordered[0] - asked_ms, (ordered[-1] - ordered[0]) / max(1, len(ordered) - 1)
