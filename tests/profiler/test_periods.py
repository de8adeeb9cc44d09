"""Periods cover the latency exactly, whatever was traced; what tracing added is taken off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.profiler.blocking import Wait, waits
from chiron.profiler.handler_run import HandlerRun
from chiron.profiler.periods import periods
from chiron.profiler.typical_run import TracedRun
from chiron.workflow.profile import FunctionProfile, Period

MakeRun = Callable[..., HandlerRun]

LOCK = "futex(0x7f748, FUTEX_WAIT_PRIVATE, 0, NULL)"
THREAD = "clone3({flags=CLONE_VM|CLONE_THREAD, exit_signal=0}, 88)"


def run_of(found: Sequence[Wait], duration_ms: float, marker_ms: float) -> TracedRun:
    return TracedRun.of(found, duration_ms, marker_ms)


def total(found: tuple[Period, ...], kind: str) -> float:
    return sum(period.duration_ms for period in found if period.kind == kind)


times = st.floats(0, 30, allow_nan=False)
calls = st.lists(
    st.tuples(
        st.sampled_from([1, 2, 3]),
        times,
        times,
        st.sampled_from(["read(3, 4, 5)", "poll(6, 7)", LOCK, "access(8, F_OK)"]),
        st.just("0"),
    ),
    max_size=12,
)
starts = st.lists(
    st.tuples(st.just(1), times, times, st.just(THREAD), st.sampled_from(["2", "3"])), max_size=2
)


@given(
    lines=calls,
    started=starts,
    latency_ms=st.floats(0, 60),
    marker_ms=st.floats(0, 1),
    held_ms=st.floats(0, 60),
    native_ms=st.floats(0, 60),
    data=st.data(),
)
def test_periods_cover_the_latency_in_any_order_of_events(
    handler_run: MakeRun,
    lines: list[tuple[int, float, float, str, str]],
    started: list[tuple[int, float, float, str, str]],
    latency_ms: float,
    marker_ms: float,
    held_ms: float,
    native_ms: float,
    data: st.DataObject,
) -> None:
    one_after_another = []
    free = dict.fromkeys((1, 2, 3), 0.0)
    for tid, gap, duration, call, result in lines + started:
        one_after_another.append((tid, free[tid] + gap, duration, call, result))
        free[tid] += gap + duration
    run = handler_run(free[1] + 1, data.draw(st.permutations(one_after_another)))
    found = waits(run)
    assert all(one.end_ms <= next_.start_ms for one, next_ in pairwise(found))
    latency = round(latency_ms, 3)
    covering = periods(
        run_of(found, run.duration_ms, marker_ms), latency, held_ms, held_ms + native_ms
    )
    FunctionProfile(latency_ms=latency, periods=covering)
    kinds = [(period.kind, period.syscall) for period in covering]
    assert all(one != next_ for one, next_ in pairwise(kinds))
    assert all(period.duration_ms > 0 for period in covering)


def test_a_sleep_keeps_its_length_and_the_computing_gives_up_what_tracing_added() -> None:
    found = periods(run_of([Wait(10.2, 60.25, "clock_nanosleep")], 70.4, 0.05), 70.0, 20.0, 20.0)
    assert [period.kind for period in found] == ["cpu", "block", "cpu"]
    assert total(found, "block") == pytest.approx(50.0, abs=0.002)


def test_a_function_that_never_waits_is_one_period() -> None:
    (period,) = periods(run_of([], 40.0, 0.01), 30.0, 29.0, 29.0)
    assert (period.kind, period.duration_ms) == ("cpu", 30.0)


def test_many_tiny_calls_give_up_their_overhead_and_a_long_wait_does_not() -> None:
    tiny = [Wait(0.06 * i, 0.06 * i + 0.03, "read") for i in range(200)]
    long = Wait(12.03, 32.06, "recvfrom")
    found = periods(run_of([*tiny, long], 32.09, 0.03), 20.6, 0.2, 0.6)
    assert total(found, "block") == pytest.approx(20.0, abs=0.01)
    assert len(found) <= 3


def test_where_many_calls_leave_no_time_to_wait_those_that_were_held_up_did_not() -> None:
    reads = [Wait(1.0 * i, 1.0 * i + (0.1 if i % 20 else 0.7), "read") for i in range(200)]
    (period,) = periods(run_of(reads, 200.0, 0.1), 0.29, 0.0, 0.14)
    assert (period.kind, period.duration_ms) == ("cpu", 0.29)


def test_a_wait_does_not_vanish_where_a_probe_without_a_core_saw_none() -> None:
    found = periods(run_of([Wait(10, 30, "recvfrom")], 40.0, 0.01), 40.0, 40.0, 40.0)
    assert total(found, "block") > 10


def test_waits_shrink_where_they_alone_are_longer_than_the_latency() -> None:
    (period,) = periods(run_of([Wait(0, 52, "poll")], 52.0, 0.0), 50.0, 0.0, 0.0)
    assert (period.kind, period.duration_ms, period.syscall) == ("block", 50.0, "poll")


def test_all_grows_where_the_untraced_run_was_slower_as_tracing_cannot_be_why() -> None:
    found = periods(run_of([Wait(10, 30, "read")], 40.0, 0.0), 44.0, 20.0, 20.0)
    assert total(found, "block") == pytest.approx(22.0)
    assert total(found, "cpu") == pytest.approx(22.0)


def test_computing_gives_up_what_tracing_added_also_where_the_untraced_run_was_slower() -> None:
    waits = [Wait(0.07, 1.7, "write"), Wait(1.75, 5.9, "fsync")]
    found = periods(run_of(waits, 6.0, 0.02), 6.6, 0.0, 6.6)
    assert total(found, "cpu") == pytest.approx(0.16 / 5.9 * 6.6, abs=0.002)


def test_computing_between_two_waits_stays_as_the_gil_is_needed_for_it() -> None:
    waits = [Wait(0, 10, "poll"), Wait(10.03, 20, "recvfrom")]
    found = periods(run_of(waits, 20.0, 0.02), 19.8, 0.0, 0.0)
    assert [period.kind for period in found] == ["block", "cpu", "block"]


def test_waits_that_were_longer_under_trace_leave_the_computing_its_time() -> None:
    waits = [Wait(0.1 + i, 1.0 + i, "write") for i in range(10)]
    found = periods(run_of(waits, 10.0, 0.01), 8.0, 0.0, 8.0)
    assert total(found, "cpu") >= 0.3


def test_what_is_too_short_to_be_traced_is_computing() -> None:
    (period,) = periods(run_of([Wait(0, 0.02, "read")], 0.02, 0.03), 0.005, 0.0, 0.0)
    assert (period.kind, period.duration_ms) == ("cpu", 0.005)


def test_calls_that_are_not_shown_may_be_most_of_the_computing_under_trace() -> None:
    """Two stretches of 10 ms take 28 and 26 when every clock that they read stops them."""
    found = periods(run_of([Wait(28, 48, "recvfrom")], 74.0, 0.01), 40.0, 19.5, 20.1)
    assert total(found, "block") == pytest.approx(20.0, abs=0.02)
    assert [round(period.duration_ms) for period in found] == [10, 20, 10]


def test_waits_of_runs_that_waited_for_longer_leave_what_the_gil_was_held() -> None:
    found = periods(run_of([Wait(10, 40, "fsync")], 50.0, 0.01), 25.0, 19.0, 19.0)
    assert total(found, "cpu") == pytest.approx(19.0)
    assert total(found, "block") == pytest.approx(6.0)


def test_waits_that_tracing_made_shorter_leave_no_more_than_the_function_was_at_work() -> None:
    """Two threads sleep 20 and 30 ms; while strace holds up who waits for them, they sleep on."""
    waits = [Wait(3.4, 22.1, "futex"), Wait(23.4, 33.2, "futex")]
    found = periods(run_of(waits, 34.0, 0.02), 30.5, 0.4, 0.6)
    assert total(found, "cpu") == pytest.approx(0.6, abs=0.05)
    assert [period.kind for period in found] == ["cpu", "block", "cpu", "block", "cpu"]
