"""The metrics of Chiron's figures 13, 16, 17 and 19: latency, memory, CPU, throughput, cost."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from deployment.measure import percentile
from evaluation.experiments.metric import Metric
from evaluation.experiments.published import USD_PER_TRANSITION, held_usd, published_value, used_usd
from evaluation.experiments.recorded import Recorded, RunFolder
from evaluation.intervals import Rounds
from evaluation.load.client import FEWEST
from evaluation.load.loops import ClosedSample
from evaluation.measurements.load import CHECK, CLOSED, Closed
from evaluation.measurements.single import MEMORY, REQUESTS
from workflow.plan import Prediction

_MILLION = 1e6
#: The clock of the paper's machines, for those that do not tell theirs.
_GHZ = 2.1
Details = dict[str, dict[str, float]]


def pooled(rounds: Rounds) -> list[float]:
    """All values, whatever their rounds."""
    return [value for each in rounds for value in each]


# Latency (Figure 13)


def latency_rounds(recorded: Recorded) -> dict[str, Rounds]:
    """The latencies of every variant by round, in milliseconds."""
    samples = recorded.samples(REQUESTS)
    return {label: [each.latencies_ms for each in found] for label, found in samples.items()}


def _latency_details(_: RunFolder, recorded: Recorded) -> Details:
    rounds, memory = latency_rounds(recorded), memory_rounds(recorded)
    found = {}
    for label, plan in recorded.setup.plans.items():
        measured = recorded.first[label]
        if measured not in rounds:
            continue
        values = pooled(rounds[measured])
        found[label] = _latency_figures(values, plan.predicted)
        if slo_ms := recorded.setup.slo_ms.get(plan.mechanism):
            over = sum(value > slo_ms for value in values) / len(values)
            found[label] |= {"slo_ms": round(slo_ms, 3), "over_slo": round(over, 4)}
        if measured in memory:
            found[label]["mib"] = round(statistics.median(pooled(memory[measured])), 1)
    return found


def _latency_figures(values: list[float], predicted: Prediction | None) -> dict[str, float]:
    found = {
        "requests": float(len(values)),
        "mean_ms": round(statistics.fmean(values), 3),
        "p95_ms": round(percentile(values, 0.95), 3),
        "p99_ms": round(percentile(values, 0.99), 3),
    }
    if predicted is not None:
        found["predicted_ms"] = predicted.latency_ms
        found["predicted_low_ms"] = predicted.low_ms
        found["predicted_high_ms"] = predicted.high_ms
        found["error"] = round(predicted.latency_ms / statistics.median(values) - 1, 4)
    return found


# Memory (Figure 16)


def memory_rounds(recorded: Recorded) -> dict[str, Rounds]:
    """Memory under load by round in MiB, of the variants whose sandboxes are to be seen."""
    rounds: dict[str, Rounds] = {}
    for label, found in recorded.samples(MEMORY).items():
        seen = [[each.busy_mib] for each in found if each.busy_mib is not None]
        if len(seen) == len(found):
            rounds[label] = seen
    return rounds


def _memory_details(_: RunFolder, recorded: Recorded) -> Details:
    """The memory between requests."""
    samples = recorded.samples(MEMORY)
    found = {}
    for label, measured in recorded.first.items():
        idle = [s.idle_mib for s in samples.get(measured, ()) if s.idle_mib is not None]
        if idle:
            found[label] = {"idle_mib": round(statistics.median(idle), 3)}
    return found


# CPU time, beside the CPUs of the plan (Figure 17)


def cpu_rounds(recorded: Recorded) -> dict[str, Rounds]:
    """CPU milliseconds a request by round, of the variants whose sandboxes are to be seen."""
    rounds: dict[str, Rounds] = {}
    for label, found in recorded.samples(REQUESTS).items():
        seen = [(s.cpu_s, len(s.latencies_ms)) for s in found if s.cpu_s is not None]
        if len(seen) == len(found):
            rounds[label] = [[1000 * cpu_s / count] for cpu_s, count in seen]
    return rounds


def _cpu_details(_: RunFolder, recorded: Recorded) -> Details:
    """The CPUs that the paper's plans have: those of ours are in the rows anyway."""
    cpus = {label: published_value(recorded.name, label, "cpus") for label in recorded.setup.plans}
    return {label: {"paper_cpus": count} for label, count in cpus.items() if count is not None}


# Throughput of the whole machine (Figure 16)


def _throughput_rounds(recorded: Recorded) -> dict[str, Rounds]:
    return {label: [[each.per_s] for each in found] for label, found in _best(recorded).items()}


def _best(recorded: Recorded) -> dict[str, list[ClosedSample]]:
    """The samples of every round at that number of clients which has the highest mean."""
    best = {label: most(rounds) for label, rounds in recorded.samples(CLOSED).items()}
    return {label: samples for label, samples in best.items() if samples}


def most(rounds: Sequence[Closed]) -> list[ClosedSample]:
    """Of samples by round and number of clients, those of the number that answers most.

    Numbers of clients at which a window had too few requests for a figure are left out.
    """
    levels = [list(level) for level in zip(*rounds, strict=True)]
    enough = [level for level in levels if not any(each.too_few for each in level)]
    return max(enough, key=lambda level: statistics.fmean(e.per_s for e in level), default=[])


def _throughput_details(_: RunFolder, recorded: Recorded) -> Details:
    best, checked = _best(recorded), recorded.samples(CHECK)
    found = {}
    for label, first in recorded.first.items():
        if first in best:
            cpus = recorded.setup.plans[label].cpus
            found[label] = _throughput_figures(best[first], checked.get(first, ()), cpus)
    return found


def _throughput_figures(
    samples: Sequence[ClosedSample], by_wrk: Sequence[ClosedSample], cpus: int
) -> dict[str, float]:
    found = {
        "per_cpu": round(statistics.fmean(each.per_s for each in samples) / cpus, 3),
        "clients": float(samples[0].clients),
        "errors": float(sum(each.errors for each in samples)),
    }
    p95 = [each.p95_ms for each in samples if each.p95_ms is not None]
    if p95:
        found["p95_ms"] = round(statistics.median(p95), 3)
    cpu_ms = [each.cpu_ms for each in samples if each.cpu_ms is not None]
    for part in cpu_ms[0] if cpu_ms else ():
        seen = [each[part] for each in cpu_ms if part in each]
        found[f"{part} ms"] = round(statistics.fmean(seen), 3)
    enough = [each.per_s for each in by_wrk if not each.too_few]
    if enough:
        found["wrk_per_s"] = round(statistics.fmean(enough), 3)
    return found


# Cost: a request pays for its plan's CPUs and the measured memory as long as it lasts (Figure 19)


def _cost_rounds(folder: RunFolder, recorded: Recorded) -> dict[str, Rounds]:
    """USD per million requests by round, of the variants whose memory is known."""
    memory, ghz = _memory_mib(recorded), folder.run.machine.ghz or _GHZ
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


def _cost_details(folder: RunFolder, recorded: Recorded) -> Details:
    """``used``: with the CPU time really used; ``transitions``: what an orchestrator takes."""
    memory, latency, cpu = _memory_mib(recorded), latency_rounds(recorded), cpu_rounds(recorded)
    found: Details = {}
    for label, measured in recorded.first.items():
        if measured not in memory or measured not in latency:
            continue
        mib, mean_ms = memory[measured], statistics.fmean(pooled(latency[measured]))
        figures = {"memory_mib": round(mib, 3), "mean_ms": round(mean_ms, 3)}
        if measured in cpu:
            cpu_s = statistics.fmean(pooled(cpu[measured])) / 1000
            used = used_usd(mean_ms, cpu_s, folder.run.machine.ghz or _GHZ, mib)
            figures["used"] = round(_MILLION * used, 6)
        if recorded.setup.plans[label].orchestrator == "client":
            tasks = sum(recorded.setup.stages)
            figures["transitions"] = round(_MILLION * tasks * USD_PER_TRANSITION, 6)
        found[label] = figures
    return found


def _memory_mib(recorded: Recorded) -> Mapping[str, float]:
    return {label: statistics.median(pooled(r)) for label, r in memory_rounds(recorded).items()}


LATENCY = Metric(
    experiment="latency",
    metric="median end-to-end latency",
    unit="ms",
    statistic=statistics.median,
    rounds=lambda _, recorded: latency_rounds(recorded),
    details=_latency_details,
    measurement=REQUESTS,
)
MEMORY_USE = Metric(
    experiment="memory",
    metric="memory under load",
    unit="MiB",
    statistic=statistics.median,
    rounds=lambda _, recorded: memory_rounds(recorded),
    details=_memory_details,
    measurement=MEMORY,
)
CPU = Metric(
    experiment="cpu",
    metric="CPU time a request",
    unit="ms",
    rounds=lambda _, recorded: cpu_rounds(recorded),
    details=_cpu_details,
    measurement=REQUESTS,
)
THROUGHPUT = Metric(
    experiment="throughput",
    metric="maximum throughput",
    unit="requests/s",
    better="higher",
    rounds=lambda _, recorded: _throughput_rounds(recorded),
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
