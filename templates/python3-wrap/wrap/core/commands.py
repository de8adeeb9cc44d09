"""The commands that `wrap.core.run.Run` returns, for its surroundings to perform.

Each command is performed once, in order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from wrap.core.errors import TaskError
from wrap.core.program import Call, Component, Key, Step


class CallWrap(NamedTuple):
    call: Call


class Begin(NamedTuple):
    """Begin the tasks of a step as soon as calls are sent and backpressure allows it.

    The event that follows is `wrap.core.events.Ready` or `wrap.core.events.HeldBack`.
    """

    step: Step


class CallWorker(NamedTuple):
    call: Call


class StartTasks(NamedTuple):
    """Run tasks as threads of this process, in the order of the plan."""

    tasks: list[int]


class SetTimer(NamedTuple):
    """Tell the program after `seconds`."""

    number: int
    seconds: float


class CancelTimer(NamedTuple):
    number: int


class WakeAt(NamedTuple):
    """Send `wrap.core.events.TimePassed` at `when`; replaces all earlier wake times."""

    when: float


class Keep(NamedTuple):
    task: int
    output: Any


class Drop(NamedTuple):
    key: Key


class Accept(NamedTuple):
    """Count an answer as one of the execution's results."""

    answer: Any
    #: Whether the output belongs to the result.
    has_output: bool


class AcceptAll(NamedTuple):
    """Use the answers of another replica as the results."""

    answers: Sequence[Any]


class Give(NamedTuple):
    """Send outputs to the wraps that wait for them; `last` if all tasks here have ended."""

    answers: Sequence[Any]
    last: bool


class RecordFailure(NamedTuple):
    task: int
    error: TaskError


class CountFailures(NamedTuple):
    """Count tasks that ended without a result, by the code of their error."""

    tasks: Sequence[int]
    code: str


class LoseWorker(NamedTuple):
    """Kill a worker; `wrap.core.events.WorkerEnded` follows, with the same `late` and `error`."""

    process: int
    late: Collection[int] = ()
    error: TaskError | None = None


class FailByWorker(NamedTuple):
    """Fail the execution because a worker died. The performer finds out how the worker died."""

    process: int


class Abandon(NamedTuple):
    """Stop waiting for a task of this process."""

    task: int


class BeginAttempt(NamedTuple):
    """Break off the live streams of a component's earlier attempts."""

    component: Component
    attempt: int


class ReportBroken(NamedTuple):
    """Tell the coordinator that the streams of a task broke."""

    task: int
    attempt: int
    error: TaskError


class FailLater(NamedTuple):
    """Fail unless a better reason is known soon."""

    error: TaskError


class Finish(NamedTuple):
    """Fail the execution."""

    error: TaskError


Command = (
    CallWrap
    | Begin
    | CallWorker
    | StartTasks
    | SetTimer
    | CancelTimer
    | WakeAt
    | Keep
    | Drop
    | Accept
    | AcceptAll
    | Give
    | RecordFailure
    | CountFailures
    | LoseWorker
    | FailByWorker
    | Abandon
    | BeginAttempt
    | ReportBroken
    | FailLater
    | Finish
)
