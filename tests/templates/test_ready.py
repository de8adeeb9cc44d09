"""Firings begin once each, windows first, and never more at once than may."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chiron.wrap.core.buckets.flow import Firing
from chiron.wrap.core.buckets.ready import FiringQueue, by_session


def firing(number: int, begins_session: bool = False) -> Firing[str, str]:
    session = (number,) if begins_session else (0, 0)
    return Firing((number, 0), "task", (), False, session, 0.0, "bucket")


def test_windows_come_before_what_fires_at_once_and_nothing_begins_after_the_end():
    ready = FiringQueue[str, str]()
    ready.add([firing(1), firing(2)])
    ready.add([firing(3, begins_session=True)])
    begun = [ready.next(9) for _ in range(4)]
    assert [each.number[0] if each else None for each in begun] == [3, 1, 2, None]
    ready.add([firing(1)])
    ready.stopped = True
    assert ready.next(9) is None and ready.free(9) == 0 and len(ready) == 1


def test_what_is_promised_is_in_hand_before_it_is_kept():
    ready = FiringQueue[str, str]()
    ready.announce(3)
    assert ready.in_hand == 3 and ready.has_few_firings and ready.free(4) == 1
    ready.announce(1)
    assert not ready.has_few_firings
    ready.remove_announced(4)
    assert ready.in_hand == 0
    ready.announce(2)
    ready.add([firing(1)])
    ready.forget()
    assert ready.in_hand == 0


def test_a_thread_that_serves_is_one_of_those_that_come():
    ready = FiringQueue[str, str]()
    ready.add(map(firing, range(3)))
    assert ready.call(9, serving=True) == 2
    assert ready.call(9, serving=True) == 0  # the two are about to come
    assert ready.call(9, serving=False) == 1
    assert ready.call(2, serving=False) == 0


def test_firings_of_a_session_begin_together():
    first, second, other = firing(1, True), firing(1, True), firing(2)
    assert by_session([first, other, second]) == ({(1,): [first, second]}, [other])


@given(st.lists(st.sampled_from(["add", "window", "call", "end", "more", "less"]), max_size=60))
def test_each_begins_once_and_threads_suffice(steps):
    ready, most, threads, added, begun = FiringQueue[str, str](), 4, 0, list[int](), list[int]()

    def work(count: int) -> None:
        """So many threads come, each of which takes what may begin."""
        for _ in range(count):
            ready.thread_came()
            while (found := ready.next(most)) is not None:
                begun.append(found.number[0])
                assert ready.running <= most

    for step in steps:
        if step in ("add", "window"):
            added.append(len(added))
            ready.add([firing(added[-1], step == "window")])
        elif step == "end" and ready.running:
            ready.ended()
        elif step == "more":
            most = 8
        elif step == "less" and ready.running <= 2:
            most = 2
        elif step == "call":
            threads = ready.call(most, serving=False)
            assert threads <= max(0, most - ready.running)
            work(threads)
            assert not len(ready) or ready.running == most  # nothing waits that may begin
        assert ready.in_hand == ready.running + len(ready)
    assert sorted(begun) == sorted(set(begun)) and len(begun) + len(ready) == len(added)
