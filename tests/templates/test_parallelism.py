"""Fewer runs at once where the process's GIL is busy, and as many as before where it is not."""

from __future__ import annotations

from wrap.core.parallelism import Parallelism


def after(cores: list[float], seconds: float = 0.01) -> list[int]:
    """What may run at once after each look, in a process that took so many cores before it."""
    parallelism, found = Parallelism(40, 0.0, 0.0), list[int]()
    now = cpu_s = 0.0
    for each in cores:
        now += seconds
        cpu_s += seconds * each
        if parallelism.is_due(now):
            parallelism.look(now, cpu_s)
        found.append(parallelism.most)
    return found


def test_they_are_halved_while_the_gil_is_busy_and_doubled_while_it_is_not():
    assert after([1.0] * 6) == [20, 10, 5, 2, 2, 2]
    assert after([1.0] * 3 + [0.2] * 4) == [20, 10, 5, 10, 20, 40, 40]


def test_code_that_computes_without_the_gil_changes_nothing():
    assert after([1.0, 1.9, 1.9]) == [20, 20, 20]


def test_it_is_looked_at_now_and_then():
    assert after([1.0] * 9, seconds=0.001)[-1] == 20
