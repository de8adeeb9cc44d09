"""Known work: what the functions of calibration are asked to do, and the profile that it makes.

How long each kind of computing takes is measured where a function runs alone, so that of a plan of
such functions nothing is unknown but what they do to each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from chiron.profiler.noop_handler import BLOCK, CPU, NATIVE
from chiron.profiler.noop_shapes import FUNCTIONS
from chiron.workflow.platform import IDLE_MS
from chiron.workflow.profile import FunctionProfile, Period, Profile

#: What a function does, one after another: a kind of `Period`, and how much of it. That is loops of
#: Python, rounds of a hash without the GIL, or milliseconds of waiting.
Steps = tuple[tuple[str, float], ...]


class Work(NamedTuple):
    """What the functions of a plan are asked to do: the two of `FUNCTIONS`, in their order."""

    first: Steps
    second: Steps

    @property
    def request(self) -> bytes:
        """The request that asks for it."""
        return json.dumps(self).encode()

    def profile(self, costs_ms: Mapping[str, float]) -> Profile:
        """The profile of the two functions, where one of each kind takes `costs_ms`."""
        functions = {
            name: _function(steps, costs_ms) for name, steps in zip(FUNCTIONS, self, strict=True)
        }
        return Profile(format=1, workflow="work", functions=functions)


def both(*steps: tuple[str, float]) -> Work:
    """Work that is the same for all."""
    return Work(steps, steps)


def waiting_ms(steps: Steps) -> float:
    """For how long of `steps` a function waits."""
    return sum(amount for kind, amount in steps if kind == BLOCK)


#: Nothing; a wait, as functions have: what has been idle for a while, be it a client, a gateway or
#: a core, takes longer for the same (a request 2.6 ms instead of 1.7 after 10 ms).
NOTHING, PAUSE = both(), both((BLOCK, IDLE_MS))
#: Computing on both sides of a wait.
WORK = both((CPU, 60_000), (BLOCK, 10.0), (CPU, 60_000))
#: Computing without the GIL alone.
HASH = both((NATIVE, 30_000))
#: What plans are checked with: some milliseconds of each kind, as short functions have, in which
#: all do the same, some compute while others mostly wait, with the GIL or without it.
CHECKED = (
    WORK,
    Work(((CPU, 150_000),), ((CPU, 20_000), (BLOCK, 15.0), (CPU, 20_000))),
    Work(((NATIVE, 30_000),), ((CPU, 60_000), (BLOCK, 5.0), (CPU, 60_000))),
    Work(((CPU, 30_000), (BLOCK, 5.0), (NATIVE, 15_000)), ((BLOCK, 20.0),)),
)


def _function(steps: Steps, costs_ms: Mapping[str, float]) -> FunctionProfile:
    periods = tuple(_periods(steps, costs_ms))
    return FunctionProfile(latency_ms=sum(each.duration_ms for each in periods), periods=periods)


def _periods(steps: Steps, costs_ms: Mapping[str, float]) -> Iterator[Period]:
    start_ms = 0.0
    for kind, amount in steps:
        duration_ms = amount * costs_ms.get(kind, 1.0)
        yield Period.model_validate(
            {"kind": kind, "start_ms": start_ms, "duration_ms": duration_ms}
        )
        start_ms += duration_ms
