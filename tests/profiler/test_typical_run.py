"""Several traced runs of one function laid over each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from chiron.profiler.handler_run import HandlerRun
from chiron.profiler.typical_run import TracedRun, traced_run, typical_run

MakeRun = Callable[..., HandlerRun]


def seen(run: HandlerRun, delayed_ms: float = 0.0) -> TracedRun:
    return traced_run(replace(run, delayed_ms=delayed_ms))


def nap(handler_run: MakeRun, before: float, asleep: float, after: float) -> HandlerRun:
    call = (1, before, asleep, "nanosleep(x)", "0")
    return handler_run(before + asleep + after, [call])


def test_one_long_wait_or_computing_of_one_run_does_not_count(handler_run: MakeRun) -> None:
    runs = [nap(handler_run, 10, 20, 5), nap(handler_run, 90, 20, 5), nap(handler_run, 10, 70, 5)]
    typical = typical_run([seen(run) for run in runs])
    assert typical.gaps_ms == pytest.approx([10, 5], abs=0.01)
    assert typical.blocks_ms == pytest.approx([20], abs=0.01)
    assert typical.duration_ms == pytest.approx(35, abs=0.01)


def test_runs_that_wait_for_something_else_are_left_out(handler_run: MakeRun) -> None:
    usual = [seen(nap(handler_run, 10, 20, 5)) for _ in range(2)]
    odd = seen(handler_run(80, [(1, 1.0, 70, "read(3)", "1")]))
    assert typical_run([odd, *usual]).calls == ("nanosleep",)


def test_where_no_two_are_alike_it_is_the_one_of_median_duration(handler_run: MakeRun) -> None:
    runs = [
        seen(handler_run(duration, [(1, 1.0, 0.5, f"{call}(3)", "1")]))
        for duration, call in ((10, "read"), (20, "write"), (90, "poll"))
    ]
    assert typical_run(runs) == runs[1]


def test_time_without_a_core_is_taken_off_computing(handler_run: MakeRun) -> None:
    run = seen(nap(handler_run, 30, 20, 10), delayed_ms=20)
    assert run.gaps_ms == pytest.approx([15, 5], abs=0.01)
    assert run.blocks_ms == pytest.approx([20], abs=0.01)


def test_some_computing_is_left_however_long_it_is_said_to_have_had_no_core(
    handler_run: MakeRun,
) -> None:
    assert seen(nap(handler_run, 10, 20, 0), delayed_ms=500).gaps_ms[0] > 0.5


def test_runs_without_any_wait(handler_run: MakeRun) -> None:
    typical = typical_run([seen(handler_run(duration, [])) for duration in (10, 30, 12)])
    assert (typical.calls, typical.duration_ms) == ((), pytest.approx(12, abs=0.01))
