"""The recorded spans show threads that obey the GIL's rules, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise, zip_longest

import pytest
from by_process import simulate
from hypothesis import given
from hypothesis import strategies as st
from oracle import Process

from chiron.predictor.simulator import Interpreter, Span

#: An endless simulation would hang again in every attempt of hypothesis to shrink it.
pytestmark = pytest.mark.timeout(600, method="thread")

CLOSE_MS = 1e-6

times = st.integers(0, 40).map(float) | st.floats(0.0, 40.0).map(lambda time: round(time, 3))
works = st.lists(st.tuples(st.sampled_from(["cpu", "native", "block"]), times), max_size=4).map(
    tuple
)
processes = st.lists(
    st.builds(
        Process,
        times,
        st.lists(works, min_size=1, max_size=4).map(tuple),
    ),
    min_size=1,
    max_size=4,
)
interpreters = st.builds(
    Interpreter,
    switch_interval_ms=st.sampled_from([0.5, 1.0, 5.0, 12.3]),
    switch_cost_ms=st.sampled_from([0.0, 0.1, 6.0]),
    thread_startup_ms=st.sampled_from([0.0, 0.1, 2.0]),
    thread_ready_ms=st.sampled_from([None, 0.0, 0.6]),
)
free = st.builds(
    Interpreter, st.sampled_from([0.5, 1.0, 5.0, 12.3]), st.just(0.0), st.sampled_from([0.0, 0.1])
)
cores = st.integers(1, 5)
MANY = 64


def recorded(
    processes: Sequence[Process], k: int, interpreter: Interpreter
) -> tuple[list[Span], list[float]]:
    spans: list[Span] = []
    ends = simulate(processes, k, interpreter, spans.append)
    return sorted(spans, key=lambda span: (span.process, span.thread, span.start_ms)), ends


def overlap(spans: Sequence[Span]) -> float:
    """The longest time that two of `spans` have in common."""
    ordered = sorted(spans, key=lambda span: span.start_ms)
    return max((a.end_ms - b.start_ms for a, b in pairwise(ordered)), default=0.0)


@given(processes, cores, interpreters)
def test_a_thread_does_one_thing_at_a_time_without_a_gap(processes, k, interpreter):
    spans, _ = recorded(processes, k, interpreter)
    for _, own in groupby(spans, key=lambda span: (span.process, span.thread)):
        for before, after in pairwise(own):
            assert after.start_ms == pytest.approx(before.end_ms, abs=CLOSE_MS)


@given(processes, cores, interpreters)
def test_a_process_ends_with_its_last_span(processes, k, interpreter):
    spans, ends = recorded(processes, k, interpreter)
    for number, (end, process) in enumerate(zip(ends, processes, strict=True)):
        own = [s.end_ms for s in spans if s.process == number and s.thread >= 0]
        assert max(own, default=0.0) <= end + CLOSE_MS
        if own and all(sum(d for _, d in work) for work in process.threads):
            assert max(own) == pytest.approx(end, abs=CLOSE_MS)


@given(processes, cores, interpreters)
def test_a_gil_has_one_holder_at_a_time(processes, k, interpreter):
    spans, _ = recorded(processes, k, interpreter)
    for number in range(len(processes)):
        holders = [s for s in spans if s.process == number and s.kind == "cpu"]
        assert overlap(holders) <= CLOSE_MS


@given(processes, interpreters)
def test_nobody_waits_for_a_gil_that_nobody_holds(processes, interpreter):
    spans, _ = recorded(processes, MANY, interpreter)
    for waiting in (s for s in spans if s.kind == "wait-gil"):
        held = [
            min(s.end_ms, waiting.end_ms) - max(s.start_ms, waiting.start_ms)
            for s in spans
            if s.process == waiting.process and s.kind == "cpu"
        ]
        covered = sum(max(0.0, part) for part in held)
        assert covered == pytest.approx(waiting.end_ms - waiting.start_ms, abs=CLOSE_MS)


@given(processes, free)
def test_with_cores_for_all_a_thread_does_its_periods_and_calls_the_next(processes, interpreter):
    spans, _ = recorded(processes, MANY, interpreter)
    calls = interpreter.thread_ready_ms is None
    for number, process in enumerate(processes):
        for thread, work in enumerate(process.threads):
            own = [s for s in spans if (s.process, s.thread) == (number, thread)]
            has_next = calls and thread < len(process.threads) - 1
            for kind in ("cpu", "native", "block"):
                wanted = sum(d for k, d in work if k == kind)
                if kind == "cpu" and has_next:
                    wanted += interpreter.thread_startup_ms
                done = sum(s.end_ms - s.start_ms for s in own if s.kind == kind)
                assert done == pytest.approx(wanted, abs=CLOSE_MS)


@given(processes, cores, free)
def test_the_cores_are_never_idle_while_someone_could_compute(processes, k, interpreter):
    """Work is conserved: what all threads compute is what the busy cores give them."""
    spans, _ = recorded(processes, k, interpreter)
    computing = [s for s in spans if s.kind in ("cpu", "native")]
    instants = sorted({time for s in computing for time in (s.start_ms, s.end_ms)})
    given_ms = 0.0
    for start, end in pairwise(instants):
        active = sum(1 for s in computing if s.start_ms <= start and s.end_ms >= end)
        given_ms += min(k, active) * (end - start)
    starter_ms = sum(interpreter.thread_startup_ms * len(p.threads) for p in processes)
    works_ms = sum(d for p in processes for w in p.threads for kind, d in w if kind != "block")
    assert given_ms == pytest.approx(works_ms + starter_ms, rel=1e-6, abs=1e-5)


real_times = times.filter(lambda time: time > 0)
real_works = st.lists(
    st.tuples(st.sampled_from(["cpu", "native", "block"]), real_times), max_size=4
).map(tuple)


@given(st.lists(real_works, min_size=2, max_size=5), st.sampled_from([0.5, 1.0, 5.0, 12.3]))
def test_a_holder_is_stopped_one_interval_after_it_was_asked_and_no_earlier(works, interval):
    interpreter = Interpreter(interval, 0.0, thread_startup_ms=0.1)  # every hold has a length
    spans, _ = recorded([Process(0.0, tuple(works))], MANY, interpreter)
    for thread in range(len(works)):
        for start_ms, end_ms, what_follows in holds([s for s in spans if s.thread == thread]):
            asked = [
                s.start_ms
                for s in spans
                if s.kind == "wait-gil" and s.start_ms < end_ms - CLOSE_MS and s.end_ms >= end_ms
            ]
            limit = max(start_ms, min(asked, default=math.inf)) + interval
            assert end_ms <= limit + CLOSE_MS
            if what_follows == "wait-gil":
                assert end_ms == pytest.approx(limit, abs=CLOSE_MS)


def holds(spans: Sequence[Span]) -> Iterator[tuple[float, float, str | None]]:
    """Stretches of one thread's adjacent cpu periods: start, end and the kind of what follows."""
    start_ms = None
    for span, after in zip_longest(spans, spans[1:]):
        if span.kind != "cpu":
            continue
        start_ms = span.start_ms if start_ms is None else start_ms
        if after is None or after.kind != "cpu":
            yield start_ms, span.end_ms, after.kind if after else None
            start_ms = None
