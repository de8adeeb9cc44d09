"""Measures plans in batches: those of one are deployed side by side and invoked in turn."""

from __future__ import annotations

import tempfile
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

from evaluation.apart import apart
from evaluation.bench.bench import Bench, deploy, with_twin
from evaluation.bench.leftovers import Leftovers
from evaluation.bench.setup import Place
from evaluation.bench.variants import TWIN
from evaluation.prediction.measured import MeasuredRow, PacedRequest
from generator.launcher import Deployment
from generator.measure import WARM_UP, checked_invoke
from profiler.calibrate import overhead_ms
from profiler.noop_shapes import shapes, write_folder
from profiler.reference_loop import paced
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

    A no-op has its turn too, so that it is known what a request costs meanwhile.

    Raises
    ------
    ChironError
        What deploying raises; ``nothing-deployed`` where not one plan answers right.
    """
    first = next(iter(plans))
    overheads_ms = []
    with (
        deploy(folder, place, with_twin(plans, [first]), leftovers) as bench,
        _noop(place, leftovers) as noop,
    ):
        requests: dict[str, list[PacedRequest]] = {label: [] for label in bench.placed}
        for number in range(samples):
            overheads_ms.append(overhead_ms(noop))
            for label, placed in bench.turns(number):
                requests[label].append(_request(placed.deployment, bench))
    again = requests.pop(f"{TWIN}{first}", [])
    return [
        MeasuredRow(
            plan=plans[label],
            requests=tuple(row),
            again=tuple(again) if label == first else (),
            overhead_ms=round(median(overheads_ms), 4),
        )
        for label, row in requests.items()
    ]


def _request(deployment: Deployment, bench: Bench) -> PacedRequest:
    took_ms, pace = paced(partial(checked_invoke, deployment, bench.body, bench.expected))
    return PacedRequest(
        latency_ms=round(took_ms, 4),
        loop_ms=round(pace.loop_ms, 4),
        uneven=round(pace.uneven, 4),
    )


@contextmanager
def _noop(place: Place, leftovers: Leftovers) -> Iterator[Deployment]:
    """The wrap of one function that does nothing, warm."""
    shape = next(shape for shape in shapes() if shape.name == "one")
    plan = apart(shape.plan, "noop")
    leftovers.note(wrap.name for wrap in plan.wraps)
    with tempfile.TemporaryDirectory(prefix="chiron-noop-") as scratch:
        launch = place.launcher.launch(shape.workflow, write_folder(Path(scratch)), plan)
        with launch as deployed:
            for _ in range(WARM_UP):
                overhead_ms(deployed)
            yield deployed
