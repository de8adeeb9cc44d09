"""Which firings begin next, and how many at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Generic, Protocol

from .flow import Firing
from .routes import Task
from .triggers import Number, Value

#: With so many firings in hand, what fires next is offered to other replicas too.
_AT_HAND = 4
#: From so many times the quota of memory on, firings run one after another.
_SLOW = 1.5


class Memory(Protocol):
    """What objects of buckets may take, and take, in bytes."""

    @property
    def most(self) -> int: ...
    @property
    def taken(self) -> int: ...


class Ready(Generic[Task, Value]):
    """Firings that wait, and the counts of those that run or are about to."""

    def __init__(self) -> None:
        #: How many run.
        self.running = 0
        #: Whether nothing more is to begin.
        self.stopped = False
        self._waiting = deque[Firing[Task, Value]]()
        #: Threads that are about to take what waits; firings that begin once they are kept.
        self._coming = self._promised = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def in_hand(self) -> int:
        """Firings that run, are about to, or wait."""
        return self.running + len(self._waiting) + self._promised

    @property
    def has_hands(self) -> bool:
        """Whether so little is in hand that another session begins here, whoever else could."""
        return self.in_hand < _AT_HAND

    def free(self, most: int) -> int:
        """How many further firings would begin where `most` may run at once."""
        return 0 if self.stopped else most - self.in_hand

    def add(self, fired: Iterable[Firing[Task, Value]]) -> None:
        """Windows and batches, which have waited, come before what fires at once."""
        for firing in fired:
            if firing.begins_session:
                self._waiting.appendleft(firing)
            else:
                self._waiting.append(firing)

    def promise(self, count: int) -> None:
        """So many firings are to be added as soon as they are kept."""
        self._promised += count

    def kept(self, count: int) -> None:
        """So many that were promised are added now, or never."""
        self._promised -= count

    def forget(self) -> None:
        """Nothing waits, and nothing is promised."""
        self._waiting.clear()
        self._promised = 0

    def call(self, most: int, serving: bool) -> int:
        """How many threads are to come for what waits, beside the calling one if it is `serving`.

        Each that comes says `came`.
        """
        free = min(len(self._waiting), most - self.running) - self._coming
        new = max(0, free - serving)
        self._coming += new
        return new

    def came(self) -> None:
        """A thread that was called has come."""
        self._coming -= 1

    def next(self, most: int) -> Firing[Task, Value] | None:
        """The firing that begins now, where `most` may run at once."""
        if not self._waiting or self.running >= most or self.stopped:
            return None
        self.running += 1
        return self._waiting.popleft()

    def waits_for(self, memory: Memory, unwritten: int) -> bool:
        """Whether nothing more is to begin before what runs has ended, or has been written.

        `unwritten` are the bytes that wait to be written to a store.
        """
        if unwritten > memory.most:
            return True
        return self.running > 0 and memory.taken > _SLOW * memory.most

    def ended(self) -> None:
        """A firing runs no more."""
        self.running -= 1


def by_session(
    fired: Iterable[Firing[Task, Value]],
) -> tuple[dict[Number, list[Firing[Task, Value]]], Sequence[Firing[Task, Value]]]:
    """The firings that begin sessions, by these; and those of sessions that have begun."""
    begin: dict[Number, list[Firing[Task, Value]]] = {}
    others = list[Firing[Task, Value]]()
    for firing in fired:
        if firing.begins_session:
            begin.setdefault(firing.session, []).append(firing)
        else:
            others.append(firing)
    return begin, others
