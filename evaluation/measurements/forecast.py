"""Forecasts the duration of a run and of its parts before it begins.

Measurements stop after their time limit. The set-up of a workflow is proportional to its functions;
it was timed on two cores at 2.1 GHz, and takes longer on a slower machine. After the first round of
a measurement, its duration is known. From then on, the remaining time is reported with each round.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from chiron.evaluation.bench.rounds import Measurement
from chiron.evaluation.bench.settings import Scale, Settings
from chiron.evaluation.bench.variants import variants
from chiron.scheduler.planners import PLANNERS
from chiron.workflow.model import Workflow

#: Seconds to measure the platform's constants, to profile a function, to deploy a sandbox, and for
#: a request to Faastlane's plan with its share of the deployment.
_CALIBRATION_S, _PROFILE_S, _SANDBOX_S, _BASELINE_S = 35.0, 2.2, 0.7, 0.12
#: Additional seconds of a sandbox whose image is built, pushed and pulled (timed on faasd with its
#: registry on the same machine), and the sandboxes of a calibration.
_PULLED_S, _CALIBRATION_SANDBOXES = 6.0, 14
#: The least duration in seconds that is shown in minutes.
_IN_MINUTES_S = 120.0


def forecast(
    workflows: Sequence[Workflow],
    settings: Settings,
    scale: Scale,
    measurements: Sequence[Measurement[Any]],
    *,
    calibrated: bool = False,
    profiled: Collection[str] = (),
    pulling: bool = False,
) -> dict[str, float]:
    """Return the seconds of a run's parts by their names, in the order of a workflow's parts.

    `calibrated`: the platform's constants exist. `profiled`: the workflows whose profiles exist.
    `pulling`: the gateway pulls images, which are built and pushed first.
    """
    chosen = variants(settings.planners, settings.mechanisms)
    count = len(chosen) + scale.replicate
    pulled_s = _PULLED_S if pulling else 0.0
    baselines = 0 if settings.slo_ms else len(workflows) * len(settings.mechanisms)
    alone = sum(PLANNERS[each.planner].orchestrator == "client" for each in chosen)
    sandboxes = sum(count - alone + alone * len(workflow.tasks) for workflow in workflows)
    functions = sum(len(each.functions) for each in workflows if each.name not in profiled)
    calibration_s = _CALIBRATION_S + _CALIBRATION_SANDBOXES * pulled_s
    parts = {
        "set-up": (0.0 if calibrated else calibration_s)
        + functions * (_PROFILE_S + pulled_s)
        + baselines * scale.baseline * _BASELINE_S,
        "deploying": sandboxes * (_SANDBOX_S + pulled_s),
    }
    for measurement in measurements:
        seconds = measurement.expected_s or measurement.seconds
        parts[measurement.name] = len(workflows) * seconds(scale, count)
    return parts


def in_words(parts: Mapping[str, float]) -> str:
    """Return the forecast as a line."""
    named = [f"{name} {_duration(seconds)}" for name, seconds in parts.items()]
    total = _duration(sum(parts.values()))
    words = f"this takes about {total} on two idle cores, less what was measured already"
    return f"{words}: {', '.join(named)}"


def _duration(seconds: float) -> str:
    if seconds < _IN_MINUTES_S:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min"
