"""Has threads serve requests: first come, first served."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from .connection import Channel


class Dispatcher:
    """waitress's task dispatcher. A request is active until any thread has answered it.

    Args:
        start: calls a function in a thread. Raises RuntimeError if there is no thread.
    """

    def __init__(self, start: Callable[[Callable[[], None]], object]) -> None:
        self._start = start
        self._limit = self._active = 0
        self._waiting = deque[Channel]()
        self._lock = threading.Lock()

    def set_thread_count(self, count: int) -> None:
        """Set how many requests may be served at once."""
        if count != self._limit:
            self._limit = count
            self._begin()

    def count(self) -> tuple[int, int]:
        """Return how many requests are served, and how many wait."""
        with self._lock:
            return self._active, len(self._waiting)

    def add_task(self, channel: Channel) -> None:
        with self._lock:
            self._waiting.append(channel)
        self._begin()

    def forget(self, channel: Channel) -> bool:
        """Remove a connection whose client has gone; return whether its request had not begun."""
        with self._lock:
            if channel not in self._waiting:
                return False
            self._waiting.remove(channel)
            return True

    def end(self) -> None:
        with self._lock:
            self._active -= 1
        self._begin()

    def _begin(self) -> None:
        while True:
            with self._lock:
                if not self._waiting or self._active >= self._limit:
                    return
                self._active += 1
                channel = self._waiting.popleft()
            try:
                self._start(channel.serve_first)
            except RuntimeError:
                channel.serve_first()
