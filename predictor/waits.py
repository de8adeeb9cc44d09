"""The waits of objects in buckets that fire by time or number, which no latency includes.

The triggers are those of the wraps.

References
----------
Pheromone (NSDI'23), Table I: ByTime and ByBatchSize.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import fmean
from typing import NamedTuple

from chiron.workflow.model import Workflow
from chiron.wrap.core.buckets.triggers import TRIGGERS, Item, StreamTrigger

#: The number of objects sampled for a mean wait.
_OBJECTS = 1_000


class Wait(NamedTuple):
    """The wait of objects in a bucket, in milliseconds; infinite if no time ever fires it."""

    bucket: str
    mean_ms: float
    most_ms: float

    @property
    def line(self) -> str:
        if self.most_ms == math.inf:
            return f"bucket {self.bucket} waits for more objects, however long that takes"
        return (
            f"an object waits in bucket {self.bucket} for {self.mean_ms:g} ms on average and "
            f"{self.most_ms:g} ms at most, which the latency has nothing of"
        )


def waits_of(workflow: Workflow) -> Iterator[Wait]:
    """Yield the waits in the workflow's buckets that hold objects of several requests.

    The waits are of objects that arrive one at a time, at any moment. Objects that arrive together
    never wait longer.
    """
    for name, declared in (workflow.buckets or {"buckets": {}})["buckets"].items():
        trigger = TRIGGERS.get(declared["trigger"])
        if trigger is None or trigger.keeps_session:  # users' own triggers run only in wraps
            continue
        if (most_s := _waits_s(trigger(**declared["options"]), 0.0)) == 0.0:
            continue
        mean_s = most_s
        if most_s < math.inf:
            # The midpoints of equal parts of the time in which the object may arrive.
            times_s = [most_s * (number + 0.5) / _OBJECTS for number in range(_OBJECTS)]
            mean_s = fmean(_waits_s(trigger(**declared["options"]), at_s) for at_s in times_s)
        yield Wait(name, round(1000 * mean_s, 3), round(1000 * most_s, 3))


def _waits_s(trigger: StreamTrigger[str], at_s: float) -> float:
    """Return how long an object waits that arrives at `at_s`, as the first of its bucket."""
    return 0.0 if trigger.on_object(Item((0,), ""), at_s) else trigger.due_s - at_s
