"""Estimates with confidence intervals from measurements in rounds.

All values of a round share the machine's state of that moment. Therefore rounds are resampled
(block bootstrap), and two variants are compared in the same rounds (paired).
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence

from chiron.workflow.documents import Document

#: The values of one variant, by round.
Rounds = Sequence[Sequence[float]]
Statistic = Callable[[Sequence[float]], float]

#: The share of intervals that contain the true value.
CONFIDENCE = 0.95
RESAMPLES = 400
_SEED = 20230501


class Interval(Document):
    """An estimate and its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def excludes(self, value: float) -> bool:
        """Return whether `value` is outside the interval."""
        return not self.low <= value <= self.high


def estimate(rounds: Rounds, statistic: Statistic = statistics.median) -> Interval:
    """Return `statistic` of all values of `rounds`, at least one, with its interval."""
    return _bootstrap(len(rounds), lambda picked: statistic(_pooled(rounds, picked)))


def ratio(
    above: Rounds, below: Rounds, statistic: Statistic = statistics.median
) -> Interval | None:
    """Return `statistic` of `above` divided by that of `below`, resampled in the same rounds.

    Rounds that only one of them has are left out. Returns None if either statistic is 0, such as
    CPU time below the kernel's resolution.
    """
    count = min(len(above), len(below))

    def of(picked: Sequence[int]) -> float:
        denominator = statistic(_pooled(below, picked))
        return statistic(_pooled(above, picked)) / denominator if denominator else math.inf

    value = of(range(count))
    return None if math.isinf(value) or value == 0 else _bootstrap(count, of)


def share(hits: int, count: int) -> Interval:
    """Return the share of `hits` among `count` trials, with Wilson's interval.

    Source: E. B. Wilson, Probable inference, the law of succession, and statistical inference
    (1927).
    """
    z = statistics.NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
    found, scale = hits / count, 1 + z * z / count
    centre = (found + z * z / (2 * count)) / scale
    half = z / scale * math.sqrt(found * (1 - found) / count + z * z / (4 * count * count))
    return _rounded(found, max(0.0, centre - half), min(1.0, centre + half))


def product_mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean, which treats a ratio and its inverse alike."""
    return math.exp(statistics.fmean(math.log(each) for each in ratios))


def _pooled(rounds: Rounds, picked: Sequence[int]) -> list[float]:
    return [value for number in picked for value in rounds[number]]


def _bootstrap(count: int, of: Callable[[Sequence[int]], float]) -> Interval:
    """Return `of` all rounds with its percentile bootstrap interval; equal input, equal result.

    Source: Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapters 8 and 13.
    """
    draw, value = random.Random(_SEED), of(range(count))  # noqa: S311  # resampling, no secret
    draws = sorted(of(draw.choices(range(count), k=count)) for _ in range(RESAMPLES))
    outside = (1 - CONFIDENCE) / 2
    low = draws[int(outside * RESAMPLES)]
    high = draws[min(RESAMPLES - 1, math.ceil((1 - outside) * RESAMPLES))]
    finite = [each for each in (low, high) if math.isfinite(each)]
    return _rounded(value, min([value, *finite]), max([value, *finite]))


def _rounded(*values: float) -> Interval:
    value, low, high = (round(each, 6) for each in values)
    return Interval(value=value, low=low, high=high)
