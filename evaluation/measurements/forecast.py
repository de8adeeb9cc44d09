"""How long a run takes, said before it begins: what it is made of, and for how long each may go on.

Measurements end by themselves after their time. What it takes to set a workflow up was timed on two
cores at 2.1 GHz and is proportional to its functions; a slower machine takes longer for that.
How long a round takes is known after the first one, and then said with those that are left.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from evaluation.bench.rounds import Measurement
from evaluation.bench.settings import Scale, Settings
from evaluation.bench.variants import Variant, variants
from predictor.mechanisms import mechanism_of
from scheduler.planners import PLANNERS, searched
from workflow.model import Workflow
from workflow.profile import Profile

#: Seconds: constants of the platform; a function that is profiled; a sandbox that is deployed;
#: a request of Faastlane's, its share of deploying it included.
_CALIBRATION_S, _PROFILE_S, _SANDBOX_S, _BASELINE_S = 35.0, 2.2, 0.7, 0.12
#: What a sandbox takes longer whose image is built, pushed and pulled (timed on faasd with its
#: registry on the same machine), and how many of them calibrating has.
_PULLED_S, _CALIBRATION_SANDBOXES = 6.0, 14
#: What a request takes besides its functions, in milliseconds of the busier of cores and clients:
#: with a function to a sandbox, with a process forked for each function, and else; where the
#: CPU-speed probe takes `_PROBE_MS`. With these the stored run is met within a quarter.
_ALONE_MS, _FORKED_MS, _TOGETHER_MS, _PROBE_MS = 15.0, 42.0, 8.0, 1.75
#: By what computing takes longer where all cores are busy: calibrations have 0.2 to 0.4.
_CONTENTION_OVERHEAD = 0.3
#: From how many seconds on they are said in minutes.
_IN_MINUTES_S = 120.0


def forecast(
    workflows: Sequence[Workflow],
    settings: Settings,
    scale: Scale,
    measurements: Sequence[Measurement[Any]],
    *,
    calibrated: bool = False,
    profiles: Mapping[str, Profile] = MappingProxyType({}),
    pulling: bool = False,
) -> dict[str, float]:
    """The seconds of a run's parts by their names, in the order in which a workflow has them.

    `calibrated` is whether the platform's constants are there, `profiles` those that are, by
    workflow, and `pulling` whether the gateway pulls its images, so that they are built and pushed.
    """
    chosen = variants(settings.planners, settings.mechanisms)
    count = len(chosen) + 1  # one is deployed twice
    pulled_s = _PULLED_S if pulling else 0.0
    baselines = 0 if settings.slo_ms else len(workflows) * len(settings.mechanisms)
    alone = sum(PLANNERS[each.planner].orchestrator == "client" for each in chosen)
    sandboxes = sum(count - alone + alone * len(workflow.tasks) for workflow in workflows)
    functions = sum(len(each.functions) for each in workflows if each.name not in profiles)
    calibration_s = _CALIBRATION_S + _CALIBRATION_SANDBOXES * pulled_s
    parts = {
        "set-up": (0.0 if calibrated else calibration_s)
        + functions * (_PROFILE_S + pulled_s)
        + baselines * scale.baseline * _BASELINE_S,
        "deploying": sandboxes * (_SANDBOX_S + pulled_s),
    }
    for measurement in measurements:
        seconds = measurement.expected_s or measurement.seconds
        parts[measurement.name] = sum(
            seconds(scale_of(workflow, profiles.get(workflow.name), chosen, scale), count)
            for workflow in workflows
        )
    return parts


def scale_of(
    workflow: Workflow,
    profile: Profile | None,
    chosen: Sequence[Variant],
    scale: Scale,
    cores: int = os.cpu_count() or 1,
) -> Scale:
    """`scale` with the throughput to be expected of the variants of a workflow with that profile.

    A client waits for the slowest function of each stage, and the cores compute all of them: either
    is what bounds the requests per second. What is around functions is computing.
    """
    if profile is None or not set(workflow.functions) <= profile.functions.keys():
        return scale
    functions = {task.name: profile.functions[task.function] for task in workflow.tasks}
    waiting_ms = sum(max(functions[t].latency_ms for t in stage) for stage in workflow.stages)
    core_ms = sum(function.core_ms for function in functions.values())
    busy_ms = core_ms * (1 + _CONTENTION_OVERHEAD) / cores
    probes_ms = [each.cpu_probe_ms for each in functions.values() if each.cpu_probe_ms]
    slower = statistics.median(probes_ms) / _PROBE_MS if probes_ms else 1.0
    request_ms = statistics.fmean(
        max((waiting_ms + around_ms) / scale.clients[0], busy_ms + around_ms)
        for around_ms in (_around_ms(each) * slower for each in chosen)
    )
    return replace(scale, per_s=1000 / request_ms)


def _around_ms(variant: Variant) -> float:
    if PLANNERS[variant.planner].orchestrator == "client":
        return _ALONE_MS
    together = searched(variant.planner) or mechanism_of(variant.mechanism).lasting
    return _TOGETHER_MS if together else _FORKED_MS


def in_words(parts: Mapping[str, float]) -> str:
    """The forecast as a line."""
    named = [f"{name} {_duration(seconds)}" for name, seconds in parts.items()]
    total = _duration(sum(parts.values()))
    return f"this takes about {total}, less what was measured already: {', '.join(named)}"


def _duration(seconds: float) -> str:
    if seconds < _IN_MINUTES_S:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min"
