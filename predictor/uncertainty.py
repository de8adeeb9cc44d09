"""How profile and platform may turn out: at the ends of their spreads, at other speeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import NamedTuple

from chiron.workflow.platform import PathCost, Platform
from chiron.workflow.profile import Profile


class Variant(NamedTuple):
    """A platform, and what functions take there: see `chiron.predictor.predict.Predictor`."""

    platform: Platform
    scale: Mapping[str, float] | None = None
    slower: float = 1.0


def ends(profile: Profile, platform: Platform) -> Iterator[Variant]:
    """With all functions and constants at the lower, then the upper ends of their spreads, if any.

    A function at an end takes longer or shorter by as much as the end differs from its latency.
    """
    spreads = {
        name: [end_ms / function.latency_ms for end_ms in function.spread_ms]
        for name, function in profile.functions.items()
        if function.spread_ms is not None and function.latency_ms > 0
    }
    if platform.spread or any(function.spread_ms for function in profile.functions.values()):
        for end in (0, 1):
            constants = {name: ends[end] for name, ends in platform.spread.items()}
            paths = {path: cost.at_end(end) for path, cost in platform.paths.items()}
            place = platform.model_copy(update={**constants, "paths": paths})
            yield Variant(place, {name: ends[end] for name, ends in spreads.items()})


def speeds(profile: Profile, platform: Platform) -> Iterator[Variant]:
    """On a machine that computes as much faster, then slower, as it may when the plan is run.

    That is by the platform's ``speed_drift``; and if functions were profiled at another speed than
    the platform was calibrated at, functions may take as long as they would at that one.
    """
    probes_ms = [each.cpu_probe_ms for each in profile.functions.values() if each.cpu_probe_ms]
    since = (
        platform.cpu_probe_ms / median(probes_ms) if platform.cpu_probe_ms and probes_ms else 1.0
    )
    drift = 1.0 + platform.speed_drift
    for factor, slower in ((1 / drift, min(since, 1 / drift)), (drift, max(since, drift))):
        if slower != 1.0:
            yield Variant(_slower(platform, factor), slower=slower)


def _slower(platform: Platform, factor: float) -> Platform:
    """`platform` where all that was timed there takes `factor` times as long."""
    timed = [name for name in platform.spread if name.endswith(("_ms", "_ms_per_mb"))]
    constants = {name: factor * getattr(platform, name) for name in timed}
    paths = {
        path: PathCost(ms=factor * cost.ms, ms_per_mb=factor * cost.ms_per_mb)
        for path, cost in platform.paths.items()
    }
    idle = {name: factor * more_ms for name, more_ms in platform.idle.items()}
    return platform.model_copy(update={**constants, "idle": idle, "paths": paths})
