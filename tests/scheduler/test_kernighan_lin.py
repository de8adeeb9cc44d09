"""Exchanges between two processes: greedy, each function once, the worse ones shown too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise, product

from hypothesis import given
from hypothesis import strategies as st

from chiron.scheduler.kernighan_lin import TRIED, Exchange, Functions, exchanged, kernighan_lin
from tests.examples import FEWER

sides = st.lists(st.integers(0, 9), min_size=1, max_size=5).map(lambda side: tuple(sorted(side)))


def arbitrary_cost(seed: int) -> Callable[[Functions, Functions], float]:
    """A cost that follows no law but is the same for the same content."""
    return lambda a, b: float(hash((seed, a, b)) % 1000)


@st.composite
def apart(draw: st.DrawFn) -> tuple[Functions, Functions]:
    """Two processes that have no function in common and none twice."""
    numbers = draw(st.lists(st.integers(0, 20), unique=True, min_size=2, max_size=8))
    cut = draw(st.integers(1, len(numbers) - 1))
    return tuple(sorted(numbers[:cut])), tuple(sorted(numbers[cut:]))


@FEWER
@given(apart(), st.integers())
def test_each_function_leaves_its_process_at_most_once(sides, seed):
    a, b = sides
    steps = list(kernighan_lin(a, b, arbitrary_cost(seed)))
    assert steps or len(a) == len(b) == 0
    for (_, before, _), (_, after, _) in pairwise([(0.0, a, b), *steps]):
        left, came = set(before) - set(after), set(after) - set(before)
        assert left <= set(a) and came <= set(b)
        assert len(left) <= 1 and len(came) <= 1 and left | came


@FEWER
@given(sides, sides, st.integers())
def test_functions_are_kept_no_process_is_emptied_and_the_cost_is_that_of_the_content(a, b, seed):
    cost = arbitrary_cost(seed)
    for price, new_a, new_b in kernighan_lin(a, b, cost):
        assert Counter(new_a + new_b) == Counter(a + b)
        assert new_a and new_b
        assert price == cost(new_a, new_b)


@FEWER
@given(sides, sides, st.integers())
def test_the_first_exchange_is_the_best_of_all_moves_and_swaps(a, b, seed):
    cost = arbitrary_cost(seed)
    contents = [
        (exchanged(a, x, y), exchanged(b, y, x)) for x, y in product((*a, None), (*b, None))
    ]
    costs = [cost(*both) for both in contents if all(both) and both != (a, b)]
    same = [cost(a, b)] if set(a) & set(b) else []
    first, _, _ = next(kernighan_lin(a, b, cost))
    assert first == min(costs + same)


@FEWER
@given(sides, sides, st.integers())
def test_the_same_question_has_the_same_steps(a, b, seed):
    cost = arbitrary_cost(seed)
    assert list(kernighan_lin(a, b, cost)) == list(kernighan_lin(a, b, cost))


def test_a_worse_step_is_made_for_a_better_one_after_it():
    costs = {((1, 3), (2, 4)): 12, ((1, 4), (2, 3)): 13, ((3, 4), (1, 2)): 1}
    steps = list(kernighan_lin((1, 2), (3, 4), lambda a, b: costs.get((a, b), 20)))
    assert [cost for cost, _, _ in steps] == [12, 1]
    assert min(steps) == (1, (3, 4), (1, 2))


def test_equal_functions_count_as_one_candidate():
    asked = []

    def cost(a: Functions, b: Functions) -> float:
        asked.append((a, b))
        return 0.0

    next(kernighan_lin((1, 1, 1), (2, 2, 2), cost))
    assert asked == [((1, 1, 2), (1, 2, 2)), ((1, 1), (1, 2, 2, 2)), ((1, 1, 1, 2), (2, 2))]


def test_of_many_exchanges_those_that_look_best_are_tried():
    asked = []

    def cost(a: Functions, b: Functions) -> float:
        asked.append((a, b))
        return abs(sum(a) - sum(b))

    def estimate(a: Functions, b: Functions) -> Callable[[Exchange], float]:
        return lambda xy: abs(sum(a) - sum(b) - 2 * (xy[0] or 0) + 2 * (xy[1] or 0))

    a, b = tuple(range(0, 100, 2)), tuple(range(1, 101, 2))
    first, _, _ = next(kernighan_lin(a, b, cost, estimate))
    assert len(asked) == TRIED
    assert first == 0


def test_an_exchange_takes_one_function_out_and_one_in_and_stays_sorted():
    assert exchanged((1, 1, 5), 1, 9) == (1, 5, 9)
    assert exchanged((1, 1, 5), 1, None) == (1, 5)
    assert exchanged((1, 1, 5), None, 0) == (0, 1, 1, 5)
