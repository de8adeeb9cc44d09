"""Measures plans in batches: those of one are deployed side by side and invoked in turn."""

from __future__ import annotations

import tempfile
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from evaluation.apart import apart
from evaluation.bench.bench import Bench, deploy, with_twin
from evaluation.bench.leftovers import Leftovers
from evaluation.bench.setup import Place
from evaluation.bench.variants import TWIN
from evaluation.prediction.measured import MeasuredRow, PacedRequest
from evaluation.prediction.waiting import deployed_alone, mostly_waiting, typical
from generator.launcher import Deployment
from generator.measure import WARM_UP, checked_invoke
from profiler.calibrate import overhead_ms
from profiler.invocation import Invocation
from profiler.noop_shapes import Shape, crowd, shapes, write_folder
from profiler.reference_loop import paced
from profiler.wasted_cores import CrowdRound, run_crowd, wasted_cores
from workflow.folder import WorkflowFolder
from workflow.plan import Plan
from workflow.profile import Profile

#: Plans that are deployed at once: few enough for the memory of a small machine.
BATCH = 8
#: The crowd, which takes as long as several requests, has its turn beside one request in so many.
_CROWD_ONE_IN = 2


@dataclass(frozen=True)
class _Known:
    """What has its turn in every batch since its work is known, so that it shows what drifts.

    Attributes
    ----------
    one
        The wrap of one function that does nothing but pause.
    crowd
        The plan of which calibration learns how many cores are wasted; None on a single core.
    """

    one: Deployment
    crowd: Deployment | None


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
    profile: Profile,
    samples: int,
) -> list[MeasuredRow]:
    """A row for every plan that the gateway takes and that answers right; one is measured twice.

    A no-op and a crowd have their turn too, so that it is known what a request costs and how many
    cores are wasted meanwhile, and so have the functions that, by `profile`, mostly wait, alone.

    Raises
    ------
    ChironError
        What deploying raises; ``nothing-deployed`` where not one plan answers right.
    """
    first = next(iter(plans))
    expected = profile.answer_to(folder.payload())
    overheads_ms = []
    crowds: list[CrowdRound] = []
    with (
        leftovers.removed_from(place.launcher.gateway),
        _known(place, leftovers) as known,
        deployed_alone(folder, place, mostly_waiting(profile), leftovers) as solos,
        # The last, since plans that the gateway has no room for are left out.
        deploy(folder, place, with_twin(plans, [first]), leftovers, expected) as bench,
    ):
        runs: dict[str, list[Invocation]] = {function: [] for function in solos}
        requests: dict[str, list[PacedRequest]] = {label: [] for label in bench.placed}
        for number in range(samples):
            overheads_ms.append(overhead_ms(known.one))
            if known.crowd is not None and number % _CROWD_ONE_IN == 0:
                crowds.append(run_crowd(known.one, known.crowd))
            for function, solo in solos.items():
                runs[function].append(solo.invoke(paced=True))
            for label, placed in bench.turns(number):
                requests[label].append(_request(placed.deployment, bench))
    again = requests.pop(f"{TWIN}{first}", [])
    return [
        MeasuredRow(
            plan=plans[label],
            requests=tuple(row),
            again=tuple(again) if label == first else (),
            overhead_ms=round(median(overheads_ms), 4),
            wasted_cores=wasted_cores(crowds) if crowds else None,
            alone={function: typical(each) for function, each in runs.items()},
        )
        for label, row in requests.items()
    ]


def _request(deployment: Deployment, bench: Bench) -> PacedRequest:
    took_ms, pace = paced(partial(checked_invoke, deployment, bench.body, bench.check))
    return PacedRequest(
        latency_ms=round(took_ms, 4),
        loop_ms=round(pace.loop_ms, 4),
        uneven=round(pace.uneven, 4),
    )


@contextmanager
def _known(place: Place, leftovers: Leftovers) -> Iterator[_Known]:
    """Both, warm, for the length of a ``with`` block."""
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="chiron-noop-"))
        folder = write_folder(Path(scratch))

        def deployed(shape: Shape) -> Deployment:
            plan = apart(shape.plan, shape.name)
            leftovers.note(wrap.name for wrap in plan.wraps)
            return stack.enter_context(place.launcher.launch(shape.workflow, folder, plan))

        one = next(shape for shape in shapes() if shape.name == "one")
        known = _Known(deployed(one), deployed(crowd()) if place.platform.cpus > 1 else None)
        for _ in range(WARM_UP):
            overhead_ms(known.one)
            if known.crowd is not None:
                run_crowd(known.one, known.crowd)
        yield known
