"""Percentiles by nearest rank, and measurements that refuse a wrong answer."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import count
from types import SimpleNamespace

import pytest

from chiron.deployment.function_error import function_error
from chiron.deployment.invoke import Answer
from chiron.deployment.measure import (
    WARM_UP,
    Measurement,
    answer_of,
    check_of,
    checked_invoke,
    measure,
    percentile,
    warm_up,
)
from chiron.workflow.answer import ExpectedAnswer, failure_text
from chiron.workflow.errors import ChironError, WorkflowFailedError
from chiron.workflow.folder import parse_workflow
from chiron.workflow.payloads import Payload
from chiron.workflow.profile import LONGEST_MS
from tests.rows import each_row

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


@each_row(
    ("fraction", "expected"), [(0.0, 15), (0.05, 15), (0.30, 20), (0.40, 20), (0.50, 35), (1.0, 50)]
)
def test_the_nearest_rank_of_five_values(fraction, expected):
    assert percentile([50, 15, 40, 20, 35], fraction) == expected


def test_any_percentile_of_one_value_is_that_value():
    assert {percentile([7.5], fraction) for fraction in (0, 0.5, 0.95, 1)} == {7.5}


@each_row("percent", [25, 75, 95])
def test_rounding_of_fractions_shifts_no_rank(percent):
    for number in range(1, 2001):
        rank = max(1, math.ceil(Fraction(percent, 100) * number))
        assert percentile(range(1, number + 1), percent / 100) == rank


def test_a_measurement_is_the_median_the_quartiles_and_the_95th_percentile():
    latencies = [float(value) for value in range(1, 21)]
    assert Measurement.of(latencies[::-1]) == Measurement(
        samples=20, mean_ms=10.5, p50_ms=10.5, p95_ms=19.0, low_ms=5.0, high_ms=15.0
    )


def test_the_warm_up_does_not_count():
    target = Scripted([1000.0] * WARM_UP + [1.0, 2.0, 3.0])
    measured = measure(target, [(Payload("payload.json", b"body"), RIGHT)], 3)
    assert (measured.samples, measured.p50_ms, measured.high_ms) == (3, 2.0, 3.0)
    assert target.requests == [b"body"] * (WARM_UP + 3)


def test_a_warm_up_lasts_as_long_as_functions_need_until_they_are_fast(monkeypatch):
    clock = SimpleNamespace(monotonic=iter(range(9)).__next__, perf_counter=lambda: 0.0)
    monkeypatch.setattr("chiron.deployment.measure.time", clock)
    target = Scripted([1.0] * 20)
    warm_up(target, [(Payload("payload.json", b"body"), RIGHT)], least_s=3.0)
    assert len(target.requests) == WARM_UP + 2


@each_row(("looks", "share"), [([0.0, 0.9], 0.45), ([None, 0.9], 0.9)])
def test_what_others_had_before_and_after_is_kept_and_said(monkeypatch, looks, share):
    left = list(looks)
    monkeypatch.setattr("chiron.deployment.measure.others_share", lambda _: left.pop(0))
    measured = measure(Scripted([1.0] * 9), [(Payload("payload.json", b""), RIGHT)], 3)
    assert measured.others == share
    assert f"{share:.0%} of the cores" in measured.busy


def test_nothing_is_said_of_a_quiet_machine():
    assert Measurement.of([1.0], 0.02).busy is None
    assert Measurement.of([1.0]).busy is None


def test_a_wrong_answer_ends_a_measurement():
    with pytest.raises(ChironError) as wrong:
        measure(Scripted([1.0] * 9, output="wrong"), [(Payload("payload.json", b""), RIGHT)], 3)
    assert (wrong.value.code, wrong.value.status) == ("wrong-output", 500)


def test_payloads_are_measured_as_often_as_they_weigh_and_each_apart():
    small, large = Payload("small", b"s", 3.0), Payload("large", b"l", 1.0)
    target = Scripted([1000.0] * WARM_UP + [2.0, 2.0, 10.0, 2.0])
    measured = measure(target, [(small, RIGHT), (large, RIGHT)], 4)
    assert target.requests == [b"s", b"l", b"s", b"l", b"s", *b"s s l s".split()]
    assert (measured.samples, measured.mean_ms) == (4, 4.0)
    assert {name: (one.samples, one.p50_ms) for name, one in measured.payloads.items()} == {
        "small": (3, 2.0),
        "large": (1, 10.0),
    }


def test_every_payload_is_checked_however_rarely_it_comes():
    def refuse(_):
        raise ChironError("wrong-output", "another", status=500)

    rare = (Payload("rare", b"", 0.001), refuse)
    many = [(Payload(str(number), b""), RIGHT) for number in range(WARM_UP)]
    with pytest.raises(ChironError):
        measure(Scripted([1.0] * 20), [*many, rare], 3)


def test_a_right_answer_gives_its_latency():
    assert checked_invoke(Scripted([4.25]), b"", RIGHT) == 4.25


def test_where_no_answer_is_known_none_is_wrong():
    unknown = check_of(WORKFLOW, None)
    assert checked_invoke(Scripted([4.25], output="any"), b"", unknown) == 4.25


class Shedding:
    """Refuses every second request as an overloaded deployment does, but for the warm-up."""

    def __init__(self, status):
        self.status, self.numbers = status, count(-WARM_UP)

    def invoke(self, request: bytes) -> Answer:
        number = next(self.numbers)
        if number >= 0 and number % 2:
            raise function_error("f", self.status, b"")
        return Answer("right", 1.0)


@each_row("status", [429, 503, 504])
def test_at_a_rate_a_refused_request_takes_longer_than_any_slo(status):
    checked = [(Payload("payload.json", b""), RIGHT)]
    seen = []
    measured = measure(
        Shedding(status), checked, 20, lambda *sent: seen.append(sent) and False, per_s=5000
    )
    assert measured.samples == len(seen) == 20
    assert sum(taken_ms >= LONGEST_MS for taken_ms, _ in seen) == 10
    with pytest.raises(ChironError):
        measure(Shedding(status), checked, 20)


def test_at_a_rate_another_failure_is_raised():
    with pytest.raises(ChironError, match="status 500"):
        measure(Shedding(500), [(Payload("payload.json", b""), RIGHT)], 20, per_s=5000)


TOLD = {"code": "workflow-failed", "message": "Sunk: ice", "error": "Sunk", "cause": "ice"}


@each_row(
    "error",
    [
        WorkflowFailedError("Sunk", "ice"),
        function_error("demo", 500, json.dumps(TOLD).encode()),
    ],
    ids=["client", "wrap"],
)
def test_a_fail_state_is_an_answer_if_it_is_expected(error):
    class Failing:
        def invoke(self, _: bytes) -> Answer:
            raise error

    def expected(text):
        return ExpectedAnswer.learned(b"", [text]).model_copy(update={"fails": True})

    text = failure_text("Sunk", "ice")
    assert answer_of(Failing(), b"", check_of(WORKFLOW, expected(text))).output == text
    for check in (RIGHT, check_of(WORKFLOW, None)):
        with pytest.raises(ChironError) as raised:
            answer_of(Failing(), b"", check)
        assert raised.value is error
    with pytest.raises(ChironError) as raised:
        answer_of(Failing(), b"", check_of(WORKFLOW, expected(failure_text("Other", "ice"))))
    assert raised.value.code == "wrong-output"
    with pytest.raises(ChironError) as raised:
        answer_of(Scripted([1.0]), b"", check_of(WORKFLOW, expected(text)))
    assert raised.value.code == "wrong-output"
