"""Threads that still run although nobody awaits them any more: how many are too many.

Python cannot kill a thread. Each of these threads keeps its memory until its code returns.
"""

from __future__ import annotations

import contextlib
from typing import Protocol

from wrap.core.errors import TaskError

#: The limit of lost threads; twice the tasks of a request if that is more.
_LIMIT = 64


class Work(Protocol):
    """Threads that may have been given up: the functions, whether that is so, and their end."""

    name: str

    @property
    def lost(self) -> bool: ...

    @property
    def over(self) -> bool: ...


class LostThreads:
    """The work that was given up. Any thread may call its methods.

    Args:
        tasks: how many tasks of a request run as threads.
    """

    def __init__(self, tasks: int = 0) -> None:
        self._limit = max(_LIMIT, 2 * tasks)
        self._given_up: list[Work] = []

    def add(self, work: Work) -> None:
        self._given_up.append(work)

    def too_many(self) -> list[Work]:
        """Return the work that was given up and still runs, if there is too much of it."""
        if len(self._given_up) < self._limit:
            return []
        for work in [each for each in self._given_up if each.over]:
            with contextlib.suppress(ValueError):  # another thread has removed it
                self._given_up.remove(work)
        return list(self._given_up) if len(self._given_up) >= self._limit else []

    def check(self) -> None:
        """Raise TaskError, ``threads-lost``, if too many threads are lost to start another."""
        lost = self.too_many()
        if lost:
            names = ", ".join(sorted({work.name for work in lost}))
            message = (
                f"{len(lost)} threads of {names} are still running after their timeout: "
                "fix the call that blocks"
            )
            raise TaskError("threads-lost", message, function=names, status=503)

    @property
    def are_too_many(self) -> bool:
        """Whether the program has to restart: so many cancelled threads still run."""
        return sum(work.lost for work in self.too_many()) >= self._limit
