"""Requests at a rate: Poisson arrivals, in order, whatever those before take."""

from __future__ import annotations

from itertools import count, islice
from statistics import fmean, pvariance
from threading import Event

import pytest

from chiron.deployment.arrivals import gaps_s, send_at_rate

#: As many as do not count at such a rate.
RATE, WARM = 5000, [lambda: ("warm", 0.0)] * 100


def test_arrivals_are_those_of_a_poisson_process():
    gaps = list(islice(gaps_s(40), 20_000))
    assert fmean(gaps) == pytest.approx(1 / 40, rel=0.03)
    assert pvariance(gaps) == pytest.approx(1 / 40**2, rel=0.06)
    assert list(islice(gaps_s(40), 9)) == gaps[:9]


def test_requests_begin_before_those_before_them_end_and_count_in_order():
    ended = Event()

    def slow():
        assert ended.wait(60)
        return "slow", 2.0

    def quick():
        ended.set()
        return "quick", 1.0

    found = list(send_at_rate(RATE, [*WARM, slow, quick]))
    assert [each.payload for each in found] == ["slow", "quick"]
    assert all(each.late_ms >= 0 for each in found)
    assert [each.taken_ms - each.late_ms for each in found] == pytest.approx([2.0, 1.0])


def test_the_first_second_does_not_count_but_no_more_than_a_hundred_requests():
    calls = [lambda number=number: (str(number), 0.0) for number in range(110)]
    assert [each.payload for each in send_at_rate(RATE, calls)] == list(map(str, range(100, 110)))


def test_a_failure_is_raised_and_ends_the_arrivals():
    def failing():
        raise ValueError("wrong")

    begun = count()
    endless = ((lambda: (str(next(begun)), 0.0)) for _ in count())
    with pytest.raises(ValueError, match="wrong"):
        list(
            send_at_rate(
                RATE, (call for each in zip([failing], endless, strict=False) for call in each)
            )
        )

    found = send_at_rate(RATE, endless)
    assert len(list(islice(found, 3))) == 3
    found.close()
    after = next(begun)
    assert after >= 103
    assert next(begun) == after + 1, "nothing begins after that"
