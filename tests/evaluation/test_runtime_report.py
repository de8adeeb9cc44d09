"""Figures of the wrap runtime: what they are made of."""

from __future__ import annotations

import pytest

from evaluation.runtime.report import Quantity
from evaluation.runtime.rounds import interleaved, starts


def test_a_figure_is_the_median_of_differences_within_each_round():
    rounds = [{"a": 1.0, "b": 4.0}, {"a": 100.0, "b": 101.0}, {"a": 2.0, "b": 4.0}]
    figure = Quantity("b more than a", lambda r: r["b"] - r["a"], 2.0).figure(rounds)
    assert (figure.median, figure.low, figure.high, figure.samples) == (2.0, 1.5, 2.5, 3)


@pytest.mark.parametrize(("goal", "met"), [(None, None), (2.0, True), (1.9, False)])
def test_a_goal_is_met_where_the_median_is_not_above_it(goal, met):
    rounds = [{"a": 1.0}, {"a": 2.0}, {"a": 9.0}]
    assert Quantity("a", lambda r: r["a"], goal).figure(rounds).met is met


def test_every_round_begins_with_another_measurement_and_the_first_rounds_do_not_count():
    ran = []

    def probe(name):
        def measure():
            ran.append(name)
            return {name: float(len(ran))}

        return measure

    rounds = interleaved([probe("a"), probe("b"), probe("c")], 2)
    assert [sorted(columns) for columns in rounds] == [["a", "b", "c"]] * 2
    assert {"".join(ran[i : i + 3]) for i in range(0, len(ran), 3)} == {"abc", "bca", "cab"}
    assert max(rounds[-1].values()) == len(ran)


def test_processes_start_one_after_the_other():
    assert starts([5.0, 2.0, 4.0], asked_ms=1.0) == (1.0, 1.5)
    assert starts([3.0]) == (3.0, 0.0)
