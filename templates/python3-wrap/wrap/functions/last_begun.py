"""The handler of a process that began last: the next handler begins when it first waits."""

from __future__ import annotations

import os
import sys
import threading
import time

from wrap.core.start_queue import KEEP_S, LEAVE_S, Look, Step, next_step

#: A Python without a GIL has nothing to leave to another thread.
_HAS_GIL = vars(sys).get("_is_gil_enabled", lambda: True)()


class LastBegun:
    """The thread of the handler that began last, until it ends."""

    def __init__(self) -> None:
        #: The thread, the clock of its CPU time, and when the handler began.
        self._last: tuple[int, int, float] | None = None
        self._one_core = len(os.sched_getaffinity(0)) == 1

    def begins(self) -> None:
        """Note that a handler begins in the calling thread."""
        if _HAS_GIL:
            clock = time.pthread_getcpuclockid(threading.get_ident())
            self._last = (threading.get_native_id(), clock, time.monotonic())

    def ends(self) -> None:
        """Note that the handler in the calling thread has ended."""
        if self._last is not None and self._last[0] == threading.get_native_id():
            self._last = None

    def await_wait(self) -> None:
        """Leave the GIL to the handler until it waits, by the rule of `wrap.core.start_queue`."""
        begun, step, took = self._last, None, (0.0, 0.0)
        while begun is not None and self._last is begun:
            thread, clock, begin = begun
            try:
                look = Look(time.monotonic() - begin, _call(thread), *took)
                step = next_step(look, step, one_core=self._one_core)
                if step is Step.BEGIN:
                    return
                took = self._take(step, clock)
            except OSError:  # the thread has ended, or /proc is not there
                return

    def _take(self, step: Step, clock: int) -> tuple[float, float]:
        """Take a step; return its time, and that of a thread's clock within it.

        Nothing else within it may release the GIL.
        """
        start, used = time.monotonic(), time.clock_gettime(clock)
        if step is Step.LEAVE:
            time.sleep(LEAVE_S)
        elif self._one_core:
            os.sched_yield()
        else:
            while time.monotonic() - start < KEEP_S:
                pass
        return time.monotonic() - start, time.clock_gettime(clock) - used


def _call(thread: int) -> str:
    file = os.open(f"/proc/self/task/{thread}/syscall", os.O_RDONLY)
    try:
        return os.read(file, 256).decode().partition(" ")[0].strip()
    finally:
        os.close(file)
