"""Has threads serve requests, in the order and number that `wrap.core.request_queue` says."""

from __future__ import annotations

import threading
from collections.abc import Callable

from wrap.core.request_queue import RequestQueue

from .connection import Channel


class Dispatcher:
    """waitress's task dispatcher. A request is active until its answer, whichever thread gives it.

    Args:
        start: has a thread do something. Raises RuntimeError if no thread can be had.
    """

    def __init__(self, start: Callable[[Callable[[], None]], object]) -> None:
        self._start = start
        self._queue = RequestQueue[Channel]()
        self._lock = threading.Lock()

    def set_thread_count(self, count: int) -> None:
        """Serve so many requests at once."""
        if count != self._queue.limit:
            self._queue.limit = count
            self._begin()

    def count(self) -> tuple[int, int]:
        """How many requests are served, and how many wait."""
        with self._lock:
            return self._queue.active, len(self._queue)

    def add_task(self, channel: Channel) -> None:
        """Have the first request of `channel` served when fewer others are."""
        with self._lock:
            self._queue.add(channel)
        self._begin()

    def forget(self, channel: Channel) -> bool:
        """The client of a connection has gone; whether its request had not begun."""
        with self._lock:
            return self._queue.remove(channel)

    def end(self) -> None:
        """A request has been answered."""
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
