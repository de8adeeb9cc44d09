"""The order in which the tasks of one process begin.

Each thread calls the next thread just before its own handler. So tasks begin in the order of the
plan, each when the handler before it releases the GIL. No task waits for another to end. A few
threads run short tasks one after another, which saves wakes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from typing import Generic, TypeVar

Task = TypeVar("Task")


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
