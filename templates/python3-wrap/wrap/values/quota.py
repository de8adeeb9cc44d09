"""The bound on the memory of buckets' objects, checked before an object is kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from wrap.core.admission import check_memory

#: Outputs of functions may take so many times what requests may, as they cannot be sent again.
GIVEN = 2.0
#: The bytes of no limit.
UNLIMITED = 1 << 60


class _Taker(Protocol):
    @property
    def taken(self) -> int:
        """The bytes that it takes; any thread may ask."""


class Quota:
    """A bound on memory. Any thread may call its methods.

    Args:
        most: bytes that requests may take together.
        others: returns the bytes that are taken beside those of `takers`.
    """

    def __init__(self, most: int = UNLIMITED, others: Callable[[], int] = lambda: 0) -> None:
        self.most = most
        #: The holders of memory; each counts until it is discarded.
        self.takers = set[_Taker]()
        self._others = others
        self._reserved = 0
        self._lock = threading.Lock()

    @property
    def left(self) -> int:
        """The bytes that requests may still take; negative if functions' outputs exceed it."""
        return self.most - self.taken

    @property
    def taken(self) -> int:
        return self._reserved + self._others() + sum(each.taken for each in list(self.takers))

    @contextmanager
    def reserved(self, size: int, what: str, share: float = 1.0) -> Iterator[None]:
        """Reserve `size` bytes for a taker within the block. Raises as `check_memory`."""
        with self._lock:
            check_memory(size, self.taken, int(share * self.most), what)
            self._reserved += size
        try:
            yield
        finally:
            with self._lock:
                self._reserved -= size
