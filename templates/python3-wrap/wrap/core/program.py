"""What a workflow asks for as it runs: the interface that each kind of workflow implements.

A program is a pure state machine of one execution. Events go in, steps come out: which tasks begin,
which places are called, which times are awaited. `wrap.core.dag` runs graphs of tasks;
`wrap.core.placement` runs state machines and the calls of other wraps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Container, Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple, Protocol

from wrap.core.errors import TaskError

#: Where an input comes from: the request, one task's object, or a JSON list of several; of none, an
#: empty text.
Source = int | list[int] | None


class Streamed(NamedTuple):
    """The input of a task that reads streams, and the outputs that have to be there to be read."""

    source: Source
    streams: tuple[int, ...]


#: An object by the task that gives it; None is the request.
Key = int | None
#: A process of this wrap by its number, 0 for the main one; or another wrap by its name.
Place = int | str
MAIN = 0
#: Tasks that live streams connect, and the outputs that these emit.
Component = frozenset[int]


def given_to(number: int) -> int:
    """The key of the object that an instance of a task gets: see `wrap.core.placement`."""
    return ~number


def keys(source: Source | Streamed) -> Sequence[Key]:
    """The objects that `source` is made of."""
    if isinstance(source, Streamed):
        return (*keys(source.source), *source.streams)
    return source if isinstance(source, list) else (source,)


class Call(NamedTuple):
    """Tasks that a place is to run, and what goes there and comes back."""

    place: Place
    #: A group, of which the place itself sees what runs next.
    tasks: tuple[int, ...]
    #: The objects from elsewhere that these need.
    needs: tuple[Key, ...]
    #: The tasks whose objects are needed elsewhere.
    gives: frozenset[int]
    #: Whether the place has been called for them before.
    repeated: bool = False


class Step(NamedTuple):
    """What an event leads to."""

    #: The tasks that begin, here or in a place that is called for them.
    begins: list[int]
    #: The calls to be made now.
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
        processes, in_order: the further processes that run some of the tasks; those whose tasks
            never overlap.
        is_whole: whether the tasks wait for nothing but each other and the request.
        live: whether some tasks read what others write at the same time.
        calls_wraps: whether some tasks run in other wraps, which are called for them.
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
        """The tasks that run at a place."""

    def tasks_to_come(self, process: int) -> int:
        """How many tasks a process will be called for."""


class Program(ABC):
    """One execution of a workflow, or of a part of it."""

    #: Whether the program chooses at run time which instances of tasks run. Such a program holds
    #: their objects itself, and may go on after a task has failed.
    decides = False
    #: Whether events evaluate paths, which may take until the deadline.
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
        """Whether nothing is left to be run."""

    def unanswered(self, begun: Set[int]) -> Set[int]:
        """The tasks of which an answer is still awaited, of those that have `begun` and others."""
        return begun

    @abstractmethod
    def start(self, objects: Any) -> Step:
        """What begins with the execution, whose objects are `objects`."""

    @abstractmethod
    def ended(self, task: int, output: Any) -> Step:
        """What begins when a task has ended, which each task does once."""

    def failed(self, task: int, error: TaskError) -> Step:
        """What begins when a task has failed. Raises the error if the execution has failed too."""
        raise error

    def arrived(self, tasks: Iterable[int]) -> Step:
        """What begins when tasks of other wraps have ended. Raises TaskError, ``other-plan``."""
        raise TaskError("other-plan", "nothing of other wraps is awaited here", status=400)

    def due(self, number: int) -> Step:
        """What begins when a timer has expired."""
        return Step([], [])

    def repeat(self, tasks: Collection[int]) -> Step:
        """What begins once more, all at once: tasks that live streams connect await no other."""
        return Step([], [])

    @abstractmethod
    def again(self, process: int, lost: Collection[int], held: Container[Key]) -> Call:
        """The first call to a replacement worker.

        Args:
            lost: the tasks that the lost worker had not answered and that may run again.
            held: the objects that are in this wrap.
        """

    @abstractmethod
    def together(self, steps: Sequence[Step]) -> Step:
        """What events at once lead to."""
