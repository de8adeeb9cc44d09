"""A step of the load is measured as it is told, and its workflows answer as they should."""

from __future__ import annotations

import pytest

from chiron.evaluation.runtime import load_step
from chiron.evaluation.runtime.load_step import Sent, back_s, p95_s


@pytest.mark.parametrize(
    ("p95s", "back"),
    [
        ([0.1, 0.1, 0.1], 10.0),
        ([0.5, 0.4, 0.1], 12.0),
        ([0.5, 0.1, 0.4, 0.1], 13.0),
        ([0.5, 0.5], 40.0),
    ],
)
def test_p95_is_back_when_it_stays(p95s, back):
    windows = {14.0 + number: p95 for number, p95 in enumerate(p95s)}
    assert back_s(windows, 0.15, 10.0, 40.0) == back


def test_what_was_lost_took_the_longest():
    sent = [Sent(0.0, 0.1)] * 90
    assert p95_s(sent) == pytest.approx(0.1)
    assert p95_s(sent + [Sent(0.0, None)] * 10) == load_step._LATE_S
