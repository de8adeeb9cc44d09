"""How long a run takes, said before it begins: what it is made of, and for how long each may go on.

Measurements end by themselves after their time. What it takes to set a workflow up was timed on two
cores at 2.1 GHz and is proportional to its functions; a slower machine takes longer for that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.bench.settings import Scale, Settings
from evaluation.bench.variants import variants
from evaluation.measurements.rounds import Measurement
from workflow.model import Workflow

#: Seconds: constants of the platform; a function that is profiled; a sandbox that is deployed;
#: a request of Faastlane's, its share of deploying it included.
CALIBRATION_S, _PROFILE_S, _SANDBOX_S, _BASELINE_S = 35.0, 2.2, 0.7, 0.12


def forecast(
    workflows: Sequence[Workflow],
    settings: Settings,
    scale: Scale,
    measurements: Sequence[Measurement[Any]],
) -> dict[str, float]:
    """The seconds of a run's parts by their names, in the order in which a workflow has them."""
    count = len(variants(settings.models, settings.mechanisms)) + 1  # one is deployed twice
    baseline_s = 0.0
    if settings.slo_ms is None:
        baseline_s = len(settings.mechanisms) * scale.baseline * _BASELINE_S
    tasks = [len(workflow.tasks) for workflow in workflows]
    functions = [len(workflow.functions) for workflow in workflows]
    parts = {
        "set-up": CALIBRATION_S + sum(_PROFILE_S * each + baseline_s for each in functions),
        "deploying": sum(_SANDBOX_S * (each + count) for each in tasks),
    }
    for measurement in measurements:
        parts[measurement.name] = len(workflows) * measurement.seconds(scale, count)
    return parts


def in_words(parts: Mapping[str, float]) -> str:
    """The forecast as a line; parts without an end are as long as they are."""
    known = {name: seconds for name, seconds in parts.items() if math.isfinite(seconds)}
    named = [f"{name} {seconds / 60:.1f}" for name, seconds in known.items()]
    named += [f"{name} as long as the samples take" for name in parts if name not in known]
    total = math.ceil(sum(known.values()) / 60)
    return f"this takes about {total} min, less what is there already: {', '.join(named)}"
