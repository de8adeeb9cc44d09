"""Workflows, profiles and a platform for scheduling, in a few words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from chiron.workflow.model import Source, Task, Workflow
from chiron.workflow.platform import Platform
from chiron.workflow.profile import FunctionProfile, Period, Profile


@pytest.fixture(scope="session")
def platform() -> Callable[..., Platform]:
    """A platform with plausible constants, of which some may be others."""
    constants = {
        "cpus": 64,
        "rpc_ms": 8.0,
        "invoke_ms": 0.2,
        "ipc_ms": 0.1,
        "process_startup_ms": 3.0,
        "process_block_ms": 1.0,
        "pool_dispatch_ms": 0.2,
        "thread_startup_ms": 0.1,
        "switch_cost_ms": 0.01,
    }

    def platform(**changes: Any) -> Platform:
        return Platform(**({"format": 1, "name": "test"} | constants | changes))

    return platform


@pytest.fixture(scope="session")
def profile() -> Callable[..., Profile]:
    """Functions by their periods: ``profile(f="cpu 10 native*2 4 forked 15")``.

    ``*2`` keeps two cores busy. What follows ``forked`` is the latency in a forked process.
    """

    def function(text: str) -> FunctionProfile:
        words, start, periods, forked_ms = text.split(), 0.0, [], None
        for kind, duration in zip(words[::2], map(float, words[1::2]), strict=True):
            if kind == "forked":
                forked_ms = duration
                continue
            kind, _, cores = kind.partition("*")
            parallelism = float(cores or 1)
            periods.append(
                Period(kind=kind, start_ms=start, duration_ms=duration, parallelism=parallelism)
            )
            start += duration
        return FunctionProfile(latency_ms=start, periods=tuple(periods), forked_ms=forked_ms)

    def profile(**functions: str) -> Profile:
        profiles = {name: function(text) for name, text in functions.items()}
        return Profile(format=1, workflow="demo", functions=profiles)

    return profile


@pytest.fixture(scope="session")
def workflow() -> Callable[..., Workflow]:
    """Stages of functions, one task each: ``workflow("f g", "f")``; all feeds the next stage.

    The tasks are named by stage and place: s0t0, s0t1, s1t0.
    """

    def workflow(*stages: str, name: str = "demo") -> Workflow:
        tasks, source = list[Task](), None
        for number, functions in enumerate(stages):
            names = [f"s{number}t{place}" for place in range(len(functions.split()))]
            pairs = zip(names, functions.split(), strict=True)
            tasks += [Task(task, function, source) for task, function in pairs]
            source: Source = tuple(names)
        return Workflow(name, tuple(tasks), source)

    return workflow
