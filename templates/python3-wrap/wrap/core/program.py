"""The interface of a program: what each kind of workflow decides while an execution runs.

A program is a pure state machine of one execution. Events go in. Steps come out: tasks to begin,
places to call, timers to set. `wrap.core.dag` runs graphs of tasks. `wrap.core.placement` runs
state machines and the calls of other wraps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Container, Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple, Protocol

from wrap.core.errors import TaskError

#: Where an input comes from: None for the request, a task for its object, a list for a JSON list of
#: their objects. An empty list stands for an empty text.
Source = int | list[int] | None


class Streamed(NamedTuple):
    """The input of a task that reads streams, and the outputs that it reads as streams."""

    source: Source
    streams: tuple[int, ...]


#: The key of an object: the task that returns it; None for the request.
Key = int | None
#: A process of this wrap by its number, 0 for the main process; or another wrap by its name.
Place = int | str
MAIN = 0
#: Tasks that live streams connect, and the outputs that they emit.
Component = frozenset[int]


def given_to(number: int) -> int:
    """Return the key of an instance's input object; see `wrap.core.placement`."""
    return ~number


def keys(source: Source | Streamed) -> Sequence[Key]:
    """Return the keys of the objects that `source` consists of."""
    if isinstance(source, Streamed):
        return (*keys(source.source), *source.streams)
    return source if isinstance(source, list) else (source,)


class Call(NamedTuple):
    """A call that has a place run tasks, with the objects that go there and come back."""

    place: Place
    #: A group: the place itself decides which of its tasks runs next.
    tasks: tuple[int, ...]
    #: The objects from elsewhere that the tasks need.
    needs: tuple[Key, ...]
    #: The tasks whose objects are needed elsewhere.
    gives: frozenset[int]
    #: Whether the place has been called for these tasks before.
    repeated: bool = False


class Step(NamedTuple):
    """What follows from an event."""

    #: The tasks that begin, here or at a place that is called for them.
    begins: list[int]
    #: The calls to make now.
    calls: list[Call]
    #: Timers to set, each with its number and seconds.
    delays: Sequence[tuple[int, float]] = ()
    #: The numbers of timers to cancel.
    cancelled: Sequence[int] = ()


class Scope(Protocol):
    """The tasks of an execution that run in one wrap or process.

    Attributes:
        place_of: task -> where it runs.
        gives: the tasks whose outputs are wanted elsewhere.
        components: task -> the tasks that live streams connect it with.
        sources, users: task -> where its input comes from; object -> the tasks that need it.
        processes, in_order: the worker processes that run some of the tasks; those of them whose
            tasks never overlap.
        is_whole: whether the tasks need nothing but each other and the request.
        live: whether some tasks read streams while other tasks write them.
        calls_wraps: whether some tasks run in other wraps, which have to be called.
    """

    @property
    def place_of(self) -> Mapping[int, Place]: ...
    @property
    def gives(self) -> Collection[int]: ...
    @property
    def components(self) -> Mapping[int, Component]: ...
    @property
    def sources(self) -> Mapping[int, Source | Streamed]: ...
    @property
    def users(self) -> Mapping[Key, Sequence[int]]: ...
    @property
    def processes(self) -> frozenset[int]: ...
    @property
    def in_order(self) -> frozenset[int]: ...
    @property
    def is_whole(self) -> bool: ...
    @property
    def live(self) -> bool: ...
    @property
    def calls_wraps(self) -> bool: ...
    def tasks_at(self, place: Place) -> list[int]:
        """Return the tasks that run at a place."""


class Program(ABC):
    """One execution of a workflow, or of a part of it."""

    #: Whether the program chooses instances of tasks at run time. Such a program holds their
    #: objects itself, and may continue after a task has failed.
    decides = False
    #: Whether events evaluate paths. Evaluation may take until the deadline.
    evaluates = False
    #: Task -> its own timeout in seconds.
    timeouts_s: Mapping[int, float] = {}

    @property
    @abstractmethod
    def part(self) -> Scope:
        """The tasks that the program runs."""

    @property
    @abstractmethod
    def is_complete(self) -> bool:
        """Whether all tasks have ended."""

    def unanswered(self, begun: Set[int]) -> Set[int]:
        """Return the tasks whose answers are still awaited: by default those that have `begun`."""
        return begun

    @abstractmethod
    def start(self, objects: Any) -> Step:
        """Return the first step of the execution with these objects."""

    @abstractmethod
    def ended(self, task: int, output: Any) -> Step:
        """Return the step after the end of a task. Each task ends once."""

    def failed(self, task: int, error: TaskError) -> Step:
        """Return the step after the failure of a task. Raises the error if the execution fails."""
        raise error

    def arrived(self, tasks: Iterable[int]) -> Step:
        """Return the step after tasks of other wraps ended. Raises TaskError, ``other-plan``."""
        raise TaskError("other-plan", "nothing of other wraps is awaited here", status=400)

    def due(self, number: int) -> Step:
        """Return the step after a timer has expired."""
        return Step([], [])

    def repeat(self, tasks: Collection[int]) -> Step:
        """Return a step that begins `tasks` again at once, because live streams connect them."""
        return Step([], [])

    @abstractmethod
    def again(self, process: int, lost: Collection[int], held: Container[Key]) -> Call:
        """Return the first call to a replacement worker.

        Args:
            lost: the unanswered tasks of the lost worker that may run again.
            held: the objects that are in this wrap.
        """

    @abstractmethod
    def together(self, steps: Sequence[Step]) -> Step:
        """Return one step for several simultaneous events."""
