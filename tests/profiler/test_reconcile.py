"""What strace and the GIL probe saw, brought together."""

from __future__ import annotations

import pytest

from profiler.probe_run import ProbeRun, Stretch
from profiler.reconcile import probed_periods, reconciled
from workflow.profile import Period, PeriodKind

Part = tuple[PeriodKind, float] | tuple[PeriodKind, float, str]


def periods(*parts: Part) -> tuple[Period, ...]:
    found: list[Period] = []
    at = 0.0
    for kind, duration, *rest in parts:
        syscall = str(rest[0]) if rest else None
        found.append(Period(kind=kind, start_ms=at, duration_ms=duration, syscall=syscall))
        at += duration
    return tuple(found)


def probed(*parts: Part) -> ProbeRun:
    seen = [
        Stretch(p.kind, p.start_ms, p.start_ms + p.duration_ms, p.syscall) for p in periods(*parts)
    ]
    return ProbeRun(seen[-1].end_ms, tuple(seen))


def told(found: tuple[Period, ...]) -> list[tuple[str, float, str | None]]:
    return [(p.kind, round(p.duration_ms, 1), p.syscall) for p in found]


def test_computing_is_native_where_the_probe_says_so() -> None:
    found = reconciled(periods(("cpu", 30)), probed(("cpu", 10), ("native", 20)))
    assert told(found) == [("cpu", 10.0, None), ("native", 20.0, None)]


def test_waits_line_the_two_clocks_up() -> None:
    """The probed run computed for longer before the wait; the native part stays after it."""
    seen = periods(("cpu", 10), ("block", 20, "read"), ("cpu", 20))
    run = probed(("cpu", 16), ("block", 20), ("cpu", 10), ("native", 10))
    assert told(reconciled(seen, run)) == [
        ("cpu", 10.0, None),
        ("block", 20.0, "read"),
        ("cpu", 10.0, None),
        ("native", 10.0, None),
    ]


def test_a_call_that_computes_in_the_kernel_is_native_and_keeps_its_name() -> None:
    found = reconciled(periods(("block", 4, "write")), probed(("native", 3), ("block", 1)))
    assert told(found) == [("native", 3.0, "write"), ("block", 1.0, "write")]


def test_a_call_that_keeps_the_gil_is_no_wait_for_others_and_keeps_its_name() -> None:
    seen = periods(("cpu", 3), ("block", 4, "read"), ("cpu", 2))
    assert told(reconciled(seen, probed(("cpu", 9)))) == [
        ("cpu", 3.0, None),
        ("cpu", 4.0, "read"),
        ("cpu", 2.0, None),
    ]


def test_another_program_on_the_core_is_no_wait_but_what_tracing_stretched_is() -> None:
    preempted = reconciled(periods(("cpu", 20)), probed(("native", 14), ("block", 6)))
    assert told(preempted) == [("native", 20.0, None)]
    stretched = reconciled(periods(("cpu", 2)), probed(("cpu", 0.2), ("block", 1.8, "futex")))
    assert told(stretched) == [("cpu", 0.2, None), ("block", 1.8, "futex")]


def test_what_is_shorter_than_a_tick_is_straces_alone() -> None:
    seen = periods(("cpu", 0.25), ("block", 0.1, "read"), ("cpu", 0.1))
    assert reconciled(seen, probed(("native", 0.45))) == seen


def test_short_waits_in_a_row_are_computing_where_the_probe_saw_that() -> None:
    copies = [("cpu", 0.3), *[("block", 0.3, "write"), ("cpu", 0.1)] * 10]
    synced = periods(*copies, ("block", 8, "fsync"), ("cpu", 0.3), ("block", 0.2, "close"))
    found = reconciled(synced, probed(("cpu", 0.9), ("native", 3.4), ("block", 8), ("cpu", 0.5)))
    assert told(found) == [
        ("cpu", 0.9, None),
        ("native", 3.4, "write"),
        ("block", 8.0, "fsync"),
        ("cpu", 0.3, None),
        ("block", 0.2, "close"),
    ]
    waiting = probed(("native", 1), ("block", 3.2), ("cpu", 0.1), ("block", 8), ("cpu", 0.5))
    assert told(reconciled(synced, waiting)) == told(synced)


def test_the_latency_stays() -> None:
    seen = periods(("cpu", 3.3), ("block", 20, "read"), ("cpu", 1.1))
    found = reconciled(seen, probed(("native", 3), ("block", 25), ("native", 0.7)))
    assert sum(p.duration_ms for p in found) == pytest.approx(24.4)


def test_the_probe_alone_gives_periods_of_the_untraced_latency() -> None:
    found = probed_periods(probed(("cpu", 10), ("block", 30, "poll")), 20.0)
    assert told(found) == [("cpu", 5.0, None), ("block", 15.0, "poll")]
