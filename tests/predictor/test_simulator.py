"""Threads under the GIL on shared cores, in cases that one can work out by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, chain

import pytest
from by_process import simulate
from oracle import Process

from chiron.predictor.execution import Execution, Node
from chiron.predictor.mechanisms.mechanism import Costs
from chiron.predictor.simulator import Interpreter, Simulator, Span, Work

FREE = Interpreter(switch_interval_ms=5.0, switch_cost_ms=0.0, thread_startup_ms=0.0)


def work(text: str) -> Work:
    """``work("cpu 2 block 10")``."""
    words = text.split()
    return tuple(zip(words[::2], map(float, words[1::2]), strict=True))


def end_ms(*threads: str, cores: int = 1, interpreter: Interpreter = FREE) -> float:
    """When one process with these threads ends."""
    return simulate([Process(0.0, tuple(map(work, threads)))], cores, interpreter)[0]


def recorded(*threads: str, interpreter: Interpreter = FREE, cores: int = 1) -> list[Span]:
    """What the threads of one process do, the one that starts them left out."""
    spans: list[Span] = []
    simulate([Process(0.0, tuple(map(work, threads)))], cores, interpreter, spans.append)
    return [span for span in spans if span.thread >= 0]


def held(*threads: str, interpreter: Interpreter = FREE) -> list[tuple[int, float, float]]:
    """Who holds the GIL from when to when."""
    spans = recorded(*threads, interpreter=interpreter)
    return [(s.thread, s.start_ms, s.end_ms) for s in spans if s.kind == "cpu"]


def done(
    thread: int, *threads: str, interpreter: Interpreter, cores: int = 1
) -> list[tuple[str, float, float]]:
    """What one of the threads does from when to when."""
    spans = recorded(*threads, interpreter=interpreter, cores=cores)
    return [(s.kind, round(s.start_ms, 9), round(s.end_ms, 9)) for s in spans if s.thread == thread]


def test_two_threads_hand_the_gil_over_every_switch_interval():
    assert held("cpu 10", "cpu 10") == [(0, 0, 5), (1, 5, 10), (0, 10, 15), (1, 15, 20)]


def test_a_thread_alone_keeps_the_gil():
    assert held("cpu 100") == [(0, 0, 100)]
    assert held("cpu 20", "cpu 3") == [(0, 0, 5), (1, 5, 8), (0, 8, 23)]


def test_each_change_of_the_holder_costs_its_price():
    costly = Interpreter(switch_interval_ms=5.0, switch_cost_ms=1.0, thread_startup_ms=0.0)
    # The starter, 0, 1, 0, 1: four changes; the interval begins after the change.
    assert held("cpu 10", "cpu 10", interpreter=costly) == [
        (0, 0, 1), (0, 1, 6), (1, 6, 7), (1, 7, 12), (0, 12, 18), (1, 18, 24),
    ]  # fmt: skip


def test_a_switch_may_cost_more_than_its_interval():
    dear = Interpreter(switch_interval_ms=1.0, switch_cost_ms=7.0, thread_startup_ms=0.0)
    # Changes at 0, 8, 16, 24, each dear: 4 ms of work and four changes.
    assert end_ms("cpu 2", "cpu 2", interpreter=dear) == 4.0 + 4 * 7.0


def test_a_block_hands_the_gil_on_at_once():
    assert held("cpu 2 block 10 cpu 1", "cpu 8") == [(0, 0, 2), (1, 2, 10), (0, 12, 13)]


def test_who_wakes_up_waits_one_interval_for_the_holder():
    assert held("cpu 2 block 10 cpu 1", "cpu 20") == [
        (0, 0, 2),
        (1, 2, 17),
        (0, 17, 18),
        (1, 18, 23),
    ]


def test_native_code_lets_others_compute_beside_it():
    assert end_ms("native 10", "cpu 10", cores=2) == 10.0
    assert end_ms("native 10", "cpu 10", cores=1) == 20.0


def test_helpers_compute_beside_their_function_on_cores_of_their_own():
    with_two = "helper 10 helper 4 native 10 join 0 cpu 1"
    assert end_ms(with_two, cores=3) == 11.0
    assert end_ms(with_two, cores=2) == 13.0
    assert end_ms(with_two, cores=1) == 25.0


def test_helpers_need_no_gil_and_their_function_keeps_its_own():
    assert held("helper 3 cpu 6 join 0 cpu 2") == [(0, 0, 9), (0, 9, 11)]


def test_who_waits_for_its_helpers_lets_the_gil_go():
    threads = ("helper 8 cpu 2 join 0 cpu 1", "cpu 12")
    assert end_ms(*threads, cores=2) == 15.0
    assert held("helper 8 cpu 2 join 0", "block 20 cpu 1") == [(0, 0, 4), (1, 24, 25)]


def test_helpers_of_two_processes_compete_for_the_cores():
    two = [Process(0.0, (work("helper 10 native 10 join 0"),))] * 2
    assert simulate(two, 4, FREE) == [10.0, 10.0]
    assert simulate(two, 2, FREE) == [20.0, 20.0]
    assert simulate(two, 2, FREE, contention_overhead=0.25) == [25.0, 25.0]


def test_what_helpers_do_is_recorded_beside_their_function():
    spans = [(s.kind, s.start_ms, s.end_ms) for s in recorded("helper 3 native 1 join 0 block 2")]
    assert spans == [("native", 0, 2), ("helper", 0, 4), ("join", 2, 4), ("block", 4, 6)]


def test_a_thread_without_periods_ends_as_its_process_starts():
    assert simulate([Process(3.0, ((),))], 1, FREE) == [3.0]


def test_the_thread_that_starts_the_others_works_for_each():
    starting = Interpreter(switch_interval_ms=5.0, switch_cost_ms=0.0, thread_startup_ms=1.0)
    assert end_ms("cpu 10", interpreter=starting) == 11.0
    assert end_ms("block 10", "block 10", interpreter=starting) == 12.0
    assert end_ms("cpu 3", "cpu 3", interpreter=starting) == 8.0


def test_each_thread_that_waits_already_is_called_by_the_one_before_right_before_its_work():
    starting = Interpreter(switch_interval_ms=5.0, switch_cost_ms=0.0, thread_startup_ms=1.0)
    # 0 calls 1 from 1 to 2. 1 waits for the GIL until 7 and calls 2 until 8, which comes after 0:
    # that has waited since 7.
    assert held("cpu 9", "cpu 2", "cpu 1", interpreter=starting) == [
        (0, 1, 2), (0, 2, 7), (1, 7, 8), (1, 8, 10), (0, 10, 14), (2, 14, 15),
    ]  # fmt: skip


def test_a_new_thread_is_waited_for_and_then_keeps_the_gil_from_the_starter():
    new = Interpreter(5.0, 0.0, thread_startup_ms=1.0, thread_ready_ms=0.5)
    # Thread 0 runs from 1.5; the starter asks at once, gets the GIL at 6.5 and hands it back at
    # 7.5, as it waits for thread 1, which is ready at 8, before it would have to be asked.
    assert held("cpu 9", "cpu 2", interpreter=new) == [
        (0, 1.5, 6.5),
        (0, 7.5, 11.5),
        (1, 11.5, 13.5),
    ]


def test_the_gil_goes_to_who_has_waited_longest_whatever_it_has_computed():
    # 0 and 1 wake up at 9 and 2 is asked to stop at 14. At 20 it has waited longer than 0, which
    # has computed less.
    assert held("block 9 cpu 8", "block 9 cpu 1", "cpu 30") == [
        (2, 0, 14), (0, 14, 19), (1, 19, 20), (2, 20, 25), (0, 25, 28), (2, 28, 39),
    ]  # fmt: skip


KEEPING = Interpreter(5.0, 0.0, 0.0, short_release_ms=0.1)


@pytest.mark.parametrize("call", ["native 0.05", "block 0.05"])
def test_who_calls_briefly_on_a_busy_core_has_the_gil_back_before_others(call):
    threads = (f"cpu 1 {call} cpu 1", "cpu 3")
    kind, _ = call.split()
    assert done(0, *threads, interpreter=KEEPING) == [
        ("cpu", 0, 1), (kind, 1, 1.05), ("cpu", 1.05, 2.05),
    ]  # fmt: skip
    assert done(1, *threads, interpreter=KEEPING) == [("wait-gil", 0, 2.05), ("cpu", 2.05, 5.05)]


def test_on_a_free_core_others_are_faster_than_the_shortest_call():
    threads = ("cpu 1 block 1 cpu 1 native 0.05 cpu 1", "block 1.5 cpu 3")
    assert done(1, *threads, cores=2, interpreter=KEEPING) == [
        ("wait-gil", 0, 1), ("block", 1, 2.5), ("wait-gil", 2.5, 3), ("cpu", 3, 6),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second_begins_ms"),
    [("cpu 1 native 0.05 cpu 1", 2.05), ("cpu 4 native 0.05 cpu 2 native 0.05 cpu 1", 6.05)],
    ids=["soon", "an interval after its begin"],
)
def test_a_task_that_has_not_begun_leaves_short_calls_to_the_task_before(first, second_begins_ms):
    threads = (first, "cpu 3")
    assert done(1, *threads, cores=2, interpreter=KEEPING)[0] == ("wait-gil", 0, second_begins_ms)


def test_it_leaves_them_to_no_other_task():
    # The second begins at 2.5, when the first already waits again, and calls the third.
    threads = ("cpu 1 block 0.3 cpu 1 native 0.05 cpu 1", "cpu 0.5 block 5", "cpu 1")
    starting = replace(KEEPING, thread_startup_ms=0.5)
    assert done(2, *threads, cores=2, interpreter=starting)[0] == ("wait-gil", 2.5, 4)


def test_a_call_that_is_not_short_lets_the_gil_go_on_a_busy_core_too():
    threads = ("cpu 1 block 0.1 cpu 1", "cpu 3")
    assert done(1, *threads, interpreter=KEEPING) == [("wait-gil", 0, 1), ("cpu", 1, 4)]


def test_who_was_woken_in_vain_waits_for_a_whole_interval_again():
    threads = ("cpu 4 block 0.05 cpu 4", "cpu 1")
    assert done(1, *threads, interpreter=KEEPING) == [("wait-gil", 0, 8.05), ("cpu", 8.05, 9.05)]


def test_processes_run_at_once_where_there_are_cores_and_share_where_not():
    two = [Process(0.0, (work("cpu 10"),))] * 2
    assert simulate(two, 2, FREE) == [10.0, 10.0]
    assert simulate(two, 1, FREE) == [20.0, 20.0]
    assert simulate(two * 2, 3, FREE) == pytest.approx([40 / 3] * 4)


def test_computing_takes_longer_while_more_threads_want_to_than_cores_can():
    three = [Process(0.0, (work("cpu 10"),)), *[Process(0.0, (work("native 10"),))] * 2]
    assert simulate(three, 2, FREE, contention_overhead=0.2) == pytest.approx([18.0] * 3)
    assert simulate(three, 3, FREE, contention_overhead=0.2) == [10.0] * 3
    assert simulate(three, 1, FREE, contention_overhead=0.2) == [30.0] * 3, "one core is never idle"


def test_so_it_does_while_threads_wait_for_the_gil_and_others_compute():
    """Until each process has a thread left, after 18 ms of work; the last 2 ms are not longer."""
    process = Process(0.0, (work("cpu 10"), work("cpu 10")))
    assert simulate([process] * 2, 2, FREE, contention_overhead=0.25) == pytest.approx([24.5] * 2)
    assert simulate([process], 2, FREE, contention_overhead=0.25) == [20.0]


def test_what_contention_overhead_cost_counts_as_computing_and_not_as_waiting_for_a_core():
    spans: list[Span] = []
    three = [Process(0.0, (work("cpu 10"),))] * 3
    simulate(three, 2, FREE, spans.append, contention_overhead=0.2)
    assert [span.wait_core_ms for span in spans if span.kind == "cpu"] == pytest.approx([6.0] * 3)


def test_a_process_that_starts_late_takes_its_share_from_then_on():
    # Alone until 3 with 7 left; then half a core each: 4 take 8 until 11, the last 3 alone.
    late = [Process(0.0, (work("cpu 10"),)), Process(3.0, (work("cpu 4"),))]
    assert simulate(late, 1, FREE) == [14.0, 11.0]


def test_blocked_threads_need_no_core():
    both = [Process(0.0, (work("block 10"),)), Process(0.0, (work("cpu 10"),))]
    assert simulate(both, 1, FREE) == [10.0, 10.0]


def test_hours_come_to_an_end_although_the_clock_grows_coarse():
    long = work("native 3167375.591 cpu 2366806.185 native 1038622.981 cpu 2937609.019")
    short = work("native 2343613.711 native 3111633.329 cpu 3165351.165")
    ends = simulate([Process(0.0, (long,)), Process(0.0, (short,))], 1, FREE)
    assert ends == pytest.approx([18_131_011.981, 2 * 8_620_598.205])


def test_more_cores_may_end_later_since_the_gil_is_asked_for_in_another_order():
    """A true anomaly, as list scheduling has them (Graham 1969), and as CPython would show it.

    On two cores the first thread is done with native code by 4 and has the GIL until 9, so that
    the second one, which woke up at 5, begins its long block at 10. On one core native code takes
    until 7, and the second thread needs the GIL before.
    """
    threads = ("native 4 cpu 5", "block 5 cpu 1 block 5", "native 2")
    assert end_ms(*threads, cores=2) == 15.0
    assert end_ms(*threads, cores=1) == 12.0


def forked(*wraps: tuple[Work, ...], cores: int, costs: Costs) -> list[float]:
    """When each process ends, of wraps whose tasks have a process each, the first the main one."""
    names = [[f"{w}.{t}" for t in range(len(works))] for w, works in enumerate(wraps)]
    works = dict(zip(chain(*names), chain(*wraps), strict=True))
    ends = list(accumulate(map(len, names)))
    nodes = [
        Node(wrap=w, starts=range(end - len(each), end))
        for w, (each, end) in enumerate(zip(names, ends, strict=True))
    ]
    processes = [(w, 1) for w, each in enumerate(names) for _ in each]
    simulator = Simulator(works, FREE)
    image = simulator.image(Execution([cores], [(0, costs)] * len(wraps), processes, nodes))
    return simulator.run(image, works).ends_ms()


def computing(forking_ms: float, more_ms: float, ready_ms: float = 0.0) -> Costs:
    """What forks computes so long for each process, which then computes itself."""
    return Costs(
        ready_ms,
        block_ms=forking_ms,
        blocks_computing=True,
        computing_ms=forking_ms + more_ms,
        main_ms=0.0,
    )


def test_processes_are_forked_one_after_another():
    """Each is forked for 2 ms, gets ready for 3 and works for 1; there are cores for all."""
    wrap = (work("cpu 4"), *[work("cpu 1")] * 3)
    assert forked(wrap, cores=4, costs=computing(2.0, 3.0, ready_ms=1.0)) == [4.0, 7.0, 9.0, 11.0]


def test_who_forks_shares_the_cores_with_what_it_has_forked():
    """Forking the second takes from 2 to 6: meanwhile the first one computes on the same core."""
    wrap = ((), work("cpu 1"), work("cpu 1"))
    assert forked(wrap, cores=1, costs=computing(2.0, 2.0))[1:] == [8.0, 10.0]


def test_processes_of_two_wraps_are_forked_by_each_its_own():
    first = (work("block 9"), work("cpu 1"), work("cpu 1"))
    ends = forked(first, first[:2], cores=9, costs=computing(2.0, 0.0))
    assert ends == [9.0, 3.0, 5.0, 9.0, 3.0]


def test_what_is_cooperative_lets_others_run_only_while_it_waits():
    works = {"a": work("cpu 12 block 1 cpu 3"), "b": work("cpu 7")}
    simulator = Simulator(works, FREE, cooperative={"a"})
    image = simulator.image(Execution([1], [(0, Costs(0.0))], [(0, 2)], [Node(starts=(0, 1))]))
    _, spans = simulator.recorded(image, ("a", "b"))
    held = [(s.thread, s.start_ms, s.end_ms) for s in spans if s.kind == "cpu" and s.thread >= 0]
    # The GIL would have changed hands at 5 ms; `b` hands it over as usual.
    assert held == [(0, 0, 12), (1, 12, 18), (0, 18, 21), (1, 21, 22)]
