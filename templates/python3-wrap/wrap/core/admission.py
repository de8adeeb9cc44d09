"""Admission: of requests by deadline and size, events by memory, executions by free workers.

The limits of admitted work are in `wrap.core.limits`, the retries in `wrap.core.retry`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from wrap.core.errors import TaskError
from wrap.core.shedding import SEND_LESS

#: An execution that needs workers.
Candidate = TypeVar("Candidate")


def deadline_of(arrived: float, timeout_s: float, asked_s: float) -> float:
    """Return the deadline of a request: the wrap's timeout, or less if the caller asks for less."""
    return arrived + min(timeout_s, asked_s)


def check_time(now: float, deadline: float) -> None:
    """Raise TaskError, ``timeout``, if a request waited in the queue until its deadline."""
    if now >= deadline:
        raise TaskError("timeout", "no thread was free: add replicas", status=504)


def check_size(size: int, most: int | None) -> None:
    """Raise TaskError, ``too-large``, if a request has more than `most` bytes."""
    if most is not None and size > most:
        held = f"the request has {size} bytes, and there is memory for {most} here"
        raise TaskError("too-large", f"{held}: {SEND_LESS}", status=413)


def check_memory(size: int, taken: int, most: int, what: str) -> None:
    """Raise TaskError: ``too-large`` above `most` bytes, ``full`` if `taken` + `size` exceed it."""
    if size > most:
        message = (
            f"{what} would take {size} bytes of memory, and objects may have {most} here: "
            "send fewer or smaller ones, or give the functions more memory"
        )
        raise TaskError("too-large", message, status=413)
    if taken + size > most:
        message = f"objects may have {most} bytes here, and do: send it again later"
        raise TaskError("full", message, status=503)


class Limiter(Generic[Candidate]):
    """Admits at most `limit` executions at once; the others wait in a queue."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        #: The executions that have workers.
        self.admitted: set[Candidate] = set()
        self._waiting: OrderedDict[Candidate, None] = OrderedDict()

    @property
    def free(self) -> int:
        return max(0, self.limit - len(self.admitted))

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def admit_or_queue(self, candidate: Candidate) -> bool:
        """Admit an execution if a slot is free, or else queue it once; return whether admitted."""
        if self.free and candidate not in self.admitted:
            self.admitted.add(candidate)
            return True
        # A candidate is still in `admitted` if another replica took it before it used these
        # workers, and then lost it. It queues again; `_admit_first` skips it until it has left.
        self._waiting[candidate] = None
        return False

    def leave(self, candidate: Candidate) -> Candidate | None:
        """Remove an execution; return the execution that is admitted in its place."""
        self.admitted.discard(candidate)
        return self._admit_first() if self.free else None

    def exceed(self, is_blocked: Callable[[Candidate], bool]) -> Candidate | None:
        """Admit and return one more execution if all admitted ones wait for other wraps.

        A waiting execution may hold the workers in those wraps that the admitted ones need.
        """
        is_due = self._waiting and all(map(is_blocked, self.admitted))
        return self._admit_first() if is_due else None

    def _admit_first(self) -> Candidate | None:
        for first in self._waiting:
            if first not in self.admitted:
                del self._waiting[first]
                self.admitted.add(first)
                return first
        return None


def freest(free: Mapping[str, int]) -> str | None:
    """Return the replica with the most free workers; None if no replica has any."""
    first = max(free, key=free.__getitem__, default=None)
    return first if first is not None and free[first] > 0 else None
