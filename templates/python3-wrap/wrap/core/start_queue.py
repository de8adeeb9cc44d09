"""The order in which the tasks of one process begin.

Each thread calls the next thread just before its own handler. The next thread begins its task when
the handler before it first waits, and a switch interval later at most. So tasks begin in the order
of the plan, and none takes the GIL while the one before releases it for a moment, as in connecting.
No task waits for another to end. A few threads run short tasks one after another, which saves
wakes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

Task = TypeVar("Task")

#: A called thread leaves the GIL to the thread before it for so many seconds at a time, or keeps it
#: for so long to see whether that thread goes on without it. On one core it only yields the core.
LEAVE_S, KEEP_S = 0.00015, 0.0001
#: CPython's switch interval, in seconds: no handler is left alone for longer.
_ALONE_S = 0.005
#: A thread that waits for the GIL is in a futex: the call's numbers on x86-64 and on AArch64.
_RUNNING, _FUTEX = "running", ("202", "98")
#: A thread that waits uses less CPU time than this, in seconds, when the GIL is left to it.
_WOKEN_S = 0.00002
#: A thread that computes uses more than this share of its time.
_COMPUTES = 0.8


class Look(NamedTuple):
    """What a called thread sees of the thread before it, whose handler has begun."""

    #: Seconds since that handler began.
    since_s: float
    #: ``running``, or the number of the system call in which the thread waits.
    call: str
    #: How long the last step took, and the CPU time of the thread within it, in seconds.
    elapsed_s: float = 0.0
    used_s: float = 0.0


class Step(Enum):
    """What a called thread does next: begin its task, or look again after leaving or keeping the
    GIL.
    """

    BEGIN = "begin"
    LEAVE = "leave"
    KEEP = "keep"


def next_step(look: Look, last: Step | None = None, *, one_core: bool = False) -> Step:
    """Return BEGIN if a handler waits, goes on without the GIL, or was alone long enough.

    `last` is the step before the look. A thread that computes without the GIL for a moment, as in
    connecting, soon waits for it. On one core nobody gains if two threads compute.
    """
    if look.since_s >= _ALONE_S or (look.call != _RUNNING and look.call not in _FUTEX):
        return Step.BEGIN
    if last is Step.LEAVE and look.used_s < _WOKEN_S:
        return Step.BEGIN
    if last is Step.KEEP and not one_core and look.used_s > _COMPUTES * look.elapsed_s:
        return Step.BEGIN
    return Step.KEEP if look.call == _RUNNING and last is not Step.KEEP else Step.LEAVE


class StartQueue(Generic[Task]):
    """The tasks that no thread has taken, and the task before them if a thread prepares it."""

    def __init__(self) -> None:
        self._waiting: deque[Task] = deque()
        self._coming = False
        self._preparing: Task | None = None

    def add(self, tasks: Iterable[Task]) -> None:
        self._waiting.extend(tasks)

    def call(self) -> Task | None:
        """Return the task for which a thread has to come now; None if none has to."""
        if not self._waiting or self._coming or self._preparing is not None:
            return None
        self._coming = True
        return self._waiting[0]

    def came(self) -> None:
        """Record that a called thread has come, or that no thread was available."""
        self._coming = False

    def take(self, live: Collection[Task] | None = None) -> Task | None:
        """Return the next task for a thread; tasks that are not `live` were given up."""
        while self._waiting and self._preparing is None:
            task = self._waiting.popleft()
            if live is None or task in live:
                self._preparing = task if self._waiting else None
                return task
        return None

    def is_preparing(self, task: Task) -> bool:
        """Return whether other tasks wait until a task has reached its handler."""
        return task == self._preparing

    def prepared(self, task: Task) -> bool:
        """Record that a task is no longer being prepared; return whether others waited."""
        if self._preparing != task:
            return False
        self._preparing = None
        return True
