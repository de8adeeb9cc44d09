"""Has threads serve requests; `wrap.core.request_queue` decides the order and the number."""

from __future__ import annotations

import threading
from collections.abc import Callable

from wrap.core.request_queue import RequestQueue

from .connection import Channel


class Dispatcher:
    """waitress's task dispatcher. A request is active until any thread has answered it.

    Args:
        start: calls a function in a thread. Raises RuntimeError if there is no thread.
    """

    def __init__(self, start: Callable[[Callable[[], None]], object]) -> None:
        self._start = start
        self._queue = RequestQueue[Channel]()
        self._lock = threading.Lock()

    def set_thread_count(self, count: int) -> None:
        """Set how many requests may be served at once."""
        if count != self._queue.limit:
            self._queue.limit = count
            self._begin()

    def count(self) -> tuple[int, int]:
        """Return how many requests are served, and how many wait."""
        with self._lock:
            return self._queue.active, len(self._queue)

    def add_task(self, channel: Channel) -> None:
        """Queue the first request of `channel`."""
        with self._lock:
            self._queue.add(channel)
        self._begin()

    def forget(self, channel: Channel) -> bool:
        """Remove a connection whose client has gone; return whether its request had not begun."""
        with self._lock:
            return self._queue.remove(channel)

    def end(self) -> None:
        """Note that a request has been answered."""
        with self._lock:
            self._queue.end()
        self._begin()

    def _begin(self) -> None:
        while True:
            with self._lock:
                channel = self._queue.begin()
            if channel is None:
                return
            try:
                self._start(channel.serve_first)
            except RuntimeError:
                channel.serve_first()
