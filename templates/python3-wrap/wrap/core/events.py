"""The events that `wrap.core.run.Run` handles.

Times are in seconds of the monotonic clock. The core sees only the sizes of objects.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from wrap.core.errors import TaskError
from wrap.core.program import Key, Step


class Output(Protocol):
    """An object that a task returned."""

    @property
    def size(self) -> int:
        """The size of the object in bytes."""


class Answer(Protocol):
    """The outcome of a task: an output, or the fields of an error."""

    @property
    def task(self) -> int: ...
    @property
    def output(self) -> Output | None: ...
    @property
    def error(self) -> dict[str, Any] | None: ...


#: Task of another wrap -> its output; None if this wrap only needs to know that the task ended.
Outputs = Mapping[int, Output | None]


class Began(NamedTuple):
    """The execution begins: workers for it are available."""

    now: float
    #: The objects that the program starts with.
    objects: Any
    #: The size in bytes of each object in this wrap.
    sizes: Mapping[Key, int]


class Arrived(NamedTuple):
    """Outputs of other wraps have arrived, or notices that their tasks have ended."""

    now: float
    outputs: Outputs


class Ended(NamedTuple):
    """Tasks have ended, here or at a place that was called for them."""

    now: float
    answers: Sequence[Answer]


class Failed(NamedTuple):
    """Tasks have failed without answers of their own."""

    now: float
    tasks: Sequence[int]
    error: TaskError


class Offloaded(NamedTuple):
    """Another replica of the wrap has run all tasks."""

    answers: Sequence[Answer]


class Ready(NamedTuple):
    """A step may begin here: its calls to other wraps are on their way."""

    now: float
    step: Step
    #: Whether the tasks were held back, so that their timeouts start now.
    renewed: bool = False


class HeldBack(NamedTuple):
    """Backpressure keeps tasks from beginning."""

    tasks: Sequence[int]


class DelayPassed(NamedTuple):
    """A timer of the program has expired."""

    now: float
    number: int


class TimePassed(NamedTuple):
    """The time of the last `wrap.core.commands.WakeAt` has come."""

    now: float
    #: Seconds after the deadline in which other wraps may still answer.
    grace_s: float = 0.0
    #: Whether the client has got a part of the answer.
    answering: bool = False
    #: The other wraps that have ended without a replacement, if any.
    gone: TaskError | None = None
    #: The other wraps that are gone or have not answered, if any.
    late: TaskError | None = None
    #: Why an execution that waits for workers gets none.
    full: str = ""


class WorkerLost(NamedTuple):
    """A worker has died, or sent an invalid message, before it answered the tasks `owed`."""

    process: int
    owed: Collection[int]
    answering: bool = False


class WorkerEnded(NamedTuple):
    """The process of a lost worker has ended; a replacement may start."""

    now: float
    process: int
    #: The tasks that the worker had not answered.
    owed: Collection[int]
    #: The owed tasks that timed out, and their error; None if the worker died.
    late: Collection[int]
    error: TaskError | None
    #: How the worker ended.
    failure: TaskError
    #: Whether the client has got a part of the answer.
    answering: bool = False


class AttemptBegan(NamedTuple):
    """A further attempt begins for the tasks that live streams connect with `task`."""

    now: float
    task: int
    attempt: int


class StreamsBroke(NamedTuple):
    """The live streams of a task broke in that attempt, or the task was lost."""

    now: float
    task: int
    attempt: int
    error: TaskError


Event = (
    Began
    | Arrived
    | Ended
    | Failed
    | Offloaded
    | Ready
    | HeldBack
    | DelayPassed
    | TimePassed
    | WorkerLost
    | WorkerEnded
    | AttemptBegan
    | StreamsBroke
)
