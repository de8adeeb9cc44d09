"""Threads that are used again, and that can be given up when a deadline has passed."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from queue import SimpleQueue

#: Idle threads that are kept; more, after a burst, end.
_KEPT = 64


class Cancelled(BaseException):
    """Raised within a thread whose task has been given up."""


class Run:
    """One piece of work on a thread of the pool."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._ended = False
        self._cancelled = False

    @property
    def ended(self) -> bool:
        """Whether the work has been done."""
        return self._ended

    def cancel(self) -> None:
        """Give the work up: a loop in Python ends, a system call ends when it returns.

        Python cannot kill a thread. It can raise an exception in it, which is noticed at the
        next bytecode, so C code that does not return goes on and keeps its thread, and so does
        a handler that catches BaseException in a loop; all that is certain is that nobody waits
        for it.
        """
        with self._lock:
            self._cancelled = True
            if self._thread is not None and not self._ended:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread), ctypes.py_object(Cancelled)
                )

    def execute(self) -> bool:
        """Do the work in this thread; whether the thread can be used again."""
        with self._lock:
            self._thread = threading.get_ident()
            if self._cancelled:
                return True
        self._work()
        del self._work  # and what it holds: whoever keeps the run wants no more than its state
        with self._lock:
            self._ended = True
            return not self._cancelled


class ThreadPool:
    """As many threads as are wanted at once; each waits for more work when it is done."""

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[Run]] = []

    def start(self, work: Callable[[], None]) -> Run:
        """Run `work` on a thread that has nothing else to do."""
        run = Run(work)
        try:
            inbox = self._idle.pop()
        except IndexError:
            inbox = SimpleQueue()
            threading.Thread(target=self._serve, args=(inbox,), daemon=True).start()
        inbox.put(run)
        return run

    def _serve(self, inbox: SimpleQueue[Run]) -> None:
        try:
            while inbox.get().execute() and len(self._idle) < _KEPT:
                self._idle.append(inbox)
        except Cancelled:
            return  # it may arrive at any bytecode: a thread that was cancelled is not reused
