"""Workflows of functions at random, all of them distinct."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from workflow.folder import parse_workflow
from workflow.model import Workflow
from workflow.platform import Platform
from workflow.profile import FunctionProfile, Period, PeriodKind, Profile

#: A place with plausible constants.
PLATFORM = Platform(
    format=1,
    name="random",
    cpus=40,
    rpc_ms=20.0,
    invoke_ms=4.0,
    ipc_ms=0.2,
    process_startup_ms=13.0,
    process_block_ms=4.0,
    pool_dispatch_ms=1.0,
    thread_startup_ms=0.2,
    switch_interval_ms=5.0,
    switch_cost_ms=0.01,
)
#: Periods of a function at most, and how long one takes at most.
_PERIODS, _LONGEST_MS = 6, 12.0


def random_profile(count: int, kinds: Sequence[PeriodKind], seed: int) -> Profile:
    """`count` functions whose periods are of `kinds` and of any length."""
    r = random.Random(seed)  # noqa: S311  # a simulation, no secret
    functions = {f"f{number:04d}": _function(r, kinds) for number in range(count)}
    return Profile(format=1, workflow="random", functions=functions)


def in_stages(profile: Profile, count: int) -> list[list[str]]:
    """The functions of `profile`, each once, in `count` stages of equal width."""
    names = sorted(profile.functions)
    width = -(-len(names) // count)
    return [names[start : start + width] for start in range(0, len(names), width)]


def states_of(stages: Sequence[Sequence[str]]) -> dict[str, Any]:
    """A workflow.json with a Parallel for every stage and a Task for every function of it."""
    states: dict[str, Any] = {}
    for number, functions in enumerate(stages):
        tasks = {
            f"{number}-{place}": {"Type": "Task", "Resource": name, "End": True}
            for place, name in enumerate(functions)
        }
        branches = [{"StartAt": name, "States": {name: task}} for name, task in tasks.items()]
        last = number + 1 == len(stages)
        after = {"End": True} if last else {"Next": f"stage {number + 1}"}
        states[f"stage {number}"] = {"Type": "Parallel", "Branches": branches} | after
    return {"StartAt": "stage 0", "States": states}


def workflow_of(stages: Sequence[Sequence[str]]) -> Workflow:
    """The workflow that `states_of` writes."""
    return parse_workflow(states_of(stages), "random")


def _function(r: random.Random, kinds: Sequence[PeriodKind]) -> FunctionProfile:
    periods, end_ms = list[Period](), 0.0
    for _ in range(r.randint(1, _PERIODS)):
        duration_ms = round(r.uniform(0.2, _LONGEST_MS), 3)
        periods.append(Period(kind=r.choice(kinds), start_ms=end_ms, duration_ms=duration_ms))
        end_ms = round(end_ms + duration_ms, 3)
    return FunctionProfile(latency_ms=end_ms, periods=tuple(periods))
