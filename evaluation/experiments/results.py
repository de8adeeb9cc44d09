"""The results of each verb of ``chiron evaluate``: metrics, SLO, load and breakdown."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from chiron.deployment.measure import percentile
from chiron.evaluation.bench.rounds import Measurement
from chiron.evaluation.bench.setup import BASELINE, SLACK_MS
from chiron.evaluation.bench.variants import Variant
from chiron.evaluation.experiments.metric import MetricResult
from chiron.evaluation.experiments.metrics import (
    COST,
    CPU,
    LATENCY,
    MEMORY_USE,
    THROUGHPUT,
    latency_rounds,
    pooled,
)
from chiron.evaluation.experiments.recorded import Recorded, RunFolder
from chiron.evaluation.intervals import Interval, share
from chiron.evaluation.measurements.breakdown import BREAKDOWN, Breakdown
from chiron.evaluation.measurements.client import FEWEST
from chiron.evaluation.measurements.load import CLOSED, OPEN, OpenSample
from chiron.evaluation.measurements.single import MEMORY, REQUESTS
from chiron.workflow.documents import Document


class SloRow(Document):
    """The requests of one variant that miss the SLO of its mechanism's plans (Chiron Figure 14).

    ``same_run_`` fields use Faastlane's mean in the same rounds as the requests instead: the
    machine may have been faster or slower when the SLO was set.
    """

    workflow: str
    mechanism: str
    variant: str
    requests: int
    mean_ms: float
    slo_ms: float
    violations: Interval
    same_run_slo_ms: float | None = None
    same_run_violations: Interval | None = None


class LoadRow(Document):
    """One variant at one rate; latencies are None if fewer than `FEWEST` requests were answered.

    ``failed`` is the share of requests that failed, or were dropped as too many were running.
    """

    workflow: str
    variant: str
    per_s: float
    arrived: int
    failed: float
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None


class BreakdownRow(Document):
    """The parts of the traced request with the median latency of one variant."""

    workflow: str
    variant: str
    traces: int
    typical: Breakdown


class SloResult(Document):
    """The SLO violations of every measured variant."""

    format: int = 1
    experiment: str = "slo"
    rows: tuple[SloRow, ...]


class LoadResult(Document):
    """The latencies of every variant at every measured rate."""

    format: int = 1
    experiment: str = "load"
    rows: tuple[LoadRow, ...]


class BreakdownResult(Document):
    """The parts of a request's time in every variant, which explain the ratios."""

    format: int = 1
    experiment: str = "breakdown"
    rows: tuple[BreakdownRow, ...]


Result = MetricResult | SloResult | LoadResult | BreakdownResult


def slo(folder: RunFolder) -> SloResult:
    """Return how often requests miss the SLO of our plans."""
    return SloResult(rows=tuple(row for each in folder.workflows for row in _slo(each)))


def _slo(recorded: Recorded) -> Iterator[SloRow]:
    rounds = latency_rounds(recorded)
    for mechanism, slo_ms in recorded.setup.slo_ms.items():
        baseline = rounds.get(recorded.first.get(Variant(BASELINE, mechanism).label, ""))
        same_run_ms = statistics.fmean(pooled(baseline)) + SLACK_MS if baseline else None
        for label, plan in recorded.setup.plans.items():
            values = pooled(rounds.get(recorded.first[label], ()))
            if Variant(plan.planner, mechanism).label == label and values:
                yield SloRow(
                    workflow=recorded.name,
                    mechanism=mechanism,
                    variant=label,
                    requests=len(values),
                    mean_ms=round(statistics.fmean(values), 3),
                    slo_ms=slo_ms,
                    violations=_above(values, slo_ms),
                    same_run_slo_ms=round(same_run_ms, 3) if same_run_ms else None,
                    same_run_violations=_above(values, same_run_ms) if same_run_ms else None,
                )


def _above(values: Sequence[float], slo_ms: float) -> Interval:
    return share(sum(ms > slo_ms for ms in values), len(values))


def load(folder: RunFolder) -> LoadResult:
    """Return the latencies of requests that arrive at constant rates."""
    return LoadResult(rows=tuple(row for each in folder.workflows for row in _load(each)))


def _load(recorded: Recorded) -> Iterator[LoadRow]:
    found = recorded.samples(OPEN)
    for label in recorded.setup.plans:
        by_rate: dict[float, list[OpenSample]] = {}
        for sample in chain.from_iterable(found.get(recorded.first[label], ())):
            by_rate.setdefault(sample.per_s, []).append(sample)
        for per_s, samples in by_rate.items():
            latencies = [ms for sample in samples for ms in sample.latencies_ms]
            arrived = sum(sample.arrived for sample in samples)
            failed = sum(sample.dropped + sample.errors for sample in samples)
            percentiles = {
                f"p{percent}_ms": round(percentile(latencies, percent / 100), 3)
                for percent in (50, 95, 99)
                if len(latencies) >= FEWEST
            }
            yield LoadRow(
                workflow=recorded.name,
                variant=label,
                per_s=per_s,
                arrived=arrived,
                failed=round(failed / arrived, 6),
                **percentiles,
            )


def breakdown(folder: RunFolder) -> BreakdownResult:
    """Return the typical parts of a request in every traced variant."""
    return BreakdownResult(rows=tuple(row for each in folder.workflows for row in _parts(each)))


def _parts(recorded: Recorded) -> Iterator[BreakdownRow]:
    samples = recorded.samples(BREAKDOWN)
    for label in recorded.setup.plans:
        traces = list(chain.from_iterable(samples.get(recorded.first[label], ())))
        if traces:
            typical = sorted(traces, key=lambda trace: trace.latency_ms)[(len(traces) - 1) // 2]
            yield BreakdownRow(
                workflow=recorded.name, variant=label, traces=len(traces), typical=typical
            )


class Experiment(NamedTuple):
    """A verb of ``chiron evaluate``: its measurements, and the functions that compute results."""

    measurements: tuple[Measurement[Any], ...]
    results: tuple[Callable[[RunFolder], Result], ...]


EXPERIMENTS = {
    "latency": Experiment((REQUESTS, BREAKDOWN, MEMORY), (LATENCY.of, breakdown)),
    "slo": Experiment((REQUESTS,), (slo,)),
    "cpu": Experiment((REQUESTS,), (CPU.of,)),
    "memory": Experiment((MEMORY,), (MEMORY_USE.of,)),
    "throughput": Experiment((CLOSED, OPEN), (THROUGHPUT.of, load)),
    "cost": Experiment((REQUESTS, MEMORY), (COST.of,)),
}


def measurements_of(names: list[str]) -> list[Measurement[Any]]:
    """Return the measurements of the experiments `names`, each once."""
    found = [m for name in names for m in EXPERIMENTS[name].measurements]
    return list({measurement.name: measurement for measurement in found}.values())


def results_of(names: list[str], folder: RunFolder) -> list[Result]:
    """Return the results of the experiments `names` that have measured rows."""
    made = [make(folder) for name in names for make in EXPERIMENTS[name].results]
    return [r for r in made if any(getattr(row, "value", row) is not None for row in r.rows)]
