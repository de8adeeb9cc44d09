"""Threads that are reused, unless their work was cancelled because its deadline had passed."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from queue import SimpleQueue

#: Idle threads to keep; further threads, after a burst, end.
_kept = 64
#: Has `work`, the present work of a thread, and `inbox`, the queue of further work if pooled.
_own = threading.local()


def keep_idle(count: int) -> None:
    global _kept
    _kept = count


class Cancelled(BaseException):
    """Raised within a thread whose task has been cancelled."""


class Work:
    """One piece of work on a thread of the pool."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self.name = name
        self._work = work
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ended = False
        self._cancelled = False

    @property
    def lost(self) -> bool:
        """Whether its thread still runs although the work was cancelled."""
        return self._cancelled and not self.over

    @property
    def over(self) -> bool:
        """Whether its thread has finished it, in whatever way."""
        return self._ended or (self._thread is not None and not self._thread.is_alive())

    def cancel(self) -> None:
        """Cancel the work: a loop in Python ends; a system call ends when it returns.

        Python cannot kill a thread. It can raise an exception in it, which is noticed at the next
        bytecode. So C code that does not return keeps its thread running, as does a handler that
        catches BaseException in a loop. It is only certain that no caller waits for the work.
        """
        with self._lock:
            self._cancelled = True
            if self._thread is not None and not self._ended:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread.ident or 0), ctypes.py_object(Cancelled)
                )

    def undisturbed(self) -> AbstractContextManager[object]:
        """Return a context in which `cancel` does not reach the work; the block must be short."""
        return self._lock

    def execute(self) -> bool:
        """Do the work in this thread; return whether the thread can be reused."""
        _own.work = self
        with self._lock:
            self._thread = threading.current_thread()
            if self._cancelled:
                self._ended = True
                return True
        try:
            self._work()
        finally:
            del self._work  # free what it holds: callers keep this object only for its state
        with self._lock:
            self._ended = True
            return not self._cancelled


def own_work() -> Work | None:
    """Return the work of the calling thread, if it belongs to a pool."""
    return getattr(_own, "work", None)


class ThreadPool:
    """As many threads as are needed at once; each waits for more work when it is done."""

    def __init__(self) -> None:
        self._idle: list[SimpleQueue[Work]] = []

    def start(self, work: Callable[[], None], name: str = "") -> Work:
        """Run `work` on an idle thread, else on a new one."""
        given = Work(work, name)
        try:
            inbox = self._idle.pop()
        except IndexError:
            inbox = SimpleQueue()
            threading.Thread(target=self._serve, args=(inbox,), daemon=True).start()
        inbox.put(given)
        return given

    def start_next(self, work: Callable[[], None], name: str = "") -> Work:
        """Run `work` on the calling thread, of a pool, as soon as its present work is done.

        The present work must end soon, and must not be cancelled. Then no other thread has to be
        woken. If the caller is not a pool's thread, another thread runs it.
        """
        inbox: SimpleQueue[Work] | None = getattr(_own, "inbox", None)
        if inbox is None or not inbox.empty():
            return self.start(work, name)
        given = Work(work, name)
        inbox.put(given)
        return given

    def end_idle(self) -> None:
        """End the threads that wait for work."""
        for _ in range(len(self._idle)):
            self.start(_leave)

    def _serve(self, inbox: SimpleQueue[Work]) -> None:
        _own.inbox = inbox
        try:
            while inbox.get().execute():
                if inbox.empty():
                    if len(self._idle) >= _kept:
                        return
                    self._idle.append(inbox)
        except Cancelled:
            return  # it may arrive at any bytecode, so a cancelled thread is not reused


def _leave() -> None:
    raise Cancelled
