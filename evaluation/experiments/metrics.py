"""The metrics of Chiron's figures 13, 16, 17 and 19: latency, memory, CPU, throughput, cost."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

from chiron.deployment.measure import percentile
from chiron.evaluation.bench.rounds import Measurement, Sample
from chiron.evaluation.experiments.metric import Details, Metric
from chiron.evaluation.experiments.published import (
    USD_PER_TRANSITION,
    held_usd,
    published_value,
    used_usd,
)
from chiron.evaluation.experiments.recorded import Recorded
from chiron.evaluation.intervals import Rounds
from chiron.evaluation.measurements.client import FEWEST
from chiron.evaluation.measurements.load import CLOSED, Closed, ClosedSample
from chiron.evaluation.measurements.single import MEMORY, REQUESTS

_MILLION = 1e6


def pooled(rounds: Rounds) -> list[float]:
    """Return the values of all rounds in one list."""
    return [value for each in rounds for value in each]


def _rounds(
    recorded: Recorded,
    measurement: Measurement[Sample],
    values: Callable[[Sample], Sequence[float] | None],
) -> dict[str, Rounds]:
    """Return the `values` of every round by label, for variants with values in all samples."""
    found: dict[str, Rounds] = {}
    for label, samples in recorded.samples(measurement).items():
        seen = [each for each in map(values, samples) if each is not None]
        if len(seen) == len(samples):
            found[label] = seen
    return found


# Latency (Figure 13)


def latency_rounds(recorded: Recorded) -> dict[str, Rounds]:
    """Return the latencies of every variant by round, in milliseconds."""
    return _rounds(recorded, REQUESTS, lambda sample: sample.latencies_ms)


def _latency_details(recorded: Recorded) -> Details:
    rounds, memory = latency_rounds(recorded), _memory_mib(recorded)
    found: Details = {}
    for label, plan in recorded.setup.plans.items():
        measured = recorded.first[label]
        if measured not in rounds:
            continue
        values = pooled(rounds[measured])
        figures = found[label] = {
            "requests": float(len(values)),
            "mean_ms": round(statistics.fmean(values), 3),
            "p95_ms": round(percentile(values, 0.95), 3),
            "p99_ms": round(percentile(values, 0.99), 3),
        }
        if predicted := plan.predicted:
            figures["predicted_ms"] = predicted.latency_ms
            figures["predicted_low_ms"] = predicted.low_ms
            figures["predicted_high_ms"] = predicted.high_ms
            # With several payloads, the prediction is a mean.
            typical = statistics.fmean if predicted.payloads_ms else statistics.median
            figures["error"] = round(predicted.latency_ms / typical(values) - 1, 4)
        if slo_ms := recorded.setup.slo_ms.get(plan.mechanisms):
            figures["slo_ms"] = round(slo_ms, 3)
            figures["over_slo"] = round(sum(ms > slo_ms for ms in values) / len(values), 4)
        if measured in memory:
            figures["mib"] = round(memory[measured], 1)
    return found


# Memory (Figure 16)


def _memory_rounds(recorded: Recorded) -> dict[str, Rounds]:
    """Return the memory under load by round in MiB, of variants with visible sandboxes."""
    return _rounds(recorded, MEMORY, lambda s: None if s.busy_mib is None else [s.busy_mib])


def _memory_mib(recorded: Recorded) -> Mapping[str, float]:
    return {label: statistics.median(pooled(r)) for label, r in _memory_rounds(recorded).items()}


def _memory_details(recorded: Recorded) -> Details:
    """Return the memory between requests."""
    samples = recorded.samples(MEMORY)
    found = {}
    for label, measured in recorded.first.items():
        idle = [s.idle_mib for s in samples.get(measured, ()) if s.idle_mib is not None]
        if idle:
            found[label] = {"idle_mib": round(statistics.median(idle), 3)}
    return found


# CPU time, beside the CPUs of the plan (Figure 17)


def _cpu_rounds(recorded: Recorded) -> dict[str, Rounds]:
    """Return the CPU milliseconds per request by round, of variants with visible sandboxes."""
    return _rounds(
        recorded,
        REQUESTS,
        lambda s: None if s.cpu_s is None else [1000 * s.cpu_s / len(s.latencies_ms)],
    )


def _cpu_details(recorded: Recorded) -> Details:
    """Return the CPUs of the paper's plans; the rows have the CPUs of the measured plans."""
    cpus = {label: published_value(recorded.name, label, "cpus") for label in recorded.setup.plans}
    return {label: {"paper_cpus": count} for label, count in cpus.items() if count is not None}


# Throughput of the whole machine (Figure 16)


def _throughput_rounds(recorded: Recorded) -> dict[str, Rounds]:
    return {label: [[each.per_s] for each in found] for label, found in _best(recorded).items()}


def _best(recorded: Recorded) -> dict[str, list[ClosedSample]]:
    """Return the samples of every round at the number of clients with the highest mean."""
    best = {label: _most(rounds) for label, rounds in recorded.samples(CLOSED).items()}
    return {label: samples for label, samples in best.items() if samples}


def _most(rounds: Sequence[Closed]) -> list[ClosedSample]:
    """Return the samples of all rounds at the number of clients with the highest throughput.

    A number of clients is left out if any of its windows has too few requests for a figure.
    """
    levels = [list(level) for level in zip(*rounds, strict=True)]
    enough = [level for level in levels if not any(each.too_few for each in level)]
    return max(enough, key=lambda level: statistics.fmean(e.per_s for e in level), default=[])


def _throughput_details(recorded: Recorded) -> Details:
    best = _best(recorded)
    found: Details = {}
    for label, first in recorded.first.items():
        if not (samples := best.get(first)):
            continue
        per_cpu = statistics.fmean(s.per_s for s in samples) / recorded.setup.plans[label].cpus
        figures = found[label] = {
            "per_cpu": round(per_cpu, 3),
            "clients": float(samples[0].clients),
            "errors": float(sum(each.errors for each in samples)),
        }
        if p95 := [each.p95_ms for each in samples if each.p95_ms is not None]:
            figures["p95_ms"] = round(statistics.median(p95), 3)
        cpu_ms = [each.cpu_ms for each in samples if each.cpu_ms is not None]
        for part in cpu_ms[0] if cpu_ms else ():
            seen = [each[part] for each in cpu_ms if part in each]
            figures[f"{part} ms"] = round(statistics.fmean(seen), 3)
    return found


# Cost: a request pays for its plan's CPUs and the measured memory for its duration (Figure 19)


def _cost_rounds(recorded: Recorded) -> dict[str, Rounds]:
    """Return the USD per million requests by round, of variants whose memory is known."""
    memory, ghz = _memory_mib(recorded), recorded.ghz
    cpus = {label: plan.cpus for label, plan in recorded.setup.plans.items()}
    if recorded.replicate is not None:
        first, second = recorded.replicate
        cpus[second] = cpus[first]
    return {
        label: [
            [_MILLION * held_usd(ms, cpus[label], ghz, memory[label]) for ms in each]
            for each in found
        ]
        for label, found in latency_rounds(recorded).items()
        if label in memory
    }


def _cost_details(recorded: Recorded) -> Details:
    """Return ``used``: the cost by used CPU time; ``transitions``: the orchestrator's price."""
    memory, latency, cpu = _memory_mib(recorded), latency_rounds(recorded), _cpu_rounds(recorded)
    found: Details = {}
    for label, measured in recorded.first.items():
        if measured not in memory or measured not in latency:
            continue
        mib, mean_ms = memory[measured], statistics.fmean(pooled(latency[measured]))
        figures = found[label] = {"memory_mib": round(mib, 3), "mean_ms": round(mean_ms, 3)}
        if measured in cpu:
            cpu_s = statistics.fmean(pooled(cpu[measured])) / 1000
            figures["used"] = round(_MILLION * used_usd(mean_ms, cpu_s, recorded.ghz, mib), 6)
        if recorded.setup.plans[label].orchestrator == "client":
            tasks = sum(recorded.setup.stages)
            figures["transitions"] = round(_MILLION * tasks * USD_PER_TRANSITION, 6)
    return found


LATENCY = Metric(
    experiment="latency",
    metric="median end-to-end latency",
    unit="ms",
    statistic=statistics.median,
    rounds=latency_rounds,
    details=_latency_details,
    measurement=REQUESTS,
)
MEMORY_USE = Metric(
    experiment="memory",
    metric="memory under load",
    unit="MiB",
    statistic=statistics.median,
    rounds=_memory_rounds,
    details=_memory_details,
    measurement=MEMORY,
)
CPU = Metric(
    experiment="cpu",
    metric="CPU time a request",
    unit="ms",
    rounds=_cpu_rounds,
    details=_cpu_details,
    measurement=REQUESTS,
)
THROUGHPUT = Metric(
    experiment="throughput",
    metric="maximum throughput",
    unit="requests/s",
    better="higher",
    rounds=_throughput_rounds,
    details=_throughput_details,
    measurement=CLOSED,
    silent=f"too few requests: below {FEWEST} a window",
)
COST = Metric(
    experiment="cost",
    metric="cost of a million requests",
    unit="USD",
    rounds=_cost_rounds,
    details=_cost_details,
    measurement=REQUESTS,
)
