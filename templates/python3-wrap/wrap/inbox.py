"""Where threads leave what they have found for the one thread that waits on a selector."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Inbox(Generic[Item]):
    """A queue that can be waited on together with sockets.

    A thread that was given up may still come to its end after `close`: what it leaves then is
    dropped, and never wakes what has the descriptor's number next.
    """

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._lock = threading.Lock()
        self._open = True

    def fileno(self) -> int:
        """The descriptor to wait on."""
        return self._event

    def put(self, item: Item) -> None:
        """Leave an item, from any thread."""
        if not self._open:
            return
        with self._lock:
            if self._open:
                self._items.append(item)
                os.eventfd_write(self._event, 1)

    def take(self) -> list[Item]:
        """All items that have been left."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._event)
        return [self._items.popleft() for _ in range(len(self._items))]

    def close(self) -> None:
        """Take nothing more."""
        with self._lock:
            self._open = False
            self._items.clear()
            os.close(self._event)
