"""Which HTTP requests wait, and which connections give way; no socket and no clock."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wrap.core.shedding import AT_ONCE, MOMENT_S, Bounds, has_stalled
from wrap.http.server.dispatcher import Dispatcher
from wrap.http.traffic_switch import Route


@dataclass(eq=False)
class Connection:
    name: str = ""
    coming: int = 0
    leaving: int = 0
    is_owed: bool = False
    last_activity: float = 0.0


def names(connections: list[Connection]) -> str:
    return "".join(each.name for each in connections)


#: Each of ten connections may hold 100 bytes, whatever the others do.
BOUNDS = Bounds(size=1000, count=10, least=10)


def test_what_has_been_silent_longest_gives_way_first() -> None:
    all_of_them = [
        Connection("late", coming=500, last_activity=3.0),
        Connection("early", coming=101, last_activity=1.0),
        Connection("fair", coming=50, leaving=50, last_activity=0.0),
        Connection("between", coming=60, leaving=60, last_activity=2.0),
    ]
    assert [each.name for each in BOUNDS.yielding(all_of_them)] == ["early", "between", "late"]


def test_of_large_answers_the_latest_goes_out() -> None:
    """However large it is: else no answer above the bound would ever."""
    answers = [Connection(each, leaving=5000, last_activity=ord(each)) for each in "cab"]
    assert names(BOUNDS.yielding(answers)) == "ab"
    assert BOUNDS.yielding(answers[:1]) == []
    request = Connection("z", coming=5000, last_activity=1000.0)
    assert names(BOUNDS.yielding([*answers, request])) == "abz"


def test_each_connection_may_hold_what_any_request_takes() -> None:
    many = Bounds(size=1000, count=1000, least=10)
    assert many.yielding([Connection(coming=10)]) == []
    assert len(many.yielding([Connection(coming=11)])) == 1


def test_while_more_is_read_more_is_freed() -> None:
    assert BOUNDS.while_reading == 875


CONNECTIONS = st.lists(
    st.builds(
        Connection, is_owed=st.booleans(), last_activity=st.sampled_from([0.0, 1.0, 9.99, 10.0])
    ),
    max_size=200,
)


@given(CONNECTIONS, st.integers(1, 200))
def test_no_more_connections_are_accepted_than_there_are_places(
    connections: list[Connection], count: int
) -> None:
    now = 10.0
    places = Bounds(1000, count, 10).places(connections, now)
    silent = [each for each in places if each is not None]
    assert len(places) <= AT_ONCE
    assert places == [None] * (len(places) - len(silent)) + silent, "free places come first"
    assert len(connections) + len(places) - len(silent) <= max(count, len(connections))
    assert not any(each.is_owed for each in silent)
    assert all(each.last_activity < now - MOMENT_S for each in silent)
    assert sorted(each.last_activity for each in silent) == [e.last_activity for e in silent]
    if len(places) < AT_ONCE:
        stay = [each for each in connections if each not in silent]
        assert all(e.is_owed or e.last_activity >= now - MOMENT_S for e in stay)
        assert len(stay) + len(places) >= count


@pytest.mark.parametrize(
    ("leaving", "silent_s", "stalled"), [(1, 30.1, True), (1, 30.0, False), (0, 1000.0, False)]
)
def test_an_answer_of_which_nothing_is_taken_is_given_up(
    leaving: int, silent_s: float, stalled: bool
) -> None:
    assert has_stalled(Connection(leaving=leaving), silent_s) == stalled


STEPS = st.tuples(st.sampled_from(["add", "end", "limit", "remove"]), st.integers(0, 5))


@given(st.lists(STEPS))
def test_requests_are_served_in_their_order_and_no_more_than_the_limit(
    steps: list[tuple[str, int]],
) -> None:
    come, begun, limit = list[int](), list[int](), 0
    dispatcher = Dispatcher(lambda serve: begun.append(serve.__self__))  # type: ignore[attr-defined]
    for number, (step, value) in enumerate(steps):
        before, _ = dispatcher.count()
        match step:
            case "add":
                come.append(number)
                dispatcher.add_task(Request(number))  # type: ignore[arg-type]
            case "end" if before:
                dispatcher.end()
            case "limit":
                limit = value
                dispatcher.set_thread_count(limit)
            case "remove" if come:
                request = come[value % len(come)]
                assert dispatcher.forget(Request(request)) == (request not in begun)  # type: ignore[arg-type]
                if request not in begun:
                    come.remove(request)
        active, waiting = dispatcher.count()
        assert active <= max(limit, before)
        assert not waiting or active >= limit, "it waits though it could be served"
        assert begun == come[: len(begun)]
        assert len(begun) + waiting == len(come)


class Request(int):
    def serve_first(self) -> None:
        raise AssertionError("a thread serves it")


def test_more_requests_are_served_at_once_while_another_wrap_answers_them() -> None:
    assert [Route("", threads=8).threads, Route("other", threads=8).threads] == [8, 64]
    assert Route("other", threads=100).threads == 100
