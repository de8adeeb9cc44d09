"""When a stage ends as two of its processes change: only what the two touch is looked at again."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

#: The end of the stage, for what its two changing processes take: the slower and the faster one.
PairLatency = Callable[[float, float], float]


def pair_latency(others_ms: Sequence[float], offsets_ms: Sequence[float]) -> PairLatency:
    """The latency of a stage whose other processes take `others_ms`, as a function of two more.

    Who takes longest has the slot of the least offset. Two more processes push those that are
    faster than one of them one slot further, and those that are faster than both two slots.

    Parameters
    ----------
    offsets_ms
        What each slot adds; there are two more than others.

    Examples
    --------
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
