"""Slots: when each process of a stage can start its functions, by its wrap and its index."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, islice

from chiron.predictor.equations import call_ms
from chiron.predictor.mechanisms import mechanism_of
from chiron.scheduler.kernighan_lin import Functions
from chiron.workflow.platform import Platform

#: The latency of a stage by the latencies of its two changing processes: slower, then faster.
PairLatency = Callable[[float, float], float]


@dataclass(frozen=True)
class Slots:
    """Slots for processes in wraps of the given sizes, a core each, the main process first."""

    #: The number of processes of each wrap.
    sizes: tuple[int, ...]
    #: For each wrap, the time added to the end of its last process: the call of the wrap and the
    #: gathering of its results.
    arrivals_ms: tuple[float, ...]
    #: For each slot, the time added to the solo latency of its process.
    offsets_ms: tuple[float, ...]
    #: The core time of starting the processes, in all.
    computing_ms: float = 0.0

    @cached_property
    def by_offset_ms(self) -> tuple[float, ...]:
        """The offsets, the least first."""
        return tuple(sorted(self.offsets_ms))

    @property
    def further(self) -> tuple[bool, ...]:
        """Whether each slot is a further process, not the main process."""
        return tuple(place > 0 for size in self.sizes for place in range(size))


def slots(sizes: tuple[int, ...], before: int, mechanism: str, platform: Platform) -> Slots:
    """Return the slots of consecutive wraps of a stage after `before` others.

    The costs of calls and processes follow equation (2) and the mechanism's (3) and (4), as in the
    predictor. The entry wrap, the first of a stage that it takes part in, need not be called.
    """
    arrivals, offsets, computing_ms = list[float](), list[float](), 0.0
    costs = mechanism_of(mechanism).costs(platform)
    for number, size in enumerate(sizes, start=before):
        called_ms = call_ms(number, platform) if number else 0.0
        arrivals.append(called_ms + costs.gathering_ms(size))
        offsets += [arrivals[-1] + delay for delay in costs.delays_ms(size)]
        computing_ms += costs.computing_ms * (size - 1)
    return Slots(sizes, tuple(arrivals), tuple(offsets), computing_ms)


def by_wrap(processes: Sequence[Functions], sizes: Sequence[int]) -> list[tuple[Functions, ...]]:
    """Return the processes of consecutive wraps of the given sizes."""
    waiting = iter(processes)
    return [tuple(islice(waiting, size)) for size in sizes]


def water_level_ms(total_ms: float, offsets_ms: Sequence[float]) -> float:
    """Return the earliest end of `total_ms` of work on processes that start at `offsets_ms`.

    A lower bound of a stage's latency, with the time that its functions hold the GIL as the total:
    a process has one GIL.

    >>> water_level_ms(10, [0, 2, 100])
    6.0
    """
    ordered = sorted(offsets_ms)
    for count, filled in enumerate(accumulate(ordered), start=1):
        level = (total_ms + filled) / count
        if count == len(ordered) or level <= ordered[count]:
            return level
    raise ValueError("no processes")


def pair_latency(others_ms: Sequence[float], offsets_ms: Sequence[float]) -> PairLatency:
    """Return the latency of a stage with processes of `others_ms` as a function of two more.

    The longest process has the slot of the least offset. A process shifts by a slot for each of the
    two more that is longer.

    `offsets_ms` is the time that each slot adds; it has two more items than `others_ms`.

    >>> latency_ms = pair_latency([5.0, 1.0], [0.0, 1.0, 2.0, 3.0])
    >>> latency_ms(6.0, 3.0)
    6.0
    >>> latency_ms(5.5, 5.0)
    7.0
    """
    times, offsets = sorted(others_ms, reverse=True), sorted(offsets_ms)
    keys = [-ms for ms in times]
    at_home, one_further, two_further = (
        [ms + offset for ms, offset in zip(times, offsets[shift:], strict=False)]
        for shift in range(3)
    )
    before = [-math.inf, *accumulate(at_home, max)]
    after = [-math.inf, *accumulate(reversed(two_further), max)][::-1]

    def latency_ms(slower_ms: float, faster_ms: float) -> float:
        p, q = bisect_right(keys, -slower_ms), bisect_right(keys, -faster_ms)
        pair = max(slower_ms + offsets[p], faster_ms + offsets[q + 1])
        return max(before[p], after[q], pair, *one_further[p:q])

    return latency_ms
