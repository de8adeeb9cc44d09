"""More work or fewer cores never end earlier by more than the GIL's order can explain.

Who waits for the GIL waits for one handover after another, each of which comes a switch interval
and a switch cost after it was asked for at the latest. So a thread ends no later than its own
periods and that for every handover; and no earlier than its periods, whatever else changes. The
rest is scheduling anomalies, as lists of jobs on several machines have them (Graham 1969).
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from by_process import simulate
from hypothesis import given
from hypothesis import strategies as st
from oracle import Process

from chiron.predictor.simulator import Interpreter, Span, Work

#: An endless simulation would hang again in every attempt of hypothesis to shrink it.
pytestmark = pytest.mark.timeout(600, method="thread")

FREE = Interpreter(switch_interval_ms=5.0, switch_cost_ms=0.0, thread_startup_ms=0.0)
#: More cores than any of these processes has threads.
MANY = 64

times = st.integers(0, 40).map(float) | st.floats(0.0, 40.0).map(lambda time: round(time, 3))
periods = st.tuples(st.sampled_from(["cpu", "native", "block"]), times)
works = st.lists(periods, max_size=4).map(tuple)
computing_periods = st.tuples(st.sampled_from(["cpu", "native"]), times)
computing = st.lists(computing_periods, max_size=4).map(tuple)
ONE: Work = (("cpu", 1.0),)
processes = st.lists(
    st.builds(Process, times, st.lists(works, max_size=4).map(tuple)), min_size=1, max_size=4
)
interpreters = st.builds(
    Interpreter,
    switch_interval_ms=st.sampled_from([0.5, 1.0, 5.0, 12.3]),
    switch_cost_ms=st.sampled_from([0.0, 0.1, 6.0]),
    thread_startup_ms=st.sampled_from([0.0, 0.1, 2.0]),
    thread_ready_ms=st.sampled_from([None, 0.0, 0.6]),
)


def ends_and_slack_ms(
    made: Sequence[Process], interpreter: Interpreter
) -> tuple[list[float], list[float]]:
    """With a core for everyone: the ends, and how long the handovers of each GIL can take."""
    spans: list[Span] = []
    ends = simulate(made, MANY, interpreter, spans.append)
    handover_ms = interpreter.switch_interval_ms + interpreter.switch_cost_ms
    counts = [0] * len(made)
    for span in spans:
        counts[span.process] += span.kind == "cpu"
    return ends, [count * handover_ms + 1e-6 for count in counts]


@st.composite
def with_more(draw: st.DrawFn, made: Sequence[Process]) -> list[Process]:
    """`made` where one process has a further period or a further thread."""
    index = draw(st.integers(0, len(made) - 1))
    threads = list(made[index].threads)
    if threads and draw(st.booleans()):
        number = draw(st.integers(0, len(threads) - 1))
        work = threads[number]
        place = draw(st.integers(0, len(work)))
        threads[number] = (*work[:place], draw(periods), *work[place:])
    else:
        threads.append(draw(works))
    grown = Process(made[index].start_ms, tuple(threads))
    return [*made[:index], grown, *made[index + 1 :]]


@given(st.data(), processes, interpreters)
def test_more_work_ends_no_earlier_than_the_handovers_explain(data, processes, interpreter):
    ends, slack = ends_and_slack_ms(processes, interpreter)
    more = simulate(data.draw(with_more(processes)), MANY, interpreter)
    for before, after, least in zip(ends, more, slack, strict=True):
        assert after >= before - least


@given(processes, st.integers(1, 5), interpreters)
def test_fewer_cores_end_no_earlier_than_the_handovers_explain(processes, k, interpreter):
    ends, slack = ends_and_slack_ms(processes, interpreter)
    fewer = simulate(processes, k, interpreter)
    for before, after, least in zip(ends, fewer, slack, strict=True):
        assert after >= before - least


def alone(works: st.SearchStrategy[Work]) -> st.SearchStrategy[list[Process]]:
    """Processes of one thread each."""
    return st.lists(st.builds(Process, times, st.tuples(works)), min_size=1, max_size=5)


def with_longer(
    data: st.DataObject, made: Sequence[Process], periods: st.SearchStrategy[tuple[str, float]]
) -> tuple[int, int, list[Process]]:
    """So many cores, and `made` where the process of that index has a further period."""
    cores, index = data.draw(st.integers(1, 3)), data.draw(st.integers(0, len(made) - 1))
    (work,) = made[index].threads
    longer = Process(made[index].start_ms, ((*work, data.draw(periods)),))
    return cores, index, [*made[:index], longer, *made[index + 1 :]]


@given(st.data(), alone(computing))
def test_more_work_never_ends_earlier_where_no_thread_waits(data, processes):
    """However few the cores are: what runs longer takes its share of them for longer."""
    k, _, more = with_longer(data, processes, computing_periods)
    for before, after in zip(simulate(processes, k, FREE), simulate(more, k, FREE), strict=True):
        assert after >= before - 1e-6


@given(st.data(), alone(works))
def test_what_has_more_work_never_ends_earlier_itself(data, processes):
    k, index, more = with_longer(data, processes, periods)
    assert simulate(more, k, FREE)[index] >= simulate(processes, k, FREE)[index] - 1e-6


def test_more_work_may_let_another_one_end_earlier_that_then_waits_at_another_time():
    """A true anomaly, on one core: the third has it alone from 3 to 4 as the fourth waits then."""
    waits: Work = (("cpu", 1.0), ("block", 1.0), ("cpu", 1.0))

    def ends_ms(work: Work) -> list[float]:
        threads = [(0.0, ONE), (0.0, work), (3.0, ONE), (0.0, waits)]
        return simulate([Process(start_ms, (each,)) for start_ms, each in threads], 1, FREE)

    assert ends_ms(()) == [2.0, 0.0, 5.0, 5.0]
    assert ends_ms(ONE) == [3.0, 3.0, 4.0, 5.0]


def test_more_work_may_end_earlier_since_the_gil_is_asked_for_in_another_order():
    """A true anomaly, as CPython would show it.

    After 4 of native code the first thread has the GIL until 9, and the second one, which woke
    up at 5, begins its long block at 10. After 6 it asks after the second one has had the GIL.
    """

    def end_ms(native_ms: float) -> float:
        first: Work = (("native", native_ms), ("cpu", 5.0))
        second: Work = (("block", 5.0), ("cpu", 1.0), ("block", 5.0))
        return simulate([Process(0.0, (first, second))], 2, FREE)[0]

    assert end_ms(4.0) == 15.0
    assert end_ms(6.0) == 11.0
