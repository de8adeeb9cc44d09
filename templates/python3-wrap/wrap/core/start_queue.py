"""In which order the tasks of one process begin.

Each thread calls the next thread just before the handler that it runs. So tasks begin in the order
of the plan, each when the handler before lets the GIL go, and none waits for another to end. Few
threads run what is short, one task after another, which saves wakes.
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
        """Tasks are to begin, after those that wait."""
        self._waiting.extend(tasks)

    def call(self) -> Task | None:
        """The task for which a thread is to come now, if one is."""
        if not self._waiting or self._coming or self._preparing is not None:
            return None
        self._coming = True
        return self._waiting[0]

    def came(self) -> None:
        """A thread that was called has come, or none could be had."""
        self._coming = False

    def take(self, live: Collection[Task] | None = None) -> Task | None:
        """The next task for a thread, of those that are `live`, if some have been given up."""
        while self._waiting and self._preparing is None:
            task = self._waiting.popleft()
            if live is None or task in live:
                self._preparing = task if self._waiting else None
                return task
        return None

    def is_preparing(self, task: Task) -> bool:
        """Whether others wait until a task has got to its handler."""
        return task == self._preparing

    def prepared(self, task: Task) -> bool:
        """A task has got to its handler, or never will; whether the next may begin by that."""
        if self._preparing != task:
            return False
        self._preparing = None
        return True
