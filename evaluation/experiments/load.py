"""Latency while requests arrive at a constant rate."""

from __future__ import annotations

from collections.abc import Sequence

from evaluation.experiments.recorded import Recorded, RunFolder
from evaluation.load.arrivals import OpenSample
from evaluation.measurements.load import OPEN
from generator.measure import percentile
from workflow.documents import Document


class LoadRow(Document):
    """One variant at one rate; latencies of what was answered, None where nothing was.

    ``failed`` is the share of requests that were dropped for too many under way, or went wrong.
    """

    workflow: str
    variant: str
    per_s: float
    arrived: int
    failed: float
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None


class LoadResult(Document):
    """All workflows."""

    format: int = 1
    experiment: str = "load"
    rows: tuple[LoadRow, ...]


def load(folder: RunFolder) -> LoadResult:
    """Every variant at every rate that it was tried at."""
    return LoadResult(rows=tuple(row for each in folder.workflows for row in _rows(each)))


def _rows(recorded: Recorded) -> list[LoadRow]:
    samples = recorded.samples(OPEN)
    rows = []
    for label in recorded.setup.plans:
        by_rate: dict[float, list[OpenSample]] = {}
        for rates in samples.get(recorded.first[label], ()):
            for sample in rates:
                by_rate.setdefault(sample.per_s, []).append(sample)
        rows += [_row(recorded.name, label, same) for same in by_rate.values()]
    return rows


def _row(workflow: str, label: str, samples: Sequence[OpenSample]) -> LoadRow:
    latencies = [ms for sample in samples for ms in sample.latencies_ms]
    arrived = sum(sample.arrived for sample in samples)
    failed = sum(sample.dropped + sample.errors for sample in samples)

    def at(fraction: float) -> float | None:
        return round(percentile(latencies, fraction), 3) if latencies else None

    return LoadRow(
        workflow=workflow,
        variant=label,
        per_s=samples[0].per_s,
        arrived=arrived,
        failed=round(failed / arrived, 6),
        p50_ms=at(0.5),
        p95_ms=at(0.95),
        p99_ms=at(0.99),
    )
