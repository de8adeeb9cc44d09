"""Where threads leave what they have found for the one thread that waits on a selector."""

from __future__ import annotations

import contextlib
import os
from collections import deque
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Inbox(Generic[Item]):
    """A queue that can be waited on together with sockets.

    Its descriptor lives as long as anybody holds the inbox: a thread that was given up and
    still comes to its end writes to this descriptor, never to a later one with its number.
    """

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def __del__(self) -> None:
        os.close(self._event)

    def fileno(self) -> int:
        """The descriptor to wait on."""
        return self._event

    def put(self, item: Item) -> None:
        """Leave an item, from any thread."""
        self._items.append(item)
        os.eventfd_write(self._event, 1)

    def take(self) -> list[Item]:
        """All items that have been left."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._event)
        return [self._items.popleft() for _ in range(len(self._items))]
