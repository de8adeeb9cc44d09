"""What an execution asks its surroundings to do: the commands that `wrap.core.run.Run` returns.

Commands are performed once, in their order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from wrap.core.errors import TaskError
from wrap.core.program import Call, Component, Key, Step


class CallWrap(NamedTuple):
    """Call another wrap."""

    call: Call


class Begin(NamedTuple):
    """Begin the tasks of a step as soon as calls are sent and backpressure allows it.

    The event that follows is `wrap.core.events.Ready` or `wrap.core.events.HeldBack`.
    """

    step: Step


class CallWorker(NamedTuple):
    """Call a further process."""

    call: Call


class StartTasks(NamedTuple):
    """Run tasks as threads of this process, in the order of the plan."""

    tasks: list[int]


class SetTimer(NamedTuple):
    """Tell the program when so many seconds have passed."""

    number: int
    seconds: float


class CancelTimer(NamedTuple):
    """Nobody awaits a timer any more."""

    number: int


class WakeAt(NamedTuple):
    """Send `wrap.core.events.TimePassed` then, and at no earlier time that was named before."""

    when: float


class Keep(NamedTuple):
    """Hold the output of a task."""

    task: int
    output: Any


class Drop(NamedTuple):
    """Hold an object no longer."""

    key: Key


class Accept(NamedTuple):
    """An answer counts: it is one of the execution's results."""

    answer: Any
    #: Whether the output belongs to the result.
    has_output: bool


class AcceptAll(NamedTuple):
    """The answers of another replica are the results."""

    answers: Sequence[Any]


class Give(NamedTuple):
    """Send outputs to the wraps that wait for them; `last` if no task here is left."""

    answers: Sequence[Any]
    last: bool


class RecordFailure(NamedTuple):
    """A result of a task that gave none: it failed with `error`."""

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
    """The execution has failed because a worker died; how it died has to be asked for."""

    process: int


class Abandon(NamedTuple):
    """Run a task of this process no longer."""

    task: int


class BeginAttempt(NamedTuple):
    """Break off the live streams of a component's attempts before."""

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
    """The execution has failed."""

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
