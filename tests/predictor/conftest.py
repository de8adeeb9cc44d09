"""Profiles and platforms in a few words: what is not said costs nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chiron.workflow.platform import Platform
from chiron.workflow.profile import FunctionProfile, Period, Profile

sys.path.append(str(Path(__file__).parent))  # for the oracle


@pytest.fixture
def platform() -> Callable[..., Platform]:
    """A platform on which nothing costs anything but what is given."""
    constants = (
        "rpc_ms invoke_ms ipc_ms process_startup_ms process_block_ms pool_dispatch_ms "
        "thread_startup_ms switch_cost_ms"
    )
    free = dict.fromkeys(constants.split(), 0.0)

    def platform(**constants: Any) -> Platform:
        return Platform(**({"format": 1, "name": "test", "cpus": 64} | free | constants))

    return platform


@pytest.fixture
def profile() -> Callable[..., Profile]:
    """Functions by their periods: ``profile(f="cpu 10 block 2 native*1.5 4")``.

    The last one keeps 1.5 cores busy.
    """

    def function(text: str) -> FunctionProfile:
        words, start, periods = text.split(), 0.0, []
        for kind, duration in zip(words[::2], map(float, words[1::2]), strict=True):
            kind, _, cores = kind.partition("*")
            parallelism = float(cores or 1)
            periods.append(
                Period(kind=kind, start_ms=start, duration_ms=duration, parallelism=parallelism)
            )
            start += duration
        return FunctionProfile(latency_ms=start, periods=tuple(periods))

    def profile(**functions: str) -> Profile:
        profiles = {name: function(text) for name, text in functions.items()}
        return Profile(format=1, workflow="demo", functions=profiles)

    return profile


@pytest.fixture
def costs(platform) -> Platform:
    return platform(
        request_ms=1.0,
        rpc_ms=8.0,
        invoke_ms=1.0,
        ipc_ms=0.5,
        process_startup_ms=3.0,
        process_block_ms=2.0,
        pool_dispatch_ms=0.25,
    )
