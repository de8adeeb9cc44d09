"""The event loop of a wrap: one thread that waits for all channels and times."""

from __future__ import annotations

import contextlib
import heapq
import math
import os
import select
import threading
import time
import traceback
from collections.abc import Callable
from itertools import count
from typing import Protocol

from wrap.event_loop.liveness import BEAT_S, essential

#: Called by the loop, with whether the channel is writable and whether it is readable.
OnReady = Callable[[bool, bool], None]
#: Cancelled timers are removed when there are more than so many, and more than half of all.
_CANCELLED = 100
#: An event that takes longer than this delays all others, in seconds.
_STALL_S = 0.005
#: The cause of a stall: the loop computed; or it waited for the GIL, a lock, a disk or a core.
CPU, WAIT = "cpu", "wait"


class Channel(Protocol):
    """A channel that the loop can watch."""

    def fileno(self) -> int:
        """The descriptor to wait on."""

    @property
    def sending(self) -> bool:
        """Whether there are bytes to send when the channel is writable."""

    @property
    def receiving(self) -> bool:
        """Whether to call back when the channel is readable."""


class Timer:
    """An action at a time, unless it is cancelled before."""

    def __init__(self, action: Callable[[], None], cancelled: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action
        self._cancelled = cancelled

    def cancel(self) -> None:
        """Cancel the action, and drop the reference to it."""
        if self.action is not None:
            self.action = None
            self._cancelled()


class Timers(Protocol):
    """Calls actions at times: the loop, or in tests a clock that they set."""

    def call_at(self, when: float, action: Callable[[], None]) -> Timer:
        """Call `action` at `when`, in seconds of the monotonic clock."""


class Loop:
    """An event loop. Any thread may call its methods; the callbacks must be short."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._wake, select.EPOLLIN)
        self._ready: dict[int, OnReady] = {}
        #: Descriptors that are reported once, until renewed.
        self._once: set[int] = set()
        self._lock = threading.Lock()
        self._times: list[tuple[float, int, Timer]] = []
        self._numbers = count()
        self._cancelled = 0
        self._waits_until = 0.0
        #: The number of its turns; it turns at least once a beat.
        self.turns = 0
        #: The number of events that delayed all others, by cause.
        self.stalls = {CPU: 0, WAIT: 0}
        self._thread: threading.Thread | None = None
        os.register_at_fork(after_in_child=self._let_go)

    def _let_go(self) -> None:
        """In a process that a handler has forked: close the inherited descriptors."""
        with contextlib.suppress(OSError):
            self._epoll.close()
            os.close(self._wake)

    @property
    def runs(self) -> bool:
        return self._thread is not None

    @property
    def is_here(self) -> bool:
        return threading.current_thread() is self._thread

    def watch(self, channel: Channel, on_ready: OnReady, *, once: bool = False) -> None:
        """Call `on_ready` when `channel` is readable, or writable while it is sending.

        With `once`, it is not called again before `renew`.
        """
        self._begin()
        descriptor = channel.fileno()
        self._ready[descriptor] = on_ready
        if once:
            self._once.add(descriptor)
        try:
            self._epoll.register(descriptor, self._events(channel))
        except OSError:
            del self._ready[descriptor]
            self._once.discard(descriptor)
            raise

    def renew(self, channel: Channel) -> None:
        """Update the events of `channel` after a change of its properties; re-arm `once`."""
        self._epoll.modify(channel.fileno(), self._events(channel))

    def forget(self, channel: Channel) -> None:
        """Stop watching `channel`, which must still have its descriptor."""
        if self._ready.pop(channel.fileno(), None):  # `watch` may have failed for lack of memory
            self._once.discard(channel.fileno())
            self._epoll.unregister(channel.fileno())

    def call_at(self, when: float, action: Callable[[], None]) -> Timer:
        """Call `action` at `when`, in seconds of the monotonic clock; never if that is infinite."""
        if math.isnan(when):
            raise ValueError("nothing can be done at a time that is not a number")
        timer = Timer(action, self._note_cancelled)
        with self._lock:
            heapq.heappush(self._times, (when, next(self._numbers), timer))
            sooner = when < self._waits_until
        self._begin()
        if sooner:
            os.eventfd_write(self._wake, 1)
        return timer

    def _events(self, channel: Channel) -> int:
        reading = select.EPOLLIN if channel.receiving else 0
        writing = select.EPOLLOUT if channel.sending else 0
        once = select.EPOLLONESHOT if channel.fileno() in self._once else 0
        return int(reading | writing | once)

    def _note_cancelled(self) -> None:
        with self._lock:
            self._cancelled += 1
            if self._cancelled > max(_CANCELLED, len(self._times) // 2):
                self._times = [each for each in self._times if each[2].action is not None]
                heapq.heapify(self._times)
                self._cancelled = 0

    def _begin(self) -> None:
        """Start the thread, once: a wrap must have none before the fork server is forked."""
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = essential(self._run, "loop")

    def _run(self) -> None:
        while True:
            self.turns += 1
            for descriptor, events in self._epoll.poll(self._patience_s()):
                if descriptor == self._wake:
                    with contextlib.suppress(BlockingIOError):
                        os.eventfd_read(self._wake)
                elif on_ready := self._ready.get(descriptor):
                    self._do(
                        on_ready, bool(events & select.EPOLLOUT), bool(events & ~select.EPOLLOUT)
                    )
            for timer in self._due():
                if action := timer.action:
                    timer.action = None
                    self._do(action)

    def _patience_s(self) -> float:
        """Return the seconds to wait: at most a beat, as each turn is a sign of life."""
        with self._lock:
            self._waits_until = self._times[0][0] if self._times else math.inf
            return min(max(0.0, self._waits_until - time.monotonic()), BEAT_S)

    def _due(self) -> list[Timer]:
        now, due = time.monotonic(), []
        with self._lock:
            while self._times and self._times[0][0] <= now:
                due.append(heapq.heappop(self._times)[2])
            self._waits_until = 0.0
        return due

    def _do(self, action: Callable[..., None], *arguments: bool) -> None:
        """Call `action`; if it raises, for example for lack of memory, the loop continues."""
        began, cpu_s = time.monotonic(), time.thread_time()
        try:
            action(*arguments)
        except Exception:
            traceback.print_exc()
        if time.monotonic() - began > _STALL_S:
            computed = time.thread_time() - cpu_s > _STALL_S
            self.stalls[CPU if computed else WAIT] += 1
