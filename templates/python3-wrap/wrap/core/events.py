"""What happens to an execution: the events that `wrap.core.run.Run` handles.

Times are in seconds of the monotonic clock. Objects are opaque to the core, but for their sizes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from wrap.core.errors import TaskError
from wrap.core.program import Key, Step


class Output(Protocol):
    """An object that a task gave."""

    @property
    def size(self) -> int:
        """Bytes of the object."""


class Answer(Protocol):
    """How a task went: with an output, or with the fields of an error."""

    @property
    def task(self) -> int: ...
    @property
    def output(self) -> Output | None: ...
    @property
    def error(self) -> dict[str, Any] | None: ...


#: Outputs of other wraps by their tasks; None where it is enough to know that a task has ended.
Outputs = Mapping[int, Output | None]


class Began(NamedTuple):
    """The execution begins, as there are workers for it."""

    now: float
    #: What the program starts with.
    objects: Any
    #: The bytes of each of the objects that are here.
    sizes: Mapping[Key, int]


class Arrived(NamedTuple):
    """Outputs of other wraps have come, or word that their tasks have ended."""

    now: float
    outputs: Outputs


class Ended(NamedTuple):
    """Tasks have ended, here or in a place that was called for them."""

    now: float
    answers: Sequence[Answer]


class Failed(NamedTuple):
    """Tasks have failed without an answer of their own."""

    now: float
    tasks: Sequence[int]
    error: TaskError


class Offloaded(NamedTuple):
    """Another replica of the wrap has run all tasks."""

    answers: Sequence[Answer]


class Ready(NamedTuple):
    """What a step says may begin here: its calls to other wraps are on their way."""

    now: float
    step: Step
    #: Whether the tasks were held back, so that their own timeouts run from now on.
    renewed: bool = False


class HeldBack(NamedTuple):
    """Backpressure keeps tasks from beginning."""

    tasks: Sequence[int]


class DelayPassed(NamedTuple):
    """A timer of the program has expired."""

    now: float
    number: int


class TimePassed(NamedTuple):
    """The time has come that `wrap.core.commands.WakeAt` named last."""

    now: float
    #: For how many seconds after the deadline other wraps may still answer.
    grace_s: float = 0.0
    #: Whether the client has got a part of the answer.
    answering: bool = False
    #: Which other wraps have ended and are not there again, if any.
    gone: TaskError | None = None
    #: Which other wraps are gone or have not answered, if any.
    late: TaskError | None = None
    #: Why an execution that waits for workers gets none.
    full: str = ""


class WorkerLost(NamedTuple):
    """A worker has died, or talks nonsense, before it had answered for the tasks `owed`."""

    process: int
    owed: Collection[int]
    answering: bool = False


class WorkerEnded(NamedTuple):
    """A lost worker has ended, so that another worker may take its place."""

    now: float
    process: int
    #: The tasks that it had not answered.
    owed: Collection[int]
    #: Those of them whose time was over, and the error of these; None if the worker died.
    late: Collection[int]
    error: TaskError | None
    #: How the worker ended.
    failure: TaskError
    #: Whether the client has got a part of the answer.
    answering: bool = False


class AttemptBegan(NamedTuple):
    """The tasks that live streams connect with a task are in a further attempt."""

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
