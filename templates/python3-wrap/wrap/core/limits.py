"""Until when an execution and its tasks may run."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple, Protocol, TypeVar

from wrap.core import commands as do
from wrap.core.commands import Command
from wrap.core.deployment import Deployment
from wrap.core.errors import TaskError
from wrap.core.program import Program

#: What is asked for at its deadline may take so many seconds.
_MOMENT_S = 0.001


class Limits(NamedTuple):
    """The limits of an execution."""

    #: Until when it may take, in seconds of the monotonic clock.
    deadline: float
    #: Seconds after the deadline that a call to another wrap may take, which names the cause.
    grace_s: float
    #: Bytes of an object from which its memory matters.
    large_from: int


class Limited(Protocol):
    """What may run until its `limit`, in seconds of the monotonic clock."""

    @property
    def limit(self) -> float: ...


Each = TypeVar("Each", bound=Limited)


def until(now: float, deadline: float, *timeouts_s: float) -> float:
    """Until when something may run that begins now: its timeouts, and the deadline of all."""
    return min(deadline, now + min(timeouts_s))


def left_s(now: float, deadline: float) -> float:
    """Seconds until a deadline; a moment if it has passed, so that an answer may still be there."""
    return max(_MOMENT_S, deadline - now)


def overdue(running: Iterable[Each], now: float) -> tuple[list[Each], float]:
    """What has reached its limit, and when the next of the others does; infinite if there is none.

    What is overdue may go on, because a thread cannot be killed: the next look is not for it.
    """
    late, next_limit = list[Each](), math.inf
    for each in running:
        if each.limit <= now:
            late.append(each)
        else:
            next_limit = min(next_limit, each.limit)
    return late, next_limit


def expired(
    waits_for_wraps: bool, waits_for_timers: bool, late: TaskError | None, full: str
) -> TaskError:
    """Why the time of an execution was over although no task ran here.

    Args:
        late: which other wraps are gone or have not answered, if any.
        full: why an execution that waits for workers gets none.
    """
    if waits_for_wraps:
        message = "what other wraps give did not come in time"
        return late or TaskError("timeout", message, status=504)
    waited = "the request's time was over while it waited, by a Wait or a Retry"
    return TaskError("timeout", waited if waits_for_timers else full, status=504)


class TaskLimits:
    """Until when each task may run that has begun and not ended.

    Args:
        commands: gets when the rules are to look at the time.
    """

    def __init__(
        self, program: Program, deployment: Deployment, limits: Limits, commands: list[Command]
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
        """Tasks begin now."""
        first = math.inf
        for number in tasks:
            self.until[number] = limit = self._of(number, now)
            first = min(first, limit)
        if first < self._due:
            self.wake_at(first)

    def until_deadline(self, tasks: Iterable[int]) -> None:
        """Tasks have all of the execution's time."""
        self.until.update(dict.fromkeys(tasks, self._deadline))

    def passed(self, now: float) -> list[int]:
        """The tasks whose time is over; the next look is to be asked for anew."""
        self._due = math.inf
        return [number for number, limit in self.until.items() if limit <= now]

    def wake_at(self, when: float) -> None:
        """Have the rules look at the time then, unless they do so before."""
        if when < self._due:
            self._due = when
            self._commands.append(do.WakeAt(when))

    def _of(self, number: int, now: float) -> float:
        """Until when a task may run that begins now."""
        own_s = self._program.timeouts_s.get(number, math.inf)
        if isinstance(self._place_of[number], str):
            return until(now, self._deadline + self._grace_s, own_s)
        timeouts_s = self._deployment.timeouts_s
        if timeouts_s:
            own_s = min(own_s, timeouts_s.get(self._deployment.function_of(number), math.inf))
        return until(now, self._deadline, own_s)
