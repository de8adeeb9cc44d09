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
    before, pool = threading.active_count(), threads.ThreadPool()
    at_once = threading.Barrier(wanted + 1)
    for _ in range(2):
        for _ in range(wanted):
            pool.start(at_once.wait)
        at_once.wait()
        assert eventually(lambda: threading.active_count() == before + min(wanted, kept))
