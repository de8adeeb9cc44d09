"""When what a slow reader is to get goes to disk; no stream is opened."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from wrap.core.slow_readers import may_be_circle, next_check_s, stuck


@dataclass(eq=False)
class Reader:
    last_read: float = 0.0
    held_up: bool = True
    has_read_all: bool = False


@pytest.mark.parametrize(
    ("slow", "other", "spills"),
    [
        (Reader(last_read=0.9), Reader(has_read_all=True), True),
        (Reader(last_read=0.95), Reader(has_read_all=True), False),  # it may be about to take more
        (Reader(last_read=0.9), Reader(has_read_all=False), False),  # nobody waits for the writer
        (Reader(last_read=0.9, held_up=False), Reader(has_read_all=True), False),
    ],
)
def test_a_slow_reader_is_waited_for_unless_another_one_waits_for_the_writer(
    slow: Reader, other: Reader, spills: bool
) -> None:
    assert stuck([slow], [slow, other], now=1.0) == [slow] * spills


def test_it_is_looked_again_when_the_first_may_be_stuck_and_often_once_it_is() -> None:
    assert next_check_s([Reader(0.95), Reader(0.98)], now=1.0) == pytest.approx(0.05)
    assert next_check_s([Reader(0.5), Reader(0.98)], now=1.0) == 0.02


def test_a_writer_waits_some_seconds_for_a_reader_whose_disk_is_full() -> None:
    assert not may_be_circle(Reader(last_read=1.0), now=6.0)
    assert may_be_circle(Reader(last_read=1.0), now=6.1)
