"""Runs the evaluation: profiles and plans every workflow, measures each alone and all at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from chiron.deployment.deploy import Progress
from chiron.evaluation.bench.settings import FULL, QUICK, Scale
from chiron.evaluation.bench.setup import Place
from chiron.evaluation.scientific.alone import Part, measure, prepare, profile_of
from chiron.evaluation.scientific.report import (
    TogetherRow,
    WorkflowRow,
    together_rows,
    workflow_row,
)
from chiron.evaluation.scientific.together import Neighbour, measure_together
from chiron.evaluation.scientific.variants import BASELINE, FAASFLOW, OURS, VARIANTS
from chiron.workflow.folder import WorkflowFolder


@dataclass(frozen=True)
class Amount:
    """The amount of measurements.

    ``samples`` is about the number of profiling runs of each function. ``rounds`` and the windows'
    ``seconds`` are for all workflows at once.
    """

    scale: Scale
    samples: int
    rounds: int
    seconds: float


QUICK_AMOUNT = Amount(replace(QUICK, requests=21, requests_s=60.0, most_s=5.0), 5, 2, 2.0)
FULL_AMOUNT = Amount(replace(FULL, requests=100, requests_s=300.0), 20, 5, 5.0)


def measure_all(
    traced: Sequence[WorkflowFolder],
    beside: Sequence[WorkflowFolder],
    place: Place,
    out: Path,
    amount: Amount,
    parts: Collection[Part],
    labels: Collection[str] = VARIANTS,
    nodes: int = 1,
) -> tuple[tuple[WorkflowRow, ...], tuple[TogetherRow, ...]]:
    """Measure the `traced` workflows alone, and together with the workflows `beside` them.

    Variants with these `labels` are measured alone and under load. Measurements of an earlier run
    in the folder `out` are kept. Raises the errors of profiling and deploying.
    """
    rows, neighbours = list[WorkflowRow](), list[Neighbour]()
    for folder in (*traced, *(beside if "together" in parts else ())):
        name = folder.workflow.name
        own, here = out / name, place._replace(progress=partial(_named, name, place.progress))
        functions = profile_of(folder, here, own, amount.samples)
        plans = prepare(folder, here, own, functions, nodes)
        neighbours.append(Neighbour(folder, functions, plans.plans))
        if folder in traced and not {"alone", "load"}.isdisjoint(parts):
            chosen = {label: plan for label, plan in plans.plans.items() if label in labels}
            measure(folder, here, own, chosen, functions, amount.scale, parts)
            rows.append(workflow_row(name, plans, own))
    if "together" in parts:
        variants = (BASELINE, FAASFLOW, OURS)
        measure_together(neighbours, place, out, variants, amount.rounds, amount.seconds)
    return tuple(rows), together_rows(out)


def _named(name: str, say: Progress, line: str) -> None:
    say(f"{name}: {line}")
