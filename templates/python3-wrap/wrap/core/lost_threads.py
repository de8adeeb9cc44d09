"""Threads that go on although nobody waits for them any more: how many are too many.

Python cannot kill a thread. Each of these threads keeps its memory until its code returns.
"""

from __future__ import annotations

import contextlib
from typing import Protocol

from wrap.core.errors import TaskError

#: So many lost threads are too many, or two requests' if these are more.
_LIMIT = 64


class Work(Protocol):
    """What a thread does."""

    @property
    def name(self) -> str:
        """The function that it runs."""

    @property
    def over(self) -> bool:
        """Whether the thread is done with it."""

    @property
    def lost(self) -> bool:
        """Whether it was cancelled, and the thread goes on."""


class LostThreads:
    """The work that was given up. Any thread may call its methods.

    Args:
        tasks: how many tasks of a request run as threads.
    """

    def __init__(self, tasks: int = 0) -> None:
        self._limit = max(_LIMIT, 2 * tasks)
        self._given_up: list[Work] = []

    def add(self, work: Work) -> None:
        """Nobody waits for `work` any more."""
        self._given_up.append(work)

    def too_many(self) -> list[Work]:
        """The work that was given up and goes on, if that is too much; else nothing."""
        if len(self._given_up) < self._limit:
            return []
        for work in [each for each in self._given_up if each.over]:
            with contextlib.suppress(ValueError):  # another thread has seen it too
                self._given_up.remove(work)
        return list(self._given_up) if len(self._given_up) >= self._limit else []

    def check(self) -> None:
        """Raise TaskError, ``threads-lost``, if there are too many to start another thread."""
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
        """Whether the program has to begin anew: all these threads were cancelled, and go on."""
        return sum(work.lost for work in self.too_many()) >= self._limit
