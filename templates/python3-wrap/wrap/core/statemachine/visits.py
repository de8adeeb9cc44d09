"""The records of a running state machine: scopes, visits of states, tasks and delays to begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .datasets import Dataset
from .errors import StatesError
from .map_run import MapRun

#: The longest delay in seconds: the language's limit for seconds of a state.
MOST_SECONDS = 99_999_999


def chosen_task(state: str, function: str) -> str:
    """Return the task of a function that a Task state chooses at run time."""
    return f"{state}.{function}"


#: The numbers of the tasks and delays whose ends caused an event.
After = frozenset[int]
#: The name of the next state (None: the end of the scope), and its input.
Following = tuple[str | None, Any]


class Begin(NamedTuple):
    """A task to begin; `timeout_s` is None if the task has no limit of its own."""

    number: int
    task: str
    given: Any
    timeout_s: float | None
    after: After


class Delay(NamedTuple):
    """A delay to begin: of a Wait state, before a retry, or of the whole machine."""

    number: int
    seconds: float
    after: After


class Step(NamedTuple):
    """The result of an event: tasks and delays to begin, and the numbers no longer awaited.

    A task or delay that one event both begins and drops is in no list.
    """

    begins: list[Begin]
    delays: list[Delay]
    dropped: list[int]


class Leaving(NamedTuple):
    """The output of a state, and the variables that it assigns at its end."""

    output: Any
    assigned: Mapping[str, Any]


class Scope:
    """One run through the states of a machine, of a branch, or of an item of a Map.

    A scope and its visit refer to each other only until the end. Such a cycle would keep megabytes
    of data until a garbage collection.
    """

    __slots__ = ("index", "item", "parent", "passed", "states", "variables", "visit")

    def __init__(
        self, definition: Mapping[str, Any], parent: Visit | None, index: int, item: Any
    ) -> None:
        self.states: Mapping[str, Any] = definition["States"]
        self.parent = parent
        self.index = index
        #: Variable -> value, including those of the scopes around it.
        self.variables: Mapping[str, Any] = {} if parent is None else parent.scope.variables
        #: The value of ``$$.Map``.
        self.item = item
        self.visit: Visit | None = None
        #: The number of states entered since the last wait in this scope or within it.
        self.passed = 0

    def waits(self) -> None:
        """Record a wait in this scope, and thereby in the scopes around it."""
        scope: Scope | None = self
        while scope is not None:
            scope.passed = 0
            scope = None if scope.parent is None else scope.parent.scope


class Visit:
    """A state from its entry to its end."""

    __slots__ = (
        *("after", "beats", "children", "dataset", "ends", "entered", "failed", "given", "items"),
        *("known", "left", "limit", "name", "number", "origin", "raw", "results", "retried"),
        *("run", "running", "scope", "source", "started", "starting", "state"),
    )

    # For states that begin scopes: their input, and the cache of shared expressions; the limit of
    # concurrent scopes, and the numbers of begun, running and unfinished scopes; their results, and
    # the tasks and delays whose ends ended them.
    given: Any
    known: dict[str, Any]
    items: Sequence[Any]
    limit: float
    started: int
    running: int
    left: int
    results: list[Any]
    ends: set[int]
    # For Maps: the items (`items` may be batches of them), `$$.Map.Item.Source` unless the items
    # come from a dataset, and the number of failed items.
    source: Sequence[Any]
    origin: str | None
    dataset: Dataset | None
    failed: int

    def __init__(self, scope: Scope, name: str, raw: Any, after: After, entered: float) -> None:
        self.scope = scope
        self.entered = entered
        self.name = name
        self.state: Mapping[str, Any] = scope.states[name]
        self.raw = raw
        self.after = after
        #: The number of the awaited task or delay.
        self.number: int | None = None
        #: Index of a retrier -> number of its uses.
        self.retried: dict[int, int] = {}
        #: Whether the heartbeat limit of the task is shorter than its timeout.
        self.beats = False
        #: The run of a distributed Map.
        self.run: MapRun | None = None
        self.children: dict[int, Scope] = {}
        self.starting = False


def at(visit: Visit, error: StatesError) -> StatesError:
    """Add the state's name to `error`; drop its traceback, whose frames would keep the data."""
    name = f"{visit.name!a}"
    cause = error.cause if name in error.cause else f"state {name}: {error.cause}"
    return StatesError(error.name, cause)
