"""Which plan is tried next: the search ends, and finds the cheapest plan that keeps the SLO."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chiron.adaptation.candidates import (
    Exceeding,
    Outcome,
    Predicted,
    Residual,
    Search,
    is_worth_a_switch,
)


@st.composite
def fronts(draw):
    """Plans by rising CPUs, each predicted faster than the one before."""
    count = draw(st.integers(1, 8))
    latency_ms, cpus, plans = draw(st.floats(50, 500)), 1, []
    for _ in range(count):
        plans.append(Predicted(cpus, latency_ms, latency_ms * draw(st.floats(0.7, 1.0))))
        latency_ms *= draw(st.floats(0.4, 0.99))
        cpus += draw(st.integers(0, 2))
    return plans


SLOS = st.floats(20, 600)


def searched(search, outcome):
    """The outcomes of a search, each made by `outcome` of a plan's number."""
    outcomes = []
    while (number := search.next(outcomes)) is not None:
        outcomes.append(outcome(number))
        assert len(outcomes) <= search.tries
    return outcomes


@given(fronts(), SLOS, st.integers(1, 8), st.data())
def test_whatever_is_measured_a_search_ends_and_tries_no_plan_twice(plans, slo_ms, tries, data):
    def outcome(number):
        works = data.draw(st.booleans()) or not number
        kept = works and data.draw(st.booleans())
        return Outcome(number, kept, data.draw(st.floats(1, 1000)) if works else None)

    outcomes = searched(Search(plans, slo_ms, tries), outcome)
    numbers = [each.number for each in outcomes]
    assert 1 <= len(numbers) == len(set(numbers)) <= tries
    for place, each in enumerate(outcomes):  # no plan after one that keeps the SLO
        assert all(each.number < before.number for before in outcomes[:place] if before.kept)


def by_factor(plans, slo_ms, factor):
    """What is measured where each plan takes `factor` times as long as predicted."""

    def outcome(number):
        measured_ms = factor * plans[number].latency_ms
        return Outcome(number, measured_ms <= slo_ms, measured_ms)

    return outcome


@given(fronts(), SLOS, st.floats(0.5, 2.0), st.integers(2, 8))
def test_where_one_factor_is_wrong_the_cheapest_plan_that_keeps_the_slo_is_found(
    plans, slo_ms, factor, tries
):
    assume(all(abs(factor * each.latency_ms / slo_ms - 1) > 1e-9 for each in plans))
    search = Search(plans, slo_ms, tries)
    outcomes = searched(search, by_factor(plans, slo_ms, factor))
    keep = [n for n, each in enumerate(plans) if factor * each.latency_ms <= slo_ms]
    found = [each.number for each in outcomes if each.kept]
    assert bool(found) == bool(keep)
    if keep:
        assert found[-1] == keep[0]
        assert len(outcomes) <= 2


@given(fronts(), SLOS, st.floats(0.5, 2.0))
def test_a_known_factor_takes_one_try(plans, slo_ms, factor):
    assume(all(abs(factor * each.latency_ms / slo_ms - 1) > 1e-9 for each in plans))
    search = Search(plans, slo_ms, 5, known=[Residual(3, factor)])
    outcomes = searched(search, by_factor(plans, slo_ms, factor))
    keep = [n for n, each in enumerate(plans) if factor * each.latency_ms <= slo_ms]
    if keep:
        assert [each.number for each in outcomes] == keep[:1]


@given(fronts(), SLOS, st.data())
def test_no_plan_is_found_only_where_the_fastest_one_was_tried_or_cannot_keep_the_slo(
    plans, slo_ms, data
):
    def outcome(number):
        return Outcome(number, False, data.draw(st.floats(slo_ms, 3 * slo_ms)))

    outcomes = searched(Search(plans, slo_ms, len(plans)), outcome)
    numbers = {each.number for each in outcomes}
    assert len(plans) - 1 in numbers or plans[-1].low_ms > slo_ms


PLANS = [Predicted(1, 100.0, 85.0), Predicted(2, 70.0, 60.0), Predicted(3, 50.0, 45.0)]


def test_the_search_begins_with_the_cheapest_plan_whose_range_may_keep_the_slo():
    assert Search(PLANS, 86.0, 5).next([]) == 0
    assert Search(PLANS, 84.0, 5).next([]) == 1
    assert Search(PLANS, 10.0, 5).next([]) == 2  # the fastest, where none may


def test_a_plan_that_keeps_the_slo_with_room_lets_a_cheaper_one_be_tried():
    search = Search(PLANS, 84.0, 5)
    assert search.next([Outcome(1, True, 69.0)]) is None
    assert search.next([Outcome(1, True, 56.0)]) == 0
    assert search.next([Outcome(1, True, 56.0), Outcome(0, False, 85.0)]) is None


def test_plans_of_as_many_cpus_teach_most():
    search = Search(PLANS, 84.0, 5)
    outcomes = [Outcome(0, False, 200.0), Outcome(2, True, 50.0)]
    assert search.expected_ms(0, outcomes) > 100.0 * 2.0**0.5 > search.expected_ms(2, outcomes) * 2
    assert 70.0 < search.expected_ms(1, outcomes) < 140.0


def test_a_plan_that_does_not_work_is_left_out():
    search = Search(PLANS, 86.0, 5)
    assert search.next([Outcome(0, False, 90.0), Outcome(1, False, None)]) == 2


@pytest.mark.parametrize(
    ("found", "serves", "worth"),
    [
        ((0.5, 70.0), (1.0, 60.0), True),  # fewer exceed it, by however much
        ((0.95, 40.0), (1.0, 41.0), False),
        ((1.0, 53.0), (1.0, 60.0), True),
        ((1.0, 59.0), (1.0, 60.0), False),
        ((0.6, 30.0), (0.5, 60.0), False),
    ],
)
def test_a_plan_that_breaks_the_slo_gives_way_to_one_that_breaks_it_clearly_less(
    found, serves, worth
):
    assert is_worth_a_switch(Exceeding(*found), Exceeding(*serves)) == worth
