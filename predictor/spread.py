"""The ends of what is usual, for the range of a prediction: of functions and of constants."""

from __future__ import annotations

from typing import Literal

from workflow.platform import Platform
from workflow.profile import Profile

#: The lower and the upper end of a spread.
End = Literal[0, 1]


def scale_at(profile: Profile, end: End) -> dict[str, float]:
    """How much longer or shorter than its latency the end of each function's spread is."""
    return {
        name: function.spread_ms[end] / function.latency_ms
        for name, function in profile.functions.items()
        if function.spread_ms is not None and function.latency_ms > 0
    }


def platform_at(platform: Platform, end: End) -> Platform:
    """`platform` with every constant at that end of its spread."""
    return platform.model_copy(update={name: ends[end] for name, ends in platform.spread.items()})


def has_spread(profile: Profile, platform: Platform) -> bool:
    """Whether any function or constant has one."""
    functions = profile.functions.values()
    return bool(platform.spread) or any(function.spread_ms is not None for function in functions)
