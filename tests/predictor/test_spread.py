"""Requests with one payload differ by known amounts, and percentiles are counted."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.predictor.predict import predict
from chiron.predictor.spread import DRAWS, Spread, evenly, mean_ms, percentile_ms
from chiron.workflow.model import Task, Workflow
from chiron.workflow.plan import Plan, Wrap
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile

ALONE = Workflow("demo", (Task("a", "a", None),), "a")
CHAIN = Workflow("demo", (Task("a", "a", None), Task("b", "b", "a")), "b")
#: One request in twenty computes for twice as long.
SELDOM = {"work_variation": (1.0,) * 19 + (2.0,)}


def plan(*tasks: str) -> Plan:
    wrap = Wrap(name="w", cpus=1, memory_mib=64, mechanism="fork", processes=(tasks,))
    return Plan(format=2, workflow="demo", planner="pgp", wraps=(wrap,), cpus=1)


def varied(profile: Profile, name: str, *ratios: float) -> Profile:
    function = profile.functions[name].model_copy(update={"variation": ratios})
    return profile.model_copy(update={"functions": profile.functions | {name: function}})


@pytest.mark.parametrize(
    ("percentile", "times"), [(50, 1.0), (94.9, 1.0), (95, 1.0), (95.1, 2.0), (100, 2.0)]
)
def test_a_percentile_counts_the_requests_that_compute_for_longer(
    percentile, times, profile, platform
):
    found = predict(plan("a"), ALONE, profile(a="cpu 10"), platform(**SELDOM), percentile)
    alike = predict(plan("a"), ALONE, profile(a="cpu 10"), platform(), percentile)
    assert found.latency_ms == alike.latency_ms == alike.within.ms
    assert found.within.ms == pytest.approx(times * alike.latency_ms)
    assert found.mean_ms == pytest.approx(1.05 * alike.latency_ms, rel=1e-5)


def test_what_a_request_waits_for_takes_no_longer_on_a_slow_core(profile, platform):
    functions = profile(a="cpu 10 block 30", b="block 5 cpu 1")
    known = Spread.of(CHAIN, functions, platform(**SELDOM))
    assert known.waiting_ms == 35
    assert max(known.each_ms(50.0)) == pytest.approx(35 + 2 * 15)
    assert max(known.each_ms(20.0)) == 20  # it waits for all of that


@pytest.mark.parametrize(
    ("takes_ms", "least_ms", "most_ms"), [(0, -1.0, 4.0), (5, -0.75, 3.0), (10, -0.5, 2.0)]
)
def test_the_way_of_a_request_varies_by_how_long_it_was_idle(
    profile, platform, takes_ms, least_ms, most_ms
):
    varies = {"request_variation": (-1.0, 0.0, 0.0, 4.0), "idle_variation": (-0.5, 0.0, 0.0, 2.0)}
    known = Spread.of(ALONE, profile(a=f"cpu {takes_ms}"), platform(**varies))
    assert sorted(set(known.each_ms(10.0))) == [10 + least_ms, 10.0, 10 + most_ms]
    assert min(known.each_ms(0.1)) == 0


def test_functions_vary_each_for_itself(profile, platform):
    """In a chain both are seldom slow at once; beside each other the slower one counts."""
    functions = profile(a="cpu 10", b="cpu 10")
    for name in "ab":
        functions = varied(functions, name, *[1.0] * 9, 2.0)
    beside = Workflow("demo", tuple(Task(name, name, None) for name in "ab"), None)
    chain, parallel = (
        [round(ms - 100) for ms in Spread.of(each, functions, platform()).each_ms(100.0)]
        for each in (CHAIN, beside)
    )
    assert set(chain) == {0, 10, 20} and set(parallel) == {0, 10}
    assert 1 <= chain.count(20) <= 6
    assert sum(ms > 0 for ms in chain) == sum(ms > 0 for ms in parallel)


def test_a_prediction_is_equal_every_time(profile, platform):
    functions = varied(profile(a="cpu 10", b="cpu 5"), "a", 0.5, 1.0, 1.5)
    once, again = (predict(plan("a", "b"), CHAIN, functions, platform(**SELDOM)) for _ in "12")
    assert once == again


@given(
    st.lists(st.floats(0.5, 3.0), min_size=1, max_size=8),
    st.lists(st.floats(-2.0, 5.0), min_size=1, max_size=8),
    st.floats(0.0, 30.0),
    st.floats(1.0, 99.0),
    st.integers(1, 100),
)
def test_a_plan_counts_by_a_bound_at_most_if_its_median_is_below_the_inverse(
    slower, beside, waiting_ms, bound_ms, percent
):
    draw = random.Random(1)
    spread = Spread(
        waiting_ms,
        tuple(draw.choices(slower, k=DRAWS)),
        tuple(draw.choices(beside, k=DRAWS)),
    )
    most_ms = spread.most_ms(bound_ms, percent / 100)
    for median_ms in (most_ms - 1e-6, most_ms + 1e-6):
        counts_ms = percentile_ms([(1.0, spread.each_ms(median_ms))], percent)
        if median_ms > 0:
            assert (counts_ms <= bound_ms + 1e-9) == (median_ms <= most_ms)


@given(
    st.lists(
        st.tuples(st.integers(1, 5), st.lists(st.floats(0, 99), min_size=1, max_size=1)),
        min_size=1,
        max_size=9,
    ),
    st.floats(0.1, 100),
)
def test_a_percentile_of_groups_is_that_of_all_requests_one_by_one(groups, percent):
    every = sorted(ms for weight, each in groups for ms in each * weight)
    nearest = next(
        ms for rank, ms in enumerate(every, 1) if rank >= len(every) * percent / 100 * (1 - 1e-9)
    )
    assert percentile_ms(groups, percent) == nearest
    assert mean_ms(groups) == pytest.approx(sum(every) / len(every))


def test_quantiles_stand_for_as_many_values_each():
    assert evenly([0.0, 10.0], 5) == pytest.approx([1, 3, 5, 7, 9])


def test_quantiles_that_fall_are_refused(platform):
    known = platform().model_dump()
    for name in ("work_variation", "request_variation"):
        with pytest.raises(ValueError, match="have to rise"):
            Platform(**known | {name: (1.0, 0.5)})
