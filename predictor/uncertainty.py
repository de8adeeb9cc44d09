"""Variants of profile and platform: at the ends of their spreads, and at other speeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from chiron.predictor.speed import platform_slower
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile


class Variant(NamedTuple):
    """A platform, and the factors of functions' times: see `chiron.predictor.predict.Predictor`."""

    platform: Platform
    scale: Mapping[str, float] | None = None
    slower: float = 1.0


def ends(profile: Profile, platform: Platform) -> Iterator[Variant]:
    """Yield all functions and constants at the lower, then at the upper ends of any spreads.

    A function at an end is scaled by the ratio of that end to its latency.
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
    """Yield a machine that computes faster, then slower, by the expected drift."""
    drift = 1.0 + platform.speed_drift
    if drift != 1.0:
        for slower in (1 / drift, drift):
            yield Variant(platform_slower(platform, slower), slower=slower)
