"""Estimates are right, and their intervals hold the true value about as often as they say."""

from __future__ import annotations

import random
import statistics

import pytest

from chiron.evaluation.intervals import estimate, ratio, share


def test_the_estimate_is_the_statistic_of_all_values():
    rounds = [[1.0, 9.0], [2.0], [3.0, 4.0]]
    assert estimate(rounds).value == 3.0
    assert estimate(rounds, statistics.fmean).value == pytest.approx(3.8)


def test_intervals_hold_the_true_median_of_a_known_distribution_in_19_of_20_runs():
    draw = random.Random(1)
    held = 0
    for _ in range(120):
        found = estimate([[draw.gauss(10, 2) for _ in range(5)] for _ in range(20)])
        held += found.low <= 10 <= found.high
    assert 0.87 <= held / 120 <= 1.0


def test_more_rounds_make_intervals_narrower():
    draw = random.Random(2)
    few = estimate([[draw.expovariate(1)] for _ in range(10)])
    many = estimate([[draw.expovariate(1)] for _ in range(400)])
    assert many.high - many.low < (few.high - few.low) / 2


def test_a_ratio_of_what_drifts_together_does_not_drift():
    drift = [1.0 + 0.1 * n for n in range(20)]
    fast, slow = [[10 * d] for d in drift], [[20 * d] for d in drift]
    found = ratio(fast, slow)
    assert found.value == found.low == found.high == 0.5
    assert estimate(fast).high - estimate(fast).low > 3  # while either alone is uncertain


@pytest.mark.parametrize(("above", "below"), [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0)])
def test_there_is_no_ratio_of_nothing(above, below):
    assert ratio([[above]], [[below]]) is None


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    [(0, 10, 0.0, 0.27753), (5, 10, 0.23659, 0.76341), (10, 500, 0.01090, 0.03639)],
)
def test_shares_have_wilsons_interval(hits, count, low, high):
    found = share(hits, count)
    assert found.value == hits / count
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)
