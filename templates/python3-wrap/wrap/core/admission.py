"""What is let in: a request by its time and size, events by memory, an execution by free workers.

Limits of what has been let in are in `wrap.core.limits`, and how often it is tried again in
`wrap.core.retry`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Generic, TypeVar

from wrap.core.errors import TaskError

#: How long an execution waits for workers before it looks whether all others wait, in seconds;
#: then twice as long, and so on.
_BLOCKED_S = 0.02

#: An execution that wants workers.
Candidate = TypeVar("Candidate")


def deadline_of(arrived: float, timeout_s: float, asked_s: float) -> float:
    """Until when a request may take: the wrap's timeout, or less if its caller asks for that."""
    return arrived + min(timeout_s, asked_s)


def check_time(now: float, deadline: float) -> None:
    """Raise TaskError, ``timeout``, if a request has waited for its turn until its deadline."""
    if now >= deadline:
        raise TaskError("timeout", "no thread was free: add replicas", status=504)


def check_size(size: int, most: int | None) -> None:
    """Raise TaskError, ``too-large``, if a request has more than `most` bytes."""
    if most is not None and size > most:
        message = (
            f"the request has {size} bytes, and there is memory for {most} here: "
            "send less, or give its functions more memory (limits in stack.yaml)"
        )
        raise TaskError("too-large", message, status=413)


def check_memory(size: int, taken: int, most: int, what: str) -> None:
    """Raise TaskError: ``too-large`` above `most` bytes, ``full`` without room beside `taken`."""
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
    """Which executions have workers, `limit` at once; the others wait in their order."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        #: The executions that have workers.
        self.admitted: set[Candidate] = set()
        self._waiting: OrderedDict[Candidate, None] = OrderedDict()

    @property
    def free(self) -> int:
        """How many more executions could begin at once."""
        return max(0, self.limit - len(self.admitted))

    @property
    def waiting(self) -> int:
        """How many executions wait."""
        return len(self._waiting)

    def ask(self, candidate: Candidate) -> bool:
        """Whether an execution is admitted now; else it waits, once however often it asks."""
        if self.free and candidate not in self.admitted:
            self.admitted.add(candidate)
            return True
        self._waiting[candidate] = None
        return False

    def leave(self, candidate: Candidate) -> Candidate | None:
        """An execution has no workers any more; the execution that is admitted in its place."""
        self.admitted.discard(candidate)
        return self._admit_first() if self.free else None

    def exceed(self, is_blocked: Callable[[Candidate], bool]) -> Candidate | None:
        """Admit one more if all that have workers wait for other wraps; that execution.

        An execution that waits here may have the workers there that these wait for.
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


class _State(Enum):
    WAITING = 1
    #: It has workers here.
    ADMITTED = 2
    #: Another replica runs it.
    OFFLOADED = 3


class Admission:
    """Where an execution begins that needs workers: on the replica that offers some first."""

    def __init__(self) -> None:
        self._state = _State.WAITING
        self._look_s = _BLOCKED_S

    @property
    def waits(self) -> bool:
        """Whether it has begun nowhere."""
        return self._state is _State.WAITING

    @property
    def has_workers(self) -> bool:
        """Whether it has workers here."""
        return self._state is _State.ADMITTED

    def admit(self) -> bool:
        """Workers here are free; whether it takes them."""
        return self._take(_State.ADMITTED)

    def offload(self) -> bool:
        """Another replica has free workers; whether it begins there."""
        return self._take(_State.OFFLOADED)

    def return_here(self) -> None:
        """The replica that ran it was lost, or refuses it: it waits here again."""
        self._state, self._look_s = _State.WAITING, _BLOCKED_S

    def next_look_s(self) -> float:
        """In how many seconds to look whether it waits because all others wait."""
        seconds, self._look_s = self._look_s, 2 * self._look_s
        return seconds

    def _take(self, state: _State) -> bool:
        if not self.waits:
            return False
        self._state = state
        return True


def freest(free: Mapping[str, int]) -> str | None:
    """The replica with the most free workers; None if no replica has any.

    >>> freest({"a": 0, "b": 2, "c": 1})
    'b'
    >>> freest({"a": 0})
    """
    first = max(free, key=free.__getitem__, default=None)
    return first if first is not None and free[first] > 0 else None


def may_offload(is_whole: bool, has_streams: bool, is_of_buckets: bool) -> bool:
    """Whether another replica may run an execution.

    Args:
        is_whole: whether all its tasks run in this wrap.
        has_streams: whether its tasks read streams while they are written. Another replica begins
            its tasks one after another.
        is_of_buckets: whether it gives objects into buckets, which are here.
    """
    return is_whole and not has_streams and not is_of_buckets
