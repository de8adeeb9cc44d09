"""How many requests a wrap runs at once: as many as keep its CPUs busy."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.scheduler.concurrency import MOST_INFLIGHT, keeping_busy


def idle(count: int, waits: float) -> float:
    """For which share of the time none of so many requests computes: Erlang's formula.

    The state with j requests that wait has the weight waits ** j / j!, by their balance.
    """
    weights = [math.exp(j * math.log(waits) - math.lgamma(j + 1)) for j in range(count + 1)]
    return weights[-1] / sum(weights)


@given(st.floats(0.01, 300))
def test_the_cpus_are_idle_for_two_percent_at_most_and_with_one_request_less_for_more(waits):
    count = keeping_busy(waits)
    assert idle(count, waits) <= 0.02 + 1e-9
    assert count == 1 or idle(count - 1, waits) > 0.02 - 1e-9


@given(st.floats(0, 1000), st.floats(0, 1000))
def test_the_longer_requests_wait_the_more_of_them_run_up_to_a_bound(one, other):
    less, more = sorted((one, other))
    assert keeping_busy(less) <= keeping_busy(more) <= MOST_INFLIGHT


@given(st.floats(0, 500))
def test_there_are_as_many_as_littles_law_wants_and_not_many_more(waits):
    count = keeping_busy(waits)
    assert min(waits, MOST_INFLIGHT) <= count <= 2 + waits + 3 * math.sqrt(waits)


@pytest.mark.parametrize("waits", [0.0, 1e9])
def test_requests_that_never_or_hardly_wait_and_those_that_hardly_compute(waits):
    assert keeping_busy(waits) == (MOST_INFLIGHT if waits else 1)
