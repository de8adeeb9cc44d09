"""Measures plans in batches: those of one are deployed side by side and invoked in turn."""

from __future__ import annotations

import statistics
from collections.abc import Container, Iterator, Mapping, Sequence

from evaluation.bench.bench import deploy, with_twin
from evaluation.bench.leftovers import Leftovers
from evaluation.bench.setup import Place
from evaluation.bench.variants import TWIN
from evaluation.prediction.measured import MeasuredRow
from generator.measure import Measurement, checked_invoke
from profiler.reference_loop import reference_ms
from workflow.folder import WorkflowFolder
from workflow.plan import Plan

#: Plans that are deployed at once: few enough for the memory of a small machine.
BATCH = 8


def missing_batches(drawn: Sequence[Plan], measured: Container[Plan]) -> Iterator[dict[str, Plan]]:
    """The plans of every batch of `drawn` that are not `measured`, by what they are called.

    A batch is left out where all of its plans are measured.
    """
    for start in range(0, len(drawn), BATCH):
        batch = enumerate(drawn[start : start + BATCH], start=start + 1)
        missing = {f"plan {number}": plan for number, plan in batch if plan not in measured}
        if missing:
            yield missing


def measure_batch(
    folder: WorkflowFolder,
    place: Place,
    plans: Mapping[str, Plan],
    leftovers: Leftovers,
    *,
    samples: int,
) -> list[MeasuredRow]:
    """A row for every plan that the gateway takes and that answers right; one is measured twice.

    Raises
    ------
    ChironError
        What deploying raises; ``nothing-deployed`` where not one plan answers right.
    """
    first = next(iter(plans))
    with deploy(folder, place, with_twin(plans, [first]), leftovers) as bench:
        latencies: dict[str, list[float]] = {label: [] for label in bench.placed}
        loops = []
        for number in range(samples):
            loops.append(reference_ms())
            for label, placed in bench.turns(number):
                took_ms = checked_invoke(placed.deployment, bench.body, bench.expected)
                latencies[label].append(took_ms)
    again = latencies.pop(f"{TWIN}{first}", None)
    again_ms = round(statistics.median(again), 3) if again else None
    return [
        MeasuredRow(
            plan=plans[label],
            measured=Measurement.of(row),
            loop_ms=round(statistics.median(loops), 4),
            again_ms=again_ms if label == first else None,
        )
        for label, row in latencies.items()
    ]
