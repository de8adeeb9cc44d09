"""Swaps between two processes: greedy, each function once, the worse ones shown too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.kernighan_lin import Functions, exchanged, kernighan_lin

several = settings(deadline=None, max_examples=150)
sides = st.lists(st.integers(0, 9), max_size=5).map(lambda side: tuple(sorted(side)))


def arbitrary_cost(seed: int) -> Callable[[Functions, Functions], float]:
    """A cost that follows no law but is the same for the same content."""
    return lambda a, b: float(hash((seed, a, b)) % 1000)


@st.composite
def apart(draw: st.DrawFn) -> tuple[Functions, Functions]:
    """Two processes that have no function in common and none twice."""
    numbers = draw(st.lists(st.integers(0, 20), unique=True, min_size=2, max_size=8))
    cut = draw(st.integers(1, len(numbers) - 1))
    return tuple(sorted(numbers[:cut])), tuple(sorted(numbers[cut:]))


@several
@given(apart(), st.integers())
def test_each_function_is_swapped_at_most_once(sides, seed):
    a, b = sides
    steps = list(kernighan_lin(a, b, arbitrary_cost(seed)))
    assert len(steps) == min(len(a), len(b))
    for (_, before, _), (_, after, _) in pairwise([(0.0, a, b), *steps]):
        assert set(before) - set(after) <= set(a)
        assert set(after) - set(before) <= set(b)
        assert len(set(before) - set(after)) == 1


@several
@given(sides, sides, st.integers())
def test_sizes_and_functions_are_kept_and_the_cost_is_that_of_the_content(a, b, seed):
    cost = arbitrary_cost(seed)
    for price, new_a, new_b in kernighan_lin(a, b, cost):
        assert (len(new_a), len(new_b)) == (len(a), len(b))
        assert Counter(new_a + new_b) == Counter(a + b)
        assert price == cost(new_a, new_b)


@several
@given(sides.filter(bool), sides.filter(bool), st.integers())
def test_the_first_swap_is_the_best_of_all(a, b, seed):
    cost = arbitrary_cost(seed)
    first, _, _ = next(kernighan_lin(a, b, cost))
    assert first == min(cost(exchanged(a, x, y), exchanged(b, y, x)) for x in a for y in b)


@several
@given(sides, sides, st.integers())
def test_the_same_question_has_the_same_steps(a, b, seed):
    cost = arbitrary_cost(seed)
    assert list(kernighan_lin(a, b, cost)) == list(kernighan_lin(a, b, cost))


def test_a_worse_swap_is_made_for_a_better_one_after_it():
    costs = {((1, 2), (3, 4)): 10, ((1, 3), (2, 4)): 12, ((1, 4), (2, 3)): 13, ((3, 4), (1, 2)): 1}
    steps = list(kernighan_lin((1, 2), (3, 4), lambda a, b: costs.get((a, b), 20)))
    assert [cost for cost, _, _ in steps] == [12, 1]
    assert min(steps) == (1, (3, 4), (1, 2))


def test_equal_functions_count_as_one_candidate():
    asked = []

    def cost(a: Functions, b: Functions) -> float:
        asked.append((a, b))
        return 0.0

    next(kernighan_lin((1, 1, 1), (2, 2, 2), cost))
    assert asked == [((1, 1, 2), (1, 2, 2))]


def test_nothing_can_be_swapped_with_an_empty_process():
    assert list(kernighan_lin((), (1, 2), lambda a, b: 0.0)) == []


def test_an_exchange_replaces_one_function_and_stays_sorted():
    assert exchanged((1, 1, 5), 1, 9) == (1, 5, 9)
