"""Threads that are used again."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from wrap.event_loop import threads

MIB = 1 << 20


@pytest.mark.parametrize(
    ("wanted", "mib", "processes", "kept"),
    [
        (100, 1024, 1, 100),
        (1, 1024, 1, 64),
        (1000, 256, 1, 256),
        (1000, 256, 2, 128),
        (100, 8, 1, 64),
    ],
)
def test_as_many_threads_stay_as_a_wide_stage_takes_and_memory_has_room_for(
    wanted: int, mib: int, processes: int, kept: int, monkeypatch: Any, eventually: Any
) -> None:
    monkeypatch.setattr(threads, "_kept", threads._kept)
    threads.keep_idle(wanted, mib * MIB, processes)
    before, pool = threading.active_count(), threads.ThreadPool()
    at_once = threading.Barrier(wanted + 1)
    for _ in range(2):
        for _ in range(wanted):
            pool.start(at_once.wait)
        at_once.wait()
        assert eventually(lambda: threading.active_count() == before + min(wanted, kept))
