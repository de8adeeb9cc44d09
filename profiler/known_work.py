"""Known work: the work requested of calibration's functions, and the resulting profile.

The time of each kind of computing is measured in a function alone. So in a plan of such functions,
only their mutual influence is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from chiron.predictor.mechanisms import MECHANISMS
from chiron.profiler.noop_handler import BLOCK, CPU, NATIVE
from chiron.profiler.noop_shapes import FUNCTIONS
from chiron.workflow.platform import IDLE_MS
from chiron.workflow.profile import FunctionProfile, Period, Profile

#: The consecutive steps of a function: a kind of `Period`, and its amount. The unit is loops of
#: Python, rounds of a hash without the GIL, or milliseconds of waiting.
Steps = tuple[tuple[str, float], ...]


class Work(NamedTuple):
    """The work requested of the two `FUNCTIONS` of a plan, in their order."""

    first: Steps
    second: Steps

    @property
    def request(self) -> bytes:
        return json.dumps(self).encode()

    def profile(self, costs_ms: Mapping[str, float], gil: bool = True) -> Profile:
        """Return the profile of the two functions, if one unit of each kind takes `costs_ms`.

        Without a `gil`, loops of Python compute without it too.
        """
        functions = {
            name: _function(steps, costs_ms, gil)
            for name, steps in zip(FUNCTIONS, self, strict=True)
        }
        return Profile(format=1, workflow="work", functions=functions)


def both(*steps: tuple[str, float]) -> Work:
    """Return work with the same steps for both functions."""
    return Work(steps, steps)


def waiting_ms(steps: Steps) -> float:
    return sum(amount for kind, amount in steps if kind == BLOCK)


#: No work; and a wait, as functions have. An idle client, gateway or core is slower at first: a
#: request after 10 ms takes 2.6 ms instead of 1.7.
NOTHING, PAUSE = both(), both((BLOCK, IDLE_MS))
#: Computing on both sides of a wait.
WORK = both((CPU, 60_000), (BLOCK, 10.0), (CPU, 60_000))
#: Computing without the GIL alone.
HASH = both((NATIVE, 30_000))
#: The work for checking plans: some milliseconds of each kind, as in short functions. Both do the
#: same, or one computes while the other mostly waits, with the GIL or without it.
CHECKED = (
    WORK,
    Work(((CPU, 150_000),), ((CPU, 20_000), (BLOCK, 15.0), (CPU, 20_000))),
    Work(((NATIVE, 30_000),), ((CPU, 60_000), (BLOCK, 5.0), (CPU, 60_000))),
    Work(((CPU, 30_000), (BLOCK, 5.0), (NATIVE, 15_000)), ((BLOCK, 20.0),)),
)


def _function(steps: Steps, costs_ms: Mapping[str, float], gil: bool) -> FunctionProfile:
    periods = tuple(_periods(steps, costs_ms, gil))
    latency_ms = sum(each.duration_ms for each in periods)
    tried = dict.fromkeys(MECHANISMS, "")  # calibration's functions run everywhere
    return FunctionProfile(latency_ms=latency_ms, periods=periods, tried=tried)


def _periods(steps: Steps, costs_ms: Mapping[str, float], gil: bool) -> Iterator[Period]:
    start_ms = 0.0
    for kind, amount in steps:
        duration_ms = amount * costs_ms.get(kind, 1.0)
        own = NATIVE if kind == CPU and not gil else kind
        yield Period.model_validate({"kind": own, "start_ms": start_ms, "duration_ms": duration_ms})
        start_ms += duration_ms
