"""What strace and the GIL probe saw, brought together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chiron.profiler.probe_run import CORES, ProbeRun, Stretch
from chiron.profiler.reconcile import probed_periods, reconciled
from chiron.workflow.profile import Period, PeriodKind

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


def keeping_busy(run: ProbeRun, *cpu_ms: float) -> ProbeRun:
    seen = (replace(s, cpu_ms=each) for s, each in zip(run.stretches, cpu_ms, strict=True))
    return replace(run, stretches=tuple(seen))


def told(found: tuple[Period, ...]) -> list[tuple[str, float, str | None]]:
    return [(p.kind, round(p.duration_ms, 1), p.syscall) for p in found]


def test_computing_is_native_where_the_probe_says_so() -> None:
    found = reconciled(periods(("cpu", 30)), probed(("cpu", 10), ("native", 20)))
    assert told(found) == [("cpu", 10.0, None), ("native", 20.0, None)]


def test_what_computes_at_once_keeps_cores_busy() -> None:
    run = keeping_busy(probed(("cpu", 10), ("native", 20), ("block", 10)), 16.0, 40.0, 0.5)
    seen = periods(("cpu", 10), ("block", 20, "futex"), ("block", 10, "read"))
    assert [(p.kind, p.parallelism) for p in reconciled(seen, run)] == [
        ("cpu", min(CORES, 1.6)), ("native", min(CORES, 2.0)), ("block", 1.0),
    ]  # fmt: skip


def test_a_wait_for_a_process_that_computes_is_native() -> None:
    run = keeping_busy(probed(("block", 10), ("block", 20), ("block", 30)), 9.6, 40.0, 12.0)
    calls = ("wait4", "poll", "read")
    seen = periods(*(("block", ms, call) for ms, call in zip((10, 20, 30), calls, strict=True)))
    assert told(reconciled(seen, run)) == [
        ("native", 10.0, "wait4"), ("native", 20.0, "poll"),
        ("native", 12.0, "read"), ("block", 18.0, "read"),
    ]  # fmt: skip
    assert [p.parallelism for p in reconciled(seen, run)] == [1.0, min(CORES, 2.0), 1.0, 1.0]
    assert sum(p.duration_ms for p in probed_periods(run, 60.0) if p.kind == "native") == 42.0


def test_a_process_that_computes_in_a_few_of_many_waits_counts_in_those() -> None:
    """Its clock goes on every 4 ms, whatever the function does in between."""
    run = keeping_busy(probed(*[("block", 1)] * 8), 0, 0, 0, 4, 0, 0, 0, 4)
    assert told(reconciled(periods(("block", 8, "wait4")), run)) == [("native", 8.0, "wait4")]


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
    *row, synced_to_disk, _, closed = found
    assert [p.syscall for p in row] == [None, *["write", None] * 10]  # each lets go of the GIL
    assert sum(p.duration_ms for p in row if p.kind == "native") == pytest.approx(3.4, abs=0.01)
    assert sum(p.duration_ms for p in row if p.kind == "cpu") == pytest.approx(0.9, abs=0.01)
    assert told((synced_to_disk, closed)) == [("block", 8.0, "fsync"), ("block", 0.2, "close")]
    waiting = probed(("native", 1), ("block", 3.2), ("cpu", 0.1), ("block", 8), ("cpu", 0.5))
    assert told(reconciled(synced, waiting)) == told(synced)


def test_the_latency_stays() -> None:
    seen = periods(("cpu", 3.3), ("block", 20, "read"), ("cpu", 1.1))
    found = reconciled(seen, probed(("native", 3), ("block", 25), ("native", 0.7)))
    assert sum(p.duration_ms for p in found) == pytest.approx(24.4)


def test_the_probe_alone_gives_periods_of_the_untraced_latency() -> None:
    found = probed_periods(probed(("cpu", 10), ("block", 30, "poll")), 20.0)
    assert told(found) == [("cpu", 5.0, None), ("block", 15.0, "poll")]
