"""From the ticks of the GIL probe to what a function did."""

from __future__ import annotations

import pytest

from chiron.profiler.probe_run import CORES, ProbeRun, probe_run, read_ticks, syscall_name

#: A tick without what the handler and the probe had no core.
Row = tuple[int, int, int, int, str]

SLEEPING = "230"


def kinds(run: ProbeRun) -> list[tuple[str, float, float]]:
    return [(s.kind, round(s.start_ms, 2), round(s.end_ms, 2)) for s in run.stretches]


def run_of(rows: list[Row]) -> ProbeRun:
    return run_with_delays([(*row, 0, 0) for row in rows])


def run_with_delays(rows: list[tuple[int, int, int, int, str, int, int]]) -> ProbeRun:
    return probe_run(read_ticks([(*row, 0) for row in rows]))


def test_no_tick_at_all_is_computing_with_the_gil() -> None:
    run = run_of([(0, 100, 0, 1, "begin"), (30_000, 30_100, 0, 1, "end")])
    assert kinds(run) == [("cpu", 0.0, 30.0)]


def test_a_core_that_was_taken_away_is_still_computing_with_the_gil() -> None:
    run = run_of([(0, 100, 0, 1, "begin"), (60_000, 30_100, 0, 1, "end")])
    assert kinds(run) == [("cpu", 0.0, 60.0)]


def test_ticks_while_the_cpu_clock_stands_are_waiting() -> None:
    rows: list[Row] = [(0, 0, 0, 1, "begin")]
    rows += [(250 * n, 20, 200, 0, SLEEPING) for n in range(1, 41)]
    run = run_of([*rows, (10_100, 60, 0, 1, "end")])
    assert run.time_ms("block") == pytest.approx(10.04, abs=0.01)
    assert run.time_ms("cpu") == pytest.approx(0.06, abs=0.01)


def test_ticks_while_the_thread_runs_are_native() -> None:
    rows: list[Row] = [(0, 0, 0, 1, "begin")]
    rows += [(250 * n, 230 * n, 200, 0, "running") for n in range(1, 41)]
    run = run_of([*rows, (10_100, 9300, 0, 1, "end")])
    assert kinds(run) == [("native", 0.0, 10.1)]


def test_native_threads_that_get_no_core_do_not_wait() -> None:
    """Another program has the core: the thread could run, it only may not."""
    rows: list[Row] = [(0, 0, 0, 1, "begin"), (250, 240, 200, 0, "running")]
    rows += [(250 * n, 240, 200, 0, "running") for n in range(2, 20)]
    run = run_of([*rows, (5000, 300, 0, 1, "end")])
    assert run.time_ms("block") == 0


def test_a_long_hold_after_a_wait_begins_where_the_cpu_clock_went_on() -> None:
    rows: list[Row] = [(0, 0, 0, 1, "begin")]
    rows += [(250 * n, 0, 200, 0, SLEEPING) for n in range(1, 5)]
    rows += [(11_150, 10_000, 200, 1, SLEEPING), (11_250, 10_000, 50, 0, SLEEPING)]
    run = run_of([*rows, (11_300, 10_000, 0, 1, "end")])
    assert kinds(run)[:3] == [("block", 0.0, 1.15), ("cpu", 1.15, 11.15), ("block", 11.15, 11.3)]


def test_stretches_cover_the_run_without_gap_and_are_named() -> None:
    rows: list[Row] = [(0, 0, 0, 1, "begin"), (900, 700, 200, 1, "running")]
    rows += [(1000, 780, 50, 0, "running"), (1200, 800, 100, 0, SLEEPING)]
    run = run_of([*rows, (1300, 805, 0, 1, "end")])
    ends = [0.0] + [s.end_ms for s in run.stretches]
    assert [s.start_ms for s in run.stretches] == pytest.approx(ends[:-1])
    assert ends[-1] == pytest.approx(run.duration_ms)
    assert {s.syscall for s in run.stretches if s.kind == "block"} == {syscall_name(SLEEPING)}


def test_a_probe_that_could_not_run_before_the_end_saw_no_hold_of_the_gil() -> None:
    native: list[Row] = [(0, 0, 0, 1, "begin"), (250, 240, 200, 0, "running")]
    starved = run_of([*native, (5000, 5000, 0, 0, "end")])
    waiting = run_of([*native, (5000, 5000, 0, 1, "end")])
    assert starved.time_ms("cpu") == 0
    assert waiting.time_ms("cpu") > 4


def test_a_probe_that_wakes_late_does_not_make_the_wait_computing() -> None:
    """The handler computed for 10 ms and waits since; the probe had the GIL 5 ms later."""
    run = run_of(
        [(0, 0, 0, 1, "begin"), (15_000, 10_000, 200, 1, SLEEPING), (15_100, 10_000, 0, 1, "end")]
    )
    assert kinds(run)[:2] == [("cpu", 0.0, 10.0), ("block", 10.0, 15.1)]


def test_time_without_a_core_is_nobodys() -> None:
    """The thread could run from 10 to 14 ms, which the kernel says only when it runs."""
    run = run_with_delays(
        [
            (0, 0, 0, 1, "begin", 50, 0),
            (10_000, 9_900, 200, 1, "running", 50, 0),
            (10_250, 9_900, 200, 0, "running", 50, 0),
            (14_250, 10_150, 200, 0, "running", 4050, 0),
            (20_250, 16_150, 0, 0, "end", 4050, 0),
        ]
    )
    assert run.duration_ms == pytest.approx(16.25)
    assert kinds(run) == [("cpu", 0.0, 10.0), ("native", 10.0, 16.25)]


def test_a_short_hold_that_the_probe_runs_into_is_not_all_since_it_slept() -> None:
    """It had no core for a millisecond, and then the GIL was held for some 30 us."""
    native = [(0, 0, 0, 1, "begin", 0, 0), (250, 240, 200, 0, "running", 0, 0)]
    run = run_with_delays(
        [
            *native,
            (1530, 1500, 200, 1, "running", 0, 1000),
            (1780, 1750, 200, 0, "running", 0, 1000),
            (1800, 1770, 0, 0, "end", 0, 1000),
        ]
    )
    assert run.time_ms("cpu") < 0.1


def test_threads_that_compute_at_once_keep_more_than_one_core_busy() -> None:
    rows: list[Row] = [(0, 0, 0, 1, "begin")]
    rows += [(250 * n, 500 * n, 200, 0, "running") for n in range(1, 41)]
    (stretch,) = run_of([*rows, (10_100, 20_200, 0, 1, "end")]).stretches
    assert (stretch.kind, stretch.cpu_ms) == ("native", pytest.approx(20.2))
    assert stretch.parallelism == min(CORES, 2.0)


def test_a_thread_that_computes_beside_python_keeps_a_second_core_busy() -> None:
    (stretch,) = run_of([(0, 0, 0, 1, "begin"), (50_000, 75_000, 0, 1, "end")]).stretches
    assert (stretch.kind, stretch.parallelism) == ("cpu", min(CORES, 1.5))


def test_threads_that_hand_the_gil_on_keep_one_core_busy() -> None:
    (stretch,) = run_of([(0, 0, 0, 1, "begin"), (50_000, 52_000, 0, 1, "end")]).stretches
    assert (stretch.kind, stretch.parallelism) == ("cpu", 1.0)


def test_what_processes_compute_is_known_also_while_the_function_waits() -> None:
    rows = [(250 * n, 0, 200, 0, SLEEPING, 0, 0, 4000 * (n // 16)) for n in range(1, 64)]
    begin, end = (0, 0, 0, 1, "begin", 0, 0, 0), (16_000, 0, 0, 1, "end", 0, 0, 16_000)
    run = probe_run(read_ticks([begin, *rows, end]))
    assert run.time_ms("block") == pytest.approx(16.0)
    assert sum(stretch.cpu_ms for stretch in run.stretches) == pytest.approx(16.0)


def test_ticks_beside_the_begin_and_the_end_are_of_no_run() -> None:
    run = [(0, 0, 0, 1, "begin", 0, 0, 0), (9_000, 8_000, 0, 1, "end", 0, 0, 0)]
    before, after = (-1, 5, 200, 0, "running", 9, 0, 0), (9_001, 8_001, 50, 0, SLEEPING, 0, 0, 0)
    assert read_ticks([before, *run, after]) == read_ticks(run)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [[0, 0, 0, 1, "begin", 0, 0, 0]],
        [[0, 0, 0, 1, "end", 0, 0, 0], [1, 1, 1, 1, "begin", 0, 0, 0]],
        [[0, 1], [1, 2]],
    ],
)
def test_rows_that_are_no_ticks_are_refused(rows: list[list[object]]) -> None:
    with pytest.raises((ValueError, IndexError)):
        read_ticks(rows)


def test_system_calls_have_their_names_where_they_are_known() -> None:
    assert syscall_name("230", "x86_64") == syscall_name("115", "aarch64") == "clock_nanosleep"
    assert syscall_name("running", "x86_64") is None
    assert syscall_name("99999", "x86_64") is None
    assert syscall_name("0", "another machine") is None
