"""Which requests are served now, and which wait."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from .connection import Channel


class Turns:
    """Has threads serve requests, of which some wait for their turn where there are many.

    It is waitress's task dispatcher. A turn ends with the answer, whichever thread gives it.
    """

    def __init__(self, start: Callable[[Callable[[], None]], object]) -> None:
        self.lock = threading.Lock()
        self.queue: deque[Channel] = deque()
        self.active_count = 0
        self._start = start
        self._most = 0

    def set_thread_count(self, count: int) -> None:
        """Serve so many requests at once."""
        if count != self._most:
            self._most = count
            self._begin()

    def count(self) -> tuple[int, int]:
        """How many requests are in hand, and how many wait."""
        with self.lock:
            return self.active_count, len(self.queue)

    def add_task(self, channel: Channel) -> None:
        """Have the first request of `channel` served when its turn comes."""
        with self.lock:
            self.queue.append(channel)
        self._begin()

    def end(self) -> None:
        """Note that a request has been answered."""
        with self.lock:
            self.active_count -= 1
        self._begin()

    def _begin(self) -> None:
        while True:
            with self.lock:
                if not self.queue or self.active_count >= self._most:
                    return
                self.active_count += 1
                channel = self.queue.popleft()
            try:
                self._start(channel.take_turn)
            except RuntimeError:  # no thread can be had
                channel.take_turn()
