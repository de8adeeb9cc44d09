"""What befalls the live streams of an execution: they break, and its tasks begin again."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from wrap.core.errors import TaskError
from wrap.core.events import AttemptBegan, StreamsBroke

if TYPE_CHECKING:
    from wrap.dispatch.execution import Execution

#: How long the cause of a stream's breaking off may take to be known, in seconds.
_CAUSE_S = 0.5


def again(execution: Execution, task: int, attempt: int) -> list[int] | None:
    """As `begin_next`; what is here, or None where the execution is over."""
    execution.event(begin_next, execution, task, attempt)
    with execution.lock:
        return None if execution.over else sorted(execution.run.here)


def begin_next(execution: Execution, task: int, attempt: int) -> None:
    """Have the tasks that live streams connect with one begin again; while an event is handled.

    Those of an attempt before have to answer first: they do when their streams break off.
    """
    execution.threads.start(execution.tell(AttemptBegan(time.monotonic(), task, attempt)))


def broke(execution: Execution, task: int, attempt: int, error: TaskError) -> None:
    """A task's streams broke in that attempt, or it was lost; while an event is handled."""
    execution.threads.start(execution.tell(StreamsBroke(time.monotonic(), task, attempt, error)))


def fail_later(execution: Execution, error: TaskError) -> None:
    """A stream broke off for good: what happened at its other end is about to be known."""
    when = time.monotonic() + _CAUSE_S
    execution.runtime.loop.call_at(when, partial(execution.fail, error))
