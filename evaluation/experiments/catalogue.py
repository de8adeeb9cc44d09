"""The experiments by their verbs: what each has to measure, and what is made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evaluation.experiments.breakdown import BreakdownResult, breakdown
from evaluation.experiments.cost import COST
from evaluation.experiments.cpu import CPU
from evaluation.experiments.latency import LATENCY
from evaluation.experiments.load import LoadResult, load
from evaluation.experiments.memory import MEMORY_USE
from evaluation.experiments.metric import MetricResult
from evaluation.experiments.recorded import RunFolder
from evaluation.experiments.slo import SloResult, slo
from evaluation.experiments.throughput import THROUGHPUT
from evaluation.measurements.breakdown import BREAKDOWN
from evaluation.measurements.check import CHECK
from evaluation.measurements.load import CLOSED, OPEN
from evaluation.measurements.memory import MEMORY
from evaluation.measurements.requests import REQUESTS
from evaluation.measurements.rounds import Measurement

Result = MetricResult | SloResult | LoadResult | BreakdownResult


@dataclass(frozen=True)
class Experiment:
    """A verb of ``chiron evaluate``: its measurements, and the results that they give."""

    measurements: tuple[Measurement[Any], ...]
    results: tuple[Callable[[RunFolder], Result], ...]


EXPERIMENTS = {
    "latency": Experiment((REQUESTS, BREAKDOWN, MEMORY), (LATENCY.of, breakdown)),
    "slo": Experiment((REQUESTS,), (slo,)),
    "cpu": Experiment((REQUESTS,), (CPU.of,)),
    "memory": Experiment((MEMORY,), (MEMORY_USE.of,)),
    "throughput": Experiment((CLOSED, CHECK, OPEN), (THROUGHPUT.of, load)),
    "cost": Experiment((REQUESTS, MEMORY), (COST.of,)),
}


def measurements_of(names: list[str]) -> list[Measurement[Any]]:
    """What the experiments `names` measure, once each."""
    found = [m for name in names for m in EXPERIMENTS[name].measurements]
    return list({measurement.name: measurement for measurement in found}.values())


def results_of(names: list[str], folder: RunFolder) -> list[Result]:
    """The results of the experiments `names`, those left out of which nothing was measured."""
    made = [make(folder) for name in names for make in EXPERIMENTS[name].results]
    return [result for result in made if has_figures(result)]


def has_figures(result: Result) -> bool:
    """Whether anything was measured."""
    if isinstance(result, MetricResult):
        return any(row.value is not None for row in result.rows)
    return bool(result.rows)
