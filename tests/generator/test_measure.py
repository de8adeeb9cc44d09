"""Percentiles by nearest rank, and measurements that refuse a wrong answer."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from generator.invoke import Answer
from generator.measure import (
    WARM_UP,
    Measurement,
    check_of,
    checked_invoke,
    measure,
    percentile,
)
from workflow.answer import ExpectedAnswer
from workflow.errors import ChironError
from workflow.folder import parse_workflow

WORKFLOW = parse_workflow({"tasks": {"only": "f"}})
RIGHT = check_of(WORKFLOW, ExpectedAnswer.learned(b"", ["right"]))


class Scripted:
    """Answers with the given latencies, one after another."""

    def __init__(self, latencies_ms, output="right"):
        self.left = list(latencies_ms)
        self.output = output
        self.requests: list[bytes] = []

    def invoke(self, request: bytes) -> Answer:
        self.requests.append(request)
        return Answer(self.output, self.left.pop(0))


@pytest.mark.parametrize(
    ("fraction", "expected"), [(0.0, 15), (0.05, 15), (0.30, 20), (0.40, 20), (0.50, 35), (1.0, 50)]
)
def test_the_nearest_rank_of_five_values(fraction, expected):
    assert percentile([50, 15, 40, 20, 35], fraction) == expected


def test_any_percentile_of_one_value_is_that_value():
    assert {percentile([7.5], fraction) for fraction in (0, 0.5, 0.95, 1)} == {7.5}


@pytest.mark.parametrize("percent", [25, 75, 95])
def test_rounding_of_fractions_shifts_no_rank(percent):
    for count in range(1, 2001):
        rank = max(1, math.ceil(Fraction(percent, 100) * count))
        assert percentile(range(1, count + 1), percent / 100) == rank


def test_a_measurement_is_the_median_the_quartiles_and_the_95th_percentile():
    latencies = [float(value) for value in range(1, 21)]
    assert Measurement.of(latencies[::-1]) == Measurement(
        samples=20, p50_ms=10.5, p95_ms=19.0, low_ms=5.0, high_ms=15.0
    )


def test_the_warm_up_does_not_count():
    target = Scripted([1000.0] * WARM_UP + [1.0, 2.0, 3.0])
    measured = measure(target, b"body", 3, RIGHT)
    assert (measured.samples, measured.p50_ms, measured.high_ms) == (3, 2.0, 3.0)
    assert target.requests == [b"body"] * (WARM_UP + 3)


def test_a_wrong_answer_ends_a_measurement():
    with pytest.raises(ChironError) as wrong:
        measure(Scripted([1.0] * 9, output="wrong"), b"", 3, RIGHT)
    assert (wrong.value.code, wrong.value.status) == ("wrong-output", 500)


def test_a_right_answer_gives_its_latency():
    assert checked_invoke(Scripted([4.25]), b"", RIGHT) == 4.25


def test_where_no_answer_is_known_none_is_wrong():
    unknown = check_of(WORKFLOW, None)
    assert checked_invoke(Scripted([4.25], output="any"), b"", unknown) == 4.25
