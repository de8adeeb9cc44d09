"""The time limits of an execution and its tasks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from wrap.core import commands as do
from wrap.core.commands import Command
from wrap.core.errors import TaskError
from wrap.core.program import Program

if TYPE_CHECKING:
    from wrap.core.wrap_spec import Wrap

#: The minimum time to wait for an answer at the deadline, in seconds.
_MOMENT_S = 0.001


class Limits(NamedTuple):
    """The limits of an execution."""

    #: The deadline, in seconds of the monotonic clock.
    deadline: float
    #: Seconds after the deadline in which a called wrap may still name the cause of its delay.
    grace_s: float
    #: The size in bytes from which the memory of an object matters.
    large_from: int


def until(now: float, deadline: float, *timeouts_s: float) -> float:
    """Return the limit of an item that begins now: its shortest timeout or the deadline."""
    return min(deadline, now + min(timeouts_s))


def left_s(now: float, deadline: float) -> float:
    """Return the seconds left, at least a moment so that a ready answer can still be read."""
    return max(_MOMENT_S, deadline - now)


def expired(
    waits_for_wraps: bool, waits_for_timers: bool, late: TaskError | None, full: str
) -> TaskError:
    """Return the timeout error of an execution that ran no task here at its deadline.

    Args:
        late: the other wraps that are gone or have not answered, if any.
        full: why an execution that waits for workers gets none.
    """
    if waits_for_wraps:
        message = "what other wraps give did not come in time"
        return late or TaskError("timeout", message, status=504)
    waited = "the request's time was over while it waited, by a Wait or a Retry"
    return TaskError("timeout", waited if waits_for_timers else full, status=504)


class TaskLimits:
    """The limit of each task that has begun and not ended.

    Args:
        commands: the list to which wake times are appended.
    """

    def __init__(
        self, program: Program, deployment: Wrap, limits: Limits, commands: list[Command]
    ) -> None:
        #: Task -> its limit.
        self.until: dict[int, float] = {}
        self._program = program
        self._place_of = program.part.place_of
        self._deployment = deployment
        self._deadline, self._grace_s = limits.deadline, limits.grace_s
        self._commands = commands
        self._due = math.inf

    def expect(self, tasks: Iterable[int], now: float) -> None:
        first = math.inf
        for number in tasks:
            self.until[number] = limit = self._of(number, now)
            first = min(first, limit)
        if first < self._due:
            self.wake_at(first)

    def until_deadline(self, tasks: Iterable[int]) -> None:
        """Let tasks run until the deadline of the execution."""
        self.until.update(dict.fromkeys(tasks, self._deadline))

    def passed(self, now: float) -> list[int]:
        """Return the overdue tasks. The caller has to request the next wake time."""
        self._due = math.inf
        return [number for number, limit in self.until.items() if limit <= now]

    def wake_at(self, when: float) -> None:
        """Request a wake at that time, unless an earlier wake is due."""
        if when < self._due:
            self._due = when
            self._commands.append(do.WakeAt(when))

    def _of(self, number: int, now: float) -> float:
        own_s = self._program.timeouts_s.get(number, math.inf)
        if isinstance(self._place_of[number], str):
            return until(now, self._deadline + self._grace_s, own_s)
        timeouts_s = self._deployment.timeouts_s
        if timeouts_s:
            own_s = min(own_s, timeouts_s.get(self._deployment.function_of(number), math.inf))
        return until(now, self._deadline, own_s)
