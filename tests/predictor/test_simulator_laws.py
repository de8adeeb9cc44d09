"""What holds for every simulation: bounds, symmetries, and an answer in the end."""

from __future__ import annotations

import math

import pytest
from by_process import simulate
from hypothesis import given
from hypothesis import strategies as st
from oracle import Process

from chiron.predictor.simulator import Interpreter

#: An endless simulation would hang again in every attempt of hypothesis to shrink it.
pytestmark = pytest.mark.timeout(600, method="thread")

FREE = Interpreter(switch_interval_ms=5.0, switch_cost_ms=0.0, thread_startup_ms=0.0)
CLOSE = {"rel": 1e-9, "abs": 1e-6}


def floats(low: float, high: float) -> st.SearchStrategy[float]:
    """Times in whole microseconds, as profiles have them."""
    return st.floats(low, high).map(lambda time: round(time, 3))


times = st.one_of(st.just(0.0), st.integers(1, 40).map(float), floats(0.0, 40.0))
works = st.lists(st.tuples(st.sampled_from(["cpu", "native", "block"]), times), max_size=4).map(
    tuple
)
processes = st.lists(
    st.builds(Process, times, st.lists(works, min_size=1, max_size=4).map(tuple)),
    min_size=1,
    max_size=4,
)
interpreters = st.builds(
    Interpreter,
    switch_interval_ms=st.sampled_from([0.5, 1.0, 5.0]) | floats(0.5, 50.0),
    switch_cost_ms=st.sampled_from([0.0, 0.1]) | floats(0.0, 20.0),
    thread_startup_ms=st.sampled_from([0.0, 0.1]) | floats(0.0, 5.0),
    thread_ready_ms=st.sampled_from([None, 0.0, 0.6]) | floats(0.0, 5.0),
)
cores = st.integers(1, 5)


def time_ms(work, *kinds):
    return sum(duration for kind, duration in work if kind in kinds)


@given(
    st.lists(st.builds(Process, times, st.tuples(works)), min_size=1, max_size=6),
    cores,
    st.sampled_from([0.1, 0.5, 2.0]),
)
def test_contention_overhead_delays_no_thread_by_more_than_its_share(processes, k, wasted):
    """Of processes of one thread; others may hand their GIL on in another order."""
    perfect = simulate(processes, k, FREE)
    ends = simulate(processes, k, FREE, contention_overhead=wasted)
    for end, at_best in zip(ends, perfect, strict=True):
        assert at_best - 1e-6 <= end
        if k == 1 or len(processes) <= k:
            assert end == pytest.approx(at_best, **CLOSE)
    start = min(process.start_ms for process in processes)
    assert max(ends) - start <= (max(perfect) - start) * (1 + wasted) + 1e-6


@given(
    st.integers(1, 8),
    st.integers(1, 40).map(float),
    cores,
    st.sampled_from([0.5, 1.0, 5.0]),
    st.sampled_from([0.0, 0.25, 6.0]),
)
def test_n_equal_cpu_threads_take_n_times_as_long_and_their_switches(
    n, duration, k, interval, cost
):
    """Each has the GIL for an interval at a time, and hands it to the next unless it is alone."""
    ends = simulate(
        [Process(0.0, ((("cpu", duration),),) * n)], k, Interpreter(interval, cost, 0.0)
    )
    switches = n * math.ceil(duration / interval) if n > 1 else 1  # the first from the starter
    assert ends == [pytest.approx(n * duration + switches * cost, **CLOSE)]


@given(processes, st.lists(times, min_size=1, max_size=4), st.data(), cores, interpreters)
def test_a_helper_is_a_native_thread_of_another_process(processes, helpers, data, k, interpreter):
    """Where it begins at once and nobody waits for it, its function ends as if it were one."""
    owned = [(ms, data.draw(works)) for ms in helpers]
    owners = [Process(0.0, ((("helper", ms), *work),)) for ms, work in owned]
    apart = [Process(0.0, (work,)) for _, work in owned]
    natives = [Process(0.0, ((("native", ms),),)) for ms in helpers]
    free = Interpreter(interpreter.switch_interval_ms, 0.0, 0.0)
    ends = simulate([*owners, *processes], k, free)
    expected = simulate([*apart, *processes, *natives], k, free)
    assert ends == pytest.approx(expected[: len(ends)], **CLOSE)


@given(st.lists(times, min_size=1, max_size=8), cores)
def test_sleepers_take_as_long_as_the_longest(durations, k):
    threads = tuple((("block", duration),) for duration in durations)
    assert simulate([Process(0.0, threads)], k, FREE) == [pytest.approx(max(durations))]


@given(st.integers(1, 9), times, cores)
def test_n_native_threads_on_k_cores_take_their_share_and_at_most_whole_rounds(n, duration, k):
    """Where each had a core until its end, ceil(n / k) rounds; sharing leaves no core idle."""
    (end,) = simulate([Process(0.0, ((("native", duration),),) * n)], k, FREE)
    assert end >= duration * max(1.0, n / k) - 1e-6
    assert end <= duration * math.ceil(n / k) + 1e-6


@given(processes, cores, interpreters)
def test_every_simulation_ends_with_a_number_after_the_start(processes, k, interpreter):
    ends = simulate(processes, k, interpreter)
    for end, process in zip(ends, processes, strict=True):
        assert math.isfinite(end)
        assert end >= process.start_ms


@given(processes, cores, interpreters)
def test_nothing_ends_before_its_longest_thread_its_gil_or_the_cores_allow(
    processes, k, interpreter
):
    ends = simulate(processes, k, interpreter)
    computing = 0.0
    for end, process in zip(ends, processes, strict=True):
        for work in process.threads:
            assert end >= process.start_ms + time_ms(work, "cpu", "native", "block") - 1e-6
            computing += time_ms(work, "cpu", "native")
        gil_ms = sum(time_ms(work, "cpu") for work in process.threads)
        assert end >= process.start_ms + gil_ms - 1e-6
    first = min(process.start_ms for process in processes)
    assert max(ends) >= first + computing / k - 1e-6


@given(processes, cores, st.sampled_from([0.5, 1.0, 5.0]))
def test_nothing_ends_after_all_that_there_is_to_do_one_after_another(processes, k, interval):
    ends = simulate(processes, k, Interpreter(interval, 0.0, 0.0))
    all_ms = sum(d for process in processes for work in process.threads for _, d in work)
    assert max(ends) <= max(process.start_ms for process in processes) + all_ms + 1e-6


@given(st.data(), processes, cores, interpreters)
def test_the_order_of_processes_makes_no_difference(data, processes, k, interpreter):
    order = data.draw(st.permutations(range(len(processes))))
    ends = simulate(processes, k, interpreter)
    permuted = simulate([processes[i] for i in order], k, interpreter)
    assert permuted == pytest.approx([ends[i] for i in order], **CLOSE)


@given(processes, cores, interpreters, st.sampled_from([0.25, 0.5, 2.0, 4.0]))
def test_scaling_all_times_scales_the_answer(processes, k, interpreter, scale):
    scaled = [
        Process(
            process.start_ms * scale,
            tuple(tuple((kind, d * scale) for kind, d in work) for work in process.threads),
        )
        for process in processes
    ]
    slower = Interpreter(
        interpreter.switch_interval_ms * scale,
        interpreter.switch_cost_ms * scale,
        interpreter.thread_startup_ms * scale,
        interpreter.thread_ready_ms and interpreter.thread_ready_ms * scale,
    )
    ends = [end * scale for end in simulate(processes, k, interpreter)]
    assert simulate(scaled, k, slower) == pytest.approx(ends, **CLOSE)


@given(st.lists(st.builds(Process, times, st.tuples(works)), min_size=1, max_size=5), cores)
def test_more_cores_never_end_later_where_no_thread_waits_for_a_gil(processes, k):
    fewer, more = simulate(processes, k, FREE), simulate(processes, k + 1, FREE)
    for before, after in zip(fewer, more, strict=True):
        assert after <= before + 1e-6


no_native = st.lists(
    st.lists(st.tuples(st.sampled_from(["cpu", "block"]), times), max_size=4).map(tuple),
    max_size=5,
)


@given(no_native, interpreters, st.integers(2, 5))
def test_one_process_without_native_code_never_needs_a_second_core(threads, interpreter, k):
    process = Process(0.0, tuple(threads))
    assert simulate([process], k, interpreter) == simulate([process], 1, interpreter)


@given(processes, cores, interpreters)
def test_the_same_question_has_the_same_answer(processes, k, interpreter):
    assert simulate(processes, k, interpreter) == simulate(processes, k, interpreter)


hours = st.floats(0.0, 3_600_000.0)
long_works = st.lists(
    st.tuples(st.sampled_from(["cpu", "native", "block"]), hours), max_size=4
).map(tuple)


@given(
    st.lists(
        st.builds(
            Process, st.floats(0.0, 1.0), st.lists(long_works, min_size=1, max_size=4).map(tuple)
        ),
        min_size=1,
        max_size=4,
    ),
    st.integers(1, 3),
    st.sampled_from([7_777.7, 10_000.0]),
)
def test_functions_of_an_hour_end_too(processes, k, interval):
    """Past some hours the clock's own steps are coarser than a microsecond's millionth."""
    ends = simulate(processes, k, Interpreter(interval, 0.3, 0.7))
    assert all(math.isfinite(end) for end in ends)
