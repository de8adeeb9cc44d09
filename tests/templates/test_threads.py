"""Threads that are used again."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Any, cast

import pytest
from wrap.event_loop import threads


@pytest.mark.parametrize(("wanted", "kept"), [(100, 100), (100, 64), (1, 64)])
def test_as_many_idle_threads_stay_as_are_to_be_kept(
    wanted: int, kept: int, monkeypatch: Any, eventually: Any
) -> None:
    monkeypatch.setattr(threads, "_kept", threads._kept)
    threads.keep_idle(kept)
    before, pool = threading.active_count(), threads.ThreadPool()
    at_once = threading.Barrier(wanted + 1)
    for _ in range(2):
        for _ in range(wanted):
            pool.start(at_once.wait)
        at_once.wait()
        assert eventually(lambda: threading.active_count() == before + min(wanted, kept))


@pytest.fixture
def ran() -> SimpleQueue[int]:
    """The threads of what has run, in that order."""
    return SimpleQueue()


def test_what_follows_runs_on_the_thread_of_the_work_before_it(ran: SimpleQueue[int]) -> None:
    pool = threads.ThreadPool()

    def follow() -> None:
        ran.put(threading.get_ident())

    def first() -> None:
        pool.start(follow, after_own=True)
        ran.put(threading.get_ident())  # so the work itself ends before

    pool.start(first)
    assert ran.get() == ran.get() != threading.get_ident()


def test_a_thread_that_has_work_to_follow_gets_no_other(ran: SimpleQueue[int]) -> None:
    pool, ends = threads.ThreadPool(), threading.Event()

    def follow() -> None:
        ran.put(threading.get_ident())
        ends.wait()

    pool.start(lambda: cast(None, pool.start(follow, after_own=True)))
    busy = ran.get()
    pool.start(lambda: ran.put(threading.get_ident()))
    assert ran.get() != busy
    ends.set()


def test_a_thread_of_no_pool_leaves_its_work_to_one_of_it(ran: SimpleQueue[int]) -> None:
    threads.ThreadPool().start(lambda: ran.put(threading.get_ident()), after_own=True)
    assert ran.get() != threading.get_ident()
