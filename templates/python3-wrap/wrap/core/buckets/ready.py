"""The queue of firings: which begin next, and how many at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Generic, Protocol

from .flow import Firing
from .routes import Task
from .triggers import Number, Value

#: The number of firings in hand from which new sessions are offered to other replicas too.
_AT_HAND = 4
#: The multiple of the memory quota above which firings run one after another.
_SLOW = 1.5


class Memory(Protocol):
    """The quota and the use of memory for objects of buckets, in bytes."""

    @property
    def most(self) -> int: ...
    @property
    def taken(self) -> int: ...


class FiringQueue(Generic[Task, Value]):
    """Firings that wait, and the counts of those that run or are about to."""

    def __init__(self) -> None:
        self.running = 0
        #: Whether no further firing may begin.
        self.stopped = False
        self._waiting = deque[Firing[Task, Value]]()
        #: Threads on their way to take a waiting firing; firings that begin once they are stored.
        self._coming = self._announced = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def in_hand(self) -> int:
        """The number of firings that run, wait, or are about to begin."""
        return self.running + len(self._waiting) + self._announced

    @property
    def has_few_firings(self) -> bool:
        """Whether so few firings are in hand that another session begins here in any case."""
        return self.in_hand < _AT_HAND

    def free(self, most: int) -> int:
        """Return how many further firings could begin if `most` may run at once."""
        return 0 if self.stopped else most - self.in_hand

    def add(self, fired: Iterable[Firing[Task, Value]]) -> None:
        """Queue firings. Windows and batches go first, because their objects have waited."""
        for firing in fired:
            if firing.begins_session:
                self._waiting.appendleft(firing)
            else:
                self._waiting.append(firing)

    def announce(self, count: int) -> None:
        """Announce `count` firings, to be added as soon as they are stored."""
        self._announced += count

    def remove_announced(self, count: int) -> None:
        """Remove `count` announced firings: they are added now, or never."""
        self._announced -= count

    def forget(self) -> None:
        self._waiting.clear()
        self._announced = 0

    def call(self, most: int, serving: bool) -> int:
        """Return how many more threads to call, besides the calling thread if it is `serving`.

        Each called thread reports `thread_came`.
        """
        free = min(len(self._waiting), most - self.running) - self._coming
        new = max(0, free - serving)
        self._coming += new
        return new

    def thread_came(self) -> None:
        self._coming -= 1

    def next(self, most: int) -> Firing[Task, Value] | None:
        """Return the firing that begins now; None if none waits or `most` already run."""
        if not self._waiting or self.running >= most or self.stopped:
            return None
        self.running += 1
        return self._waiting.popleft()

    def waits_for(self, memory: Memory, unwritten: int) -> bool:
        """Return whether nothing may begin until runs have ended or writes are done.

        `unwritten` are the bytes that wait to be written to a store.
        """
        if unwritten > memory.most:
            return True
        return self.running > 0 and memory.taken > _SLOW * memory.most

    def ended(self) -> None:
        self.running -= 1


def by_session(
    fired: Iterable[Firing[Task, Value]],
) -> tuple[dict[Number, list[Firing[Task, Value]]], Sequence[Firing[Task, Value]]]:
    """Return session -> the firings that begin it, and the firings of running sessions."""
    begin: dict[Number, list[Firing[Task, Value]]] = {}
    others = list[Firing[Task, Value]]()
    for firing in fired:
        if firing.begins_session:
            begin.setdefault(firing.session, []).append(firing)
        else:
            others.append(firing)
    return begin, others
