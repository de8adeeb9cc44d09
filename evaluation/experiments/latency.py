"""End-to-end latency, one request at a time (Chiron Figure 13)."""

from __future__ import annotations

import statistics

from evaluation.experiments.memory import memory_rounds
from evaluation.experiments.metric import Metric
from evaluation.experiments.recorded import Recorded, RunFolder
from evaluation.intervals import Rounds
from evaluation.measurements.requests import REQUESTS
from generator.measure import percentile
from workflow.plan import Prediction


def latency_rounds(recorded: Recorded) -> dict[str, Rounds]:
    """The latencies of every variant by round, in milliseconds."""
    samples = recorded.samples(REQUESTS)
    return {label: [each.latencies_ms for each in found] for label, found in samples.items()}


def pooled(rounds: Rounds) -> list[float]:
    """All values, whatever their rounds."""
    return [value for each in rounds for value in each]


def _rounds(_: RunFolder, recorded: Recorded) -> dict[str, Rounds]:
    return latency_rounds(recorded)


def _details(_: RunFolder, recorded: Recorded) -> dict[str, dict[str, float]]:
    rounds, memory = latency_rounds(recorded), memory_rounds(recorded)
    found = {}
    for label, plan in recorded.setup.plans.items():
        measured = recorded.first[label]
        if measured not in rounds:
            continue
        values = pooled(rounds[measured])
        found[label] = _figures(values, plan.predicted)
        if slo_ms := recorded.setup.slo_ms.get(plan.mechanism):
            over = sum(value > slo_ms for value in values) / len(values)
            found[label] |= {"slo_ms": round(slo_ms, 3), "over_slo": round(over, 4)}
        if measured in memory:
            found[label]["mib"] = round(statistics.median(pooled(memory[measured])), 1)
    return found


def _figures(values: list[float], predicted: Prediction | None) -> dict[str, float]:
    found = {
        "requests": float(len(values)),
        "mean_ms": round(statistics.fmean(values), 3),
        "p95_ms": round(percentile(values, 0.95), 3),
        "p99_ms": round(percentile(values, 0.99), 3),
    }
    if predicted is not None:
        found["predicted_ms"] = predicted.latency_ms
        found["error"] = round(predicted.latency_ms / statistics.median(values) - 1, 4)
    return found


def _loops_ms(recorded: Recorded) -> list[float]:
    return recorded.loops_ms(REQUESTS)


LATENCY = Metric(
    experiment="latency",
    metric="median end-to-end latency",
    unit="ms",
    better="lower",
    statistic=statistics.median,
    rounds=_rounds,
    details=_details,
    loops_ms=_loops_ms,
)
