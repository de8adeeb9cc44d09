"""When what a slow reader is to get goes to disk; no stream is opened."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from wrap.core.slow_readers import look_again_s, may_be_circle, stuck


@dataclass(eq=False)
class Reader:
    took: float = 0.0
    held_up: bool = True
    starves: bool = False


@pytest.mark.parametrize(
    ("slow", "other", "spills"),
    [
        (Reader(took=0.9), Reader(starves=True), True),
        (Reader(took=0.95), Reader(starves=True), False),  # it may be about to take more
        (Reader(took=0.9), Reader(starves=False), False),  # nobody waits for the writer
        (Reader(took=0.9, held_up=False), Reader(starves=True), False),
    ],
)
def test_a_slow_reader_is_waited_for_unless_another_one_waits_for_the_writer(
    slow: Reader, other: Reader, spills: bool
) -> None:
    assert stuck([slow], [slow, other], now=1.0) == [slow] * spills


def test_it_is_looked_again_when_the_first_may_be_stuck_and_often_once_it_is() -> None:
    assert look_again_s([Reader(0.95), Reader(0.98)], now=1.0) == pytest.approx(0.05)
    assert look_again_s([Reader(0.5), Reader(0.98)], now=1.0) == 0.02


def test_a_writer_waits_some_seconds_for_a_reader_whose_disk_is_full() -> None:
    assert not may_be_circle(Reader(took=1.0), now=6.0)
    assert may_be_circle(Reader(took=1.0), now=6.1)
