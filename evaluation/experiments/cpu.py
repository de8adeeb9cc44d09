"""CPU time that a request takes from the sandboxes, beside the CPUs of the plan (Figure 17)."""

from __future__ import annotations

import statistics

from evaluation.experiments.metric import Metric
from evaluation.experiments.published import published_value
from evaluation.experiments.recorded import Recorded, RunFolder
from evaluation.intervals import Rounds
from evaluation.measurements.requests import REQUESTS


def cpu_rounds(recorded: Recorded) -> dict[str, Rounds]:
    """CPU milliseconds a request by round, of the variants whose sandboxes are to be seen."""
    rounds: dict[str, Rounds] = {}
    for label, found in recorded.samples(REQUESTS).items():
        seen = [(s.cpu_s, len(s.latencies_ms)) for s in found if s.cpu_s is not None]
        if len(seen) == len(found):
            rounds[label] = [[1000 * cpu_s / count] for cpu_s, count in seen]
    return rounds


def _rounds(_: RunFolder, recorded: Recorded) -> dict[str, Rounds]:
    return cpu_rounds(recorded)


def _details(_: RunFolder, recorded: Recorded) -> dict[str, dict[str, float]]:
    """The CPUs that the paper's plans have: those of ours are in the rows anyway."""
    cpus = {label: published_value(recorded.name, label, "cpus") for label in recorded.setup.plans}
    return {label: {"paper_cpus": count} for label, count in cpus.items() if count is not None}


def _loops_ms(recorded: Recorded) -> list[float]:
    return recorded.loops_ms(REQUESTS)


CPU = Metric(
    experiment="cpu",
    metric="CPU time a request",
    unit="ms",
    better="lower",
    statistic=statistics.fmean,
    rounds=_rounds,
    details=_details,
    loops_ms=_loops_ms,
)
