"""The most requests per second that a variant answers on the whole machine (Chiron Figure 16)."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from evaluation.experiments.metric import Metric
from evaluation.experiments.recorded import Recorded, RunFolder
from evaluation.intervals import Rounds
from evaluation.load.closed import ClosedSample
from evaluation.measurements.check import CHECK
from evaluation.measurements.load import CLOSED, Closed


def _rounds(_: RunFolder, recorded: Recorded) -> dict[str, Rounds]:
    return {label: [[each.per_s] for each in found] for label, found in _best(recorded).items()}


def _details(_: RunFolder, recorded: Recorded) -> dict[str, dict[str, float]]:
    best, checked = _best(recorded), recorded.samples(CHECK)
    return {
        label: _figures(best[first], checked.get(first, ()), recorded.setup.plans[label].cpus)
        for label, first in recorded.first.items()
        if first in best
    }


def _best(recorded: Recorded) -> dict[str, list[ClosedSample]]:
    """The samples of every round at that number of clients which has the highest mean."""
    return {label: most(rounds) for label, rounds in recorded.samples(CLOSED).items()}


def most(rounds: Sequence[Closed]) -> list[ClosedSample]:
    """Of samples by round and number of clients, those of the number that answers most."""
    levels = zip(*rounds, strict=True)
    return list(max(levels, key=lambda level: statistics.fmean(each.per_s for each in level)))


def _figures(
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
    if by_wrk:
        found["wrk_per_s"] = round(statistics.fmean(each.per_s for each in by_wrk), 3)
    return found


def _loops_ms(recorded: Recorded) -> list[float]:
    return recorded.loops_ms(CLOSED)


THROUGHPUT = Metric(
    experiment="throughput",
    metric="maximum throughput",
    unit="requests/s",
    better="higher",
    statistic=statistics.fmean,
    rounds=_rounds,
    details=_details,
    loops_ms=_loops_ms,
)
