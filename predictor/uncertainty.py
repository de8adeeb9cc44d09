"""How profile and platform may turn out: at the ends of their spreads, at other speeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from chiron.predictor.speed import platform_slower
from chiron.workflow.platform import Platform
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


def speeds(platform: Platform) -> Iterator[Variant]:
    """On a machine that computes as much faster, then slower, as it may when the plan is run."""
    drift = 1.0 + platform.speed_drift
    if drift != 1.0:
        for slower in (1 / drift, drift):
            yield Variant(platform_slower(platform, slower), slower=slower)
