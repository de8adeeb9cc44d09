"""What the objects of buckets may take of a wrap's memory, counted before they are kept."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from wrap.core.errors import TaskError

#: What functions give may take so many times what requests may: it cannot be sent again.
GIVEN = 2.0
#: From so many times that on, functions of buckets run one after another.
SLOW = 1.5
#: Without a limit.
UNLIMITED = 1 << 60


class _Taker(Protocol):
    @property
    def taken(self) -> int:
        """Bytes that it takes; any thread may ask."""


class Quota:
    """Its methods may be called by any thread.

    Parameters
    ----------
    most
        Bytes that requests may take together.
    others
        Bytes that are taken beside those of `takers`.

    Attributes
    ----------
    takers
        What takes memory. A taker that is added stays until it is discarded.
    """

    def __init__(self, most: int = UNLIMITED, others: Callable[[], int] = lambda: 0) -> None:
        self.most = most
        self.takers = set[_Taker]()
        self._others = others
        self._reserved = 0
        self._lock = threading.Lock()

    @property
    def left(self) -> int:
        """Bytes that requests may still take; negative if functions have given more."""
        return self.most - self._taken

    @property
    def _taken(self) -> int:
        return self._reserved + self._others() + sum(each.taken for each in list(self.takers))

    @property
    def is_slow(self) -> bool:
        """Whether functions are to run one after another."""
        return self._taken > SLOW * self.most

    @contextmanager
    def reserved(self, size: int, what: str, share: float = 1.0) -> Iterator[None]:
        """Have `size` bytes for the length of the block, in which a taker takes them.

        Raises TaskError: ``too-large`` if `size` never fits, ``full`` if it does not fit now.
        """
        most = int(share * self.most)
        with self._lock:
            if size > most:
                message = (
                    f"{what} would take {size} bytes of memory, and objects may have {most} here: "
                    "send fewer or smaller ones, or give the functions more memory"
                )
                raise TaskError("too-large", message, status=413)
            if self._taken + size > most:
                message = f"objects may have {most} bytes here, and do: send it again later"
                raise TaskError("full", message, status=503)
            self._reserved += size
        try:
            yield
        finally:
            with self._lock:
                self._reserved -= size
