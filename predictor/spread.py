"""The variation of requests with one payload around the median latency of their plan.

A request's latency is its plan's median, plus three deviations:

- of its computing, by the variation of known work on the platform; - of its tasks, by the variation
in their profiles, along the longest path through the workflow; - of its way to the first wrap and
back, by the variation of no-ops, in a row and after a pause.

The three depend on the plan only by how much it computes. So one simulation of a plan is enough for
every percentile, and a search can judge by any percentile.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from random import Random
from statistics import fmean, quantiles

from chiron.workflow.model import Workflow
from chiron.workflow.platform import IDLE_MS, Platform
from chiron.workflow.profile import Profile

#: The number of requests sampled.
DRAWS = 200
#: Tolerance for rounding: shares of requests may add up to a little less than they should.
_NEARLY = 1 - 1e-9


@dataclass(frozen=True)
class Spread:
    """The deviations of requests with one payload from the median of their plan."""

    #: The longest path of waits through the workflow, which no busy core makes longer.
    waiting_ms: float = 0.0
    #: For every request, the factor by which everything but waits takes longer than usual.
    slower: tuple[float, ...] = (1.0,)
    #: For every request, the deviation of its tasks and its way from the usual time.
    beside_ms: tuple[float, ...] = (0.0,)
    #: The part of that on the way; and by task, if it varies, the factors of its latency.
    way_ms: tuple[float, ...] = (0.0,)
    ratios: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @classmethod
    def of(cls, workflow: Workflow, profile: Profile, platform: Platform) -> Spread:
        """Return the spread of the requests of `workflow`, which decides nothing at run time."""
        uses, draw = profile.functions, Random(0)  # noqa: S311

        def drawn(values: Sequence[float]) -> list[float]:
            """Return one of evenly spaced quantiles for each request, each equally often."""
            found = _each(values)
            draw.shuffle(found)
            return found

        functions = {name: uses[task.function] for name, task in workflow.by_name.items()}
        waiting_ms = longest_wait_ms(workflow, profile)
        varied = {
            name: drawn(function.variation)
            for name, function in functions.items()
            if function.variation
        }
        if not (varied or platform.work_variation or platform.request_variation):
            return cls(waiting_ms)
        slower = drawn(platform.work_variation or (1.0,))
        usual_ms = _longest_ms(workflow, lambda name: functions[name].latency_ms)
        way_ms = drawn(_way_ms(platform, usual_ms))

        def further_ms(number: int) -> float:
            """Return the deviation of a request's tasks from the usual time."""

            def time_ms(name: str) -> float:
                ratio = varied[name][number] if name in varied else 1.0
                return ratio * functions[name].latency_ms

            return _longest_ms(workflow, time_ms) - usual_ms if varied else 0.0

        beside_ms = (each + further_ms(number) for number, each in enumerate(way_ms))
        return cls(waiting_ms, tuple(slower), tuple(beside_ms), tuple(way_ms), varied)

    def each_ms(self, median_ms: float) -> list[float]:
        """Return the latencies of DRAWS requests to a plan of median `median_ms`, at least 0."""
        waiting_ms = min(self.waiting_ms, median_ms)
        computing_ms = median_ms - waiting_ms
        return [
            max(0.0, waiting_ms + slower * computing_ms + beside_ms)
            for slower, beside_ms in zip(self.slower, self.beside_ms, strict=True)
        ]

    def most_ms(self, bound_ms: float, share: float) -> float:
        """Return the largest median of a plan for which `share` of requests meet `bound_ms`."""
        each = sorted(
            min(left_ms, self.waiting_ms) + max(0.0, left_ms - self.waiting_ms) / slower
            for slower, left_ms in zip(
                self.slower, (bound_ms - beside_ms for beside_ms in self.beside_ms), strict=True
            )
        )
        return each[-_rank(share, len(each))]


def _way_ms(platform: Platform, usual_ms: float) -> list[float]:
    """Return the deviations of the way, for requests whose functions take `usual_ms`."""
    idle = min(1.0, usual_ms / IDLE_MS)
    in_row_ms, pausing_ms = (
        _each(values or (0.0,)) for values in (platform.request_variation, platform.idle_variation)
    )
    return [
        (1 - idle) * brief_ms + idle * pause_ms
        for brief_ms, pause_ms in zip(in_row_ms, pausing_ms, strict=True)
    ]


def _each(values: Sequence[float]) -> list[float]:
    """Return evenly spaced quantiles, repeated for `DRAWS` requests."""
    return [values[number * len(values) // DRAWS] for number in range(DRAWS)]


def longest_wait_ms(workflow: Workflow, profile: Profile) -> float:
    """Return the longest path of waits through a workflow that decides nothing at run time."""
    uses = profile.functions
    return _longest_ms(
        workflow, lambda name: uses[workflow.by_name[name].function].time_ms("block")
    )


def _longest_ms(workflow: Workflow, time_ms: Callable[[str], float]) -> float:
    """Return the longest path through `workflow`, whose tasks take `time_ms`."""
    ends_ms = dict[str, float]()
    for name in chain.from_iterable(workflow.stages):
        task = workflow.by_name[name]
        start_ms = max(map(ends_ms.__getitem__, task.predecessors), default=0.0)
        ends_ms[name] = start_ms + time_ms(name)
    return max(ends_ms.values(), default=0.0)


def percentile_ms(each: Iterable[tuple[float, Sequence[float]]], percent: float) -> float:
    """Return the nearest-rank percentile of latencies that come in weighted groups.

    Args:
        each: the weight of each group, and the latencies of its requests.
    """
    groups = list(each)
    if len({weight / len(latencies_ms) for weight, latencies_ms in groups}) == 1:
        alike_ms = sorted(chain.from_iterable(latencies_ms for _, latencies_ms in groups))
        return alike_ms[_rank(percent / 100, len(alike_ms)) - 1]
    weighed = sorted(
        (latency_ms, weight / len(latencies_ms))
        for weight, latencies_ms in groups
        for latency_ms in latencies_ms
    )
    wanted, share = math.fsum(weight for _, weight in weighed) * percent / 100 * _NEARLY, 0.0
    for latency_ms, weight in weighed:
        share += weight
        if share >= wanted:
            return latency_ms
    return weighed[-1][0]


def mean_ms(each: Iterable[tuple[float, Sequence[float]]]) -> float:
    """Return the mean latency of weighted groups of requests."""
    weights, latencies_ms = zip(*each, strict=True)
    return fmean(map(fmean, latencies_ms), weights)


def evenly(values: Sequence[float], count: int) -> list[float]:
    """Return `count` quantiles of `values`, each of which represents equally many values.

    Raises ``StatisticsError`` if there are fewer than two values.
    """
    return quantiles(values, n=2 * count, method="inclusive")[::2]


def _rank(share: float, count: int) -> int:
    """Return the rank, from 1, of the quantile `share` among `count` values."""
    return min(count, max(1, math.ceil(share * count * _NEARLY)))
