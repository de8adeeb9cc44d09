"""What the objects of buckets may take of a wrap's memory, counted before they are kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from wrap.core.admission import check_memory

#: What functions give may take so many times what requests may: it cannot be sent again.
GIVEN = 2.0
#: Without a limit.
UNLIMITED = 1 << 60


class _Taker(Protocol):
    @property
    def taken(self) -> int:
        """Bytes that it takes; any thread may ask."""


class Quota:
    """Its methods may be called by any thread.

    Args:
        most: bytes that requests may take together.
        others: bytes that are taken beside those of `takers`.
    """

    def __init__(self, most: int = UNLIMITED, others: Callable[[], int] = lambda: 0) -> None:
        self.most = most
        #: What takes memory. A taker that is added stays until it is discarded.
        self.takers = set[_Taker]()
        self._others = others
        self._reserved = 0
        self._lock = threading.Lock()

    @property
    def left(self) -> int:
        """Bytes that requests may still take; negative if functions have given more."""
        return self.most - self.taken

    @property
    def taken(self) -> int:
        """Bytes that are taken or reserved."""
        return self._reserved + self._others() + sum(each.taken for each in list(self.takers))

    @contextmanager
    def reserved(self, size: int, what: str, share: float = 1.0) -> Iterator[None]:
        """Have `size` bytes for a taker in the block; raises as `check_memory`."""
        with self._lock:
            check_memory(size, self.taken, int(share * self.most), what)
            self._reserved += size
        try:
            yield
        finally:
            with self._lock:
                self._reserved -= size
