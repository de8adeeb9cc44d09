"""USD per million requests by the paper's prices and formula (Chiron Figure 19).

A request pays for the CPUs of its plan and for the measured memory as long as it lasts. Among the
details, ``used`` has the CPU time that it really used instead, and ``transitions`` is what a
provider's orchestrator takes on top for one-to-one.
"""

from __future__ import annotations

import statistics

from evaluation.experiments.cpu import cpu_rounds
from evaluation.experiments.latency import latency_rounds, pooled
from evaluation.experiments.memory import memory_rounds
from evaluation.experiments.metric import Metric
from evaluation.experiments.prices import USD_PER_TRANSITION, held_usd, used_usd
from evaluation.experiments.recorded import Recorded, RunFolder
from evaluation.intervals import Rounds
from evaluation.measurements.requests import REQUESTS

_MILLION = 1e6
#: The paper's clock, for machines that do not tell theirs.
_GHZ = 2.1


def _rounds(folder: RunFolder, recorded: Recorded) -> dict[str, Rounds]:
    """USD per million requests by round, of the variants whose memory is known."""
    memory, ghz = _memory_mib(recorded), _ghz(folder)
    cpus = {label: plan.cpus for label, plan in recorded.setup.plans.items()}
    if recorded.twin is not None:
        first, second = recorded.twin
        cpus[second] = cpus[first]
    return {
        label: [
            [_MILLION * held_usd(ms, cpus[label], ghz, memory[label]) for ms in each]
            for each in found
        ]
        for label, found in latency_rounds(recorded).items()
        if label in memory
    }


def _details(folder: RunFolder, recorded: Recorded) -> dict[str, dict[str, float]]:
    memory, latency, cpu = _memory_mib(recorded), latency_rounds(recorded), cpu_rounds(recorded)
    found: dict[str, dict[str, float]] = {}
    for label, measured in recorded.first.items():
        if measured not in memory or measured not in latency:
            continue
        mib, mean_ms = memory[measured], statistics.fmean(pooled(latency[measured]))
        figures = {"memory_mib": round(mib, 3), "mean_ms": round(mean_ms, 3)}
        if measured in cpu:
            cpu_s = statistics.fmean(pooled(cpu[measured])) / 1000
            used = used_usd(mean_ms, cpu_s, _ghz(folder), mib)
            figures["used"] = round(_MILLION * used, 6)
        if recorded.setup.plans[label].called_by_client:
            tasks = sum(recorded.setup.stages)
            figures["transitions"] = round(_MILLION * tasks * USD_PER_TRANSITION, 6)
        found[label] = figures
    return found


def _memory_mib(recorded: Recorded) -> dict[str, float]:
    return {label: statistics.median(pooled(r)) for label, r in memory_rounds(recorded).items()}


def _ghz(folder: RunFolder) -> float:
    return folder.run.machine.ghz or _GHZ


def _loops_ms(recorded: Recorded) -> list[float]:
    return recorded.loops_ms(REQUESTS)


COST = Metric(
    experiment="cost",
    metric="cost of a million requests",
    unit="USD",
    better="lower",
    statistic=statistics.fmean,
    rounds=_rounds,
    details=_details,
    loops_ms=_loops_ms,
)
