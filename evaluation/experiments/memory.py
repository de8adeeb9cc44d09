"""Memory of a variant's sandboxes while requests run, every page once (Chiron Figure 16)."""

from __future__ import annotations

import statistics

from evaluation.experiments.metric import Metric
from evaluation.experiments.recorded import Recorded, RunFolder
from evaluation.intervals import Rounds
from evaluation.measurements.memory import MEMORY


def memory_rounds(recorded: Recorded) -> dict[str, Rounds]:
    """Memory under load by round in MiB, of the variants whose sandboxes are to be seen."""
    rounds: dict[str, Rounds] = {}
    for label, found in recorded.samples(MEMORY).items():
        seen = [[each.busy_mib] for each in found if each.busy_mib is not None]
        if len(seen) == len(found):
            rounds[label] = seen
    return rounds


def _rounds(_: RunFolder, recorded: Recorded) -> dict[str, Rounds]:
    return memory_rounds(recorded)


def _details(_: RunFolder, recorded: Recorded) -> dict[str, dict[str, float]]:
    """The memory between requests."""
    samples = recorded.samples(MEMORY)
    found = {}
    for label, measured in recorded.first.items():
        idle = [s.idle_mib for s in samples.get(measured, ()) if s.idle_mib is not None]
        if idle:
            found[label] = {"idle_mib": round(statistics.median(idle), 3)}
    return found


def _loops_ms(recorded: Recorded) -> list[float]:
    return recorded.loops_ms(MEMORY)


MEMORY_USE = Metric(
    experiment="memory",
    metric="memory under load",
    unit="MiB",
    better="lower",
    statistic=statistics.median,
    rounds=_rounds,
    details=_details,
    loops_ms=_loops_ms,
)
