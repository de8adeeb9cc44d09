"""Which end of a stream a task gets, in whatever order tasks, wraps and attempts come."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wrap.core.streams import OpenStreams, StreamId, Streams

STREAM = StreamId(execution=7, output=0, reader=1)
LATER = STREAM._replace(attempt=1)


class End:
    """An end; it can be told from all others."""


class Ends:
    """The rules, and an execution with the number of `STREAM`."""

    def __init__(self) -> None:
        self.streams = Streams[End, OpenStreams[End]]()
        self.execution = OpenStreams[End](STREAM.execution)


@pytest.fixture
def ends() -> Ends:
    return Ends()


def test_an_end_waits_for_the_task_that_asks_next(ends: Ends) -> None:
    end = End()
    ends.streams.begin(ends.execution)
    assert ends.streams.take(STREAM) is None
    assert ends.streams.add(STREAM, end)
    assert ends.streams.take(STREAM) is end
    assert ends.streams.take(STREAM) is None


def test_a_stream_that_comes_early_waits_for_its_execution(ends: Ends) -> None:
    end = End()
    assert ends.streams.add(STREAM, end)
    assert ends.streams.in_hand and ends.streams.expects(STREAM.execution)
    assert not ends.streams.is_wanted(STREAM)
    ends.streams.begin(ends.execution)
    assert not ends.streams.in_hand
    assert not ends.streams.forget(STREAM, end)
    assert ends.streams.take(STREAM) is end


def test_a_stream_whose_execution_never_comes_is_forgotten_once(ends: Ends) -> None:
    end, other = End(), End()
    ends.streams.add(STREAM, other)
    ends.streams.add(STREAM, end)  # its writer has connected again
    assert not ends.streams.forget(STREAM, other)
    assert ends.streams.forget(STREAM, end)
    assert not ends.streams.forget(STREAM, end)
    assert not ends.streams.expects(STREAM.execution)


def test_another_attempt_breaks_off_the_streams_of_its_readers_alone(ends: Ends) -> None:
    used, waiting, of_other = End(), End(), End()
    other = STREAM._replace(reader=2)
    ends.streams.begin(ends.execution)
    assert ends.streams.use(STREAM, used)
    ends.streams.add(STREAM, waiting)
    ends.streams.add(other, of_other)
    broken = ends.streams.begin_attempt(ends.execution, [STREAM.reader], 1)
    assert (broken.waiting, broken.in_use) == ([waiting], [used])
    assert not ends.streams.add(STREAM, End())
    assert not ends.streams.use(STREAM, End())
    assert ends.streams.is_wanted(LATER)
    assert ends.streams.take(other) is of_other


def test_an_execution_that_has_ended_leaves_the_streams_of_its_next_run_alone(ends: Ends) -> None:
    present, later, again = End(), End(), OpenStreams[End](STREAM.execution)
    ends.streams.begin(ends.execution)
    ends.streams.begin_attempt(ends.execution, [STREAM.reader], 1)
    ends.streams.add(LATER, present)
    ends.streams.add(STREAM._replace(attempt=2), later)
    ends.streams.begin(again)
    assert ends.streams.end(ends.execution).waiting == [present]
    assert ends.streams.get(STREAM.execution) is again
    assert ends.streams.take(STREAM._replace(attempt=2)) is later


STEPS = st.tuples(
    st.sampled_from(["begin", "end", "attempt", "add", "take", "use", "forget"]),
    st.builds(StreamId, st.integers(0, 1), st.just(0), st.integers(0, 1), st.integers(0, 2)),
)


@given(st.lists(STEPS))
def test_in_any_order_an_end_is_handed_out_or_breaks_off_once(
    steps: list[tuple[str, StreamId]],
) -> None:
    streams = Streams[End, OpenStreams[End]]()
    running, waiting, used = dict[int, OpenStreams[End]](), dict[StreamId, End](), set[End]()
    for step, stream in steps:
        execution = running.get(stream.execution)
        wanted = execution is not None and not execution.is_over(stream)
        assert streams.get(stream.execution) is execution
        assert streams.is_wanted(stream) == wanted
        match step:
            case "begin" if execution is None:
                running[stream.execution] = OpenStreams(stream.execution)
                streams.begin(running[stream.execution])
            case "end" | "attempt" if execution is not None:
                if step == "end":
                    broken = streams.end(running.pop(stream.execution))
                else:
                    broken = streams.begin_attempt(execution, [stream.reader], stream.attempt)
                assert set(broken.waiting) <= set(waiting.values())
                assert set(broken.in_use) <= used
                waiting = {key: end for key, end in waiting.items() if end not in broken.waiting}
                used -= set(broken.in_use)
            case "add":
                end = End()
                assert streams.add(stream, end) == (wanted or execution is None)
                if wanted or execution is None:
                    waiting[stream] = end
            case "take":
                assert streams.take(stream) is waiting.pop(stream, None)
            case "use":
                end = End()
                assert streams.use(stream, end) == wanted
                used |= {end} if wanted else set()
            case "forget" if stream in waiting:
                assert not streams.forget(stream, End())
                assert streams.forget(stream, waiting[stream]) == (execution is None)
                if execution is None:
                    del waiting[stream]
        assert streams.in_hand == any(key.execution not in running for key in waiting)
