"""Fewer runs at once where the process's GIL is busy, and as many as before where it is not."""

from __future__ import annotations

import time

import pytest
from wrap.dispatch.parallelism import Parallelism


class Clock:
    """A process that takes so many cores."""

    def __init__(self) -> None:
        self.now = self.cpu = 0.0

    def pass_by(self, seconds: float, cores: float) -> None:
        self.now += seconds
        self.cpu += seconds * cores


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(time, "process_time", lambda: clock.cpu)
    return clock


def after(clock: Clock, cores: list[float], seconds: float = 0.01) -> list[int]:
    parallelism, found = Parallelism(40), list[int]()
    for each in cores:
        clock.pass_by(seconds, each)
        parallelism.look()
        found.append(parallelism.most)
    return found


def test_they_are_halved_while_the_gil_is_busy_and_doubled_while_it_is_not(clock):
    assert after(clock, [1.0] * 6) == [20, 10, 5, 2, 2, 2]
    assert after(clock, [1.0] * 3 + [0.2] * 4) == [20, 10, 5, 10, 20, 40, 40]


def test_code_that_computes_without_the_gil_changes_nothing(clock):
    assert after(clock, [1.0, 1.9, 1.9]) == [20, 20, 20]


def test_it_is_looked_at_now_and_then(clock):
    assert after(clock, [1.0] * 9, seconds=0.001)[-1] == 20
