"""Threads that are used again, and given up when a deadline has passed.

Those that were given up and have not come back are counted, since each keeps its memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from queue import SimpleQueue

#: Idle threads that are kept at least; more, after a burst, end.
_KEPT = 64
#: Idle threads may take one part in so many of a process's memory, at so many bytes each: 18 KiB
#: measured after small handlers.
_SHARE, _THREAD = 16, 1 << 16

_kept = _KEPT
#: Has as `run` what a thread runs.
_own = threading.local()


def keep_idle(wanted: int, memory_bytes: int, processes: int) -> None:
    """Keep so many idle threads, as far as the memory of so many processes has room for them.

    To start a thread for each task of a wide stage doubles the CPU time of a request.
    """
    global _kept
    _kept = max(_KEPT, min(wanted, memory_bytes // processes // _SHARE // _THREAD))


class Cancelled(BaseException):
    """Raised within a thread whose task has been given up."""


class Run:
    """One piece of work on a thread of the pool.

    Parameters
    ----------
    name
        The function that it runs.
    """

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self.name = name
        self._work = work
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ended = False
        self._cancelled = False

    @property
    def lost(self) -> bool:
        """Whether its thread goes on although the work has been cancelled."""
        return self._cancelled and not self.over

    @property
    def over(self) -> bool:
        """Whether its thread is done with it, in whatever way."""
        return self._ended or (self._thread is not None and not self._thread.is_alive())

    def cancel(self) -> None:
        """Give the work up: a loop in Python ends, a system call ends when it returns.

        Python cannot kill a thread. It can raise an exception in it, which is noticed at the
        next bytecode, so C code that does not return goes on and keeps its thread, and so does
        a handler that catches BaseException in a loop; all that is certain is that no caller waits
        for it.
        """
        with self._lock:
            self._cancelled = True
            if self._thread is not None and not self._ended:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread.ident or 0), ctypes.py_object(Cancelled)
                )

    def undisturbed(self) -> AbstractContextManager[object]:
        """A block of its thread in which `cancel` does not reach it; the block has to be short."""
        return self._lock

    def execute(self) -> bool:
        """Do the work in this thread; whether the thread can be used again."""
        _own.run = self
        with self._lock:
            self._thread = threading.current_thread()
            if self._cancelled:
                self._ended = True
                return True
        try:
            self._work()
        finally:
            del self._work  # and what it holds: what keeps the run wants no more than its state
        with self._lock:
            self._ended = True
            return not self._cancelled


def own_run() -> Run | None:
    """What the calling thread runs, if it is one of a pool."""
    return getattr(_own, "run", None)


class ThreadPool:
    """As many threads as are wanted at once; each waits for more work when it is done.

    Parameters
    ----------
    most_given_up
        So many that were given up and go on are too many.
    """

    def __init__(self, most_given_up: int = 64) -> None:
        self._idle: list[SimpleQueue[Run]] = []
        self._most = most_given_up
        self._given_up: list[Run] = []

    def give_up(self, run: Run) -> None:
        """Note that no caller waits for `run` any more."""
        self._given_up.append(run)

    def too_many(self) -> list[Run]:
        """Those that were given up and go on, if they are too many; else none."""
        if len(self._given_up) < self._most:
            return []
        for run in [run for run in self._given_up if run.over]:
            with contextlib.suppress(ValueError):  # another thread has seen it too
                self._given_up.remove(run)
        return list(self._given_up) if len(self._given_up) >= self._most else []

    def worn(self) -> bool:
        """Whether too many threads are lost: they are cancelled, and go on."""
        return sum(run.lost for run in self.too_many()) >= self._most

    def start(self, work: Callable[[], None], name: str = "") -> Run:
        """Run `work` on a thread that has nothing else to do."""
        run = Run(work, name)
        try:
            inbox = self._idle.pop()
        except IndexError:
            inbox = SimpleQueue()
            threading.Thread(target=self._serve, args=(inbox,), daemon=True).start()
        inbox.put(run)
        return run

    def _serve(self, inbox: SimpleQueue[Run]) -> None:
        try:
            while inbox.get().execute() and len(self._idle) < _kept:
                self._idle.append(inbox)
        except Cancelled:
            return  # it may arrive at any bytecode: a thread that was cancelled is not reused
