"""Threads that are used again."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from wrap.event_loop import threads


@pytest.mark.parametrize(("wanted", "kept"), [(100, 100), (100, 64), (1, 64)])
def test_as_many_idle_threads_stay_as_are_to_be_kept(
    wanted: int, kept: int, monkeypatch: Any, eventually: Any
) -> None:
    monkeypatch.setattr(threads, "_kept", threads._kept)
    threads.keep_idle(kept)
    before, pool = {*threading.enumerate()}, threads.ThreadPool()
    at_once = threading.Barrier(wanted + 1)
    for _ in range(2):
        for _ in range(wanted):
            pool.start(at_once.wait)
        at_once.wait()
        assert eventually(lambda: len({*threading.enumerate()} - before) == min(wanted, kept))


def test_what_is_next_is_run_by_the_thread_that_asks_for_it_when_it_is_done() -> None:
    pool, by = threads.ThreadPool(), dict[str, int]()
    ends, ran = threading.Event(), {name: threading.Event() for name in ("other", "next")}

    def note(name: str) -> None:
        by[name] = threading.get_ident()
        ran[name].set()

    def first() -> None:
        pool.start_next(lambda: note("next"))
        by["first"] = threading.get_ident()
        assert ends.wait(60)

    pool.start(first)
    pool.start(lambda: note("other"))
    assert ran["other"].wait(60)
    assert not ran["next"].is_set()
    ends.set()
    assert ran["next"].wait(60)
    assert by["first"] == by["next"] != by["other"]


def test_a_thread_of_no_pool_has_another_one_run_what_is_next() -> None:
    by, ran = list[int](), threading.Event()

    def note() -> None:
        by.append(threading.get_ident())
        ran.set()

    threads.ThreadPool().start_next(note)
    assert ran.wait(60)
    assert by != [threading.get_ident()]
