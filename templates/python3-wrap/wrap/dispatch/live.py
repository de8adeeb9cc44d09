"""The live streams of an execution: they break, and tasks begin another attempt."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from wrap.core.errors import TaskError
from wrap.core.events import AttemptBegan, StreamsBroke

if TYPE_CHECKING:
    from wrap.dispatch.execution import Execution

#: How long to wait for the cause of a broken stream, in seconds.
_CAUSE_S = 0.5


def again(execution: Execution, task: int, attempt: int) -> list[int] | None:
    """Call `begin_next`; return the tasks ended here, or None if the execution is over."""
    execution.event(begin_next, execution, task, attempt)
    with execution.lock:
        return None if execution.over else sorted(execution.run.here)


def begin_next(execution: Execution, task: int, attempt: int) -> None:
    """Begin an attempt of the tasks that live streams connect; call it in an event.

    Tasks of earlier attempts have to answer first. They answer when their streams break off.
    """
    execution.threads.start(execution.tell(AttemptBegan(time.monotonic(), task, attempt)))


def streams_broke(execution: Execution, task: int, attempt: int, error: TaskError) -> None:
    """Handle broken streams of a task, or its loss; call it while an event is handled."""
    execution.threads.start(execution.tell(StreamsBroke(time.monotonic(), task, attempt, error)))


def fail_later(execution: Execution, error: TaskError) -> None:
    """Fail after a moment, as the cause at the other end of the broken stream may arrive first."""
    when = time.monotonic() + _CAUSE_S
    execution.runtime.loop.call_at(when, partial(execution.fail, error))
