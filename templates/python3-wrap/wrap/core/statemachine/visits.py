"""What a state machine is in: scopes, the states entered in them, and what is to begin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .datasets import Dataset
from .errors import StatesError
from .map_run import MapRun

#: The longest time that can be waited for: the most seconds that the language lets a state have.
MOST_SECONDS = 99_999_999


def chosen_task(state: str, function: str) -> str:
    """The task that runs a function which a Task state chooses at run time."""
    return f"{state}.{function}"


#: Numbers of the begins and delays by whose ends something came about.
After = frozenset[int]
#: The name of the state that follows, None at the end of its chain, and its input.
Following = tuple[str | None, Any]


class Begin(NamedTuple):
    """A task that is to begin; `timeout_s` is None where it has no limit of its own."""

    number: int
    task: str
    given: Any
    timeout_s: float | None
    after: After


class Delay(NamedTuple):
    """A time that is to pass: that of a Wait state, or before a task is tried again."""

    number: int
    seconds: float
    after: After


class Step(NamedTuple):
    """What an event leads to; nobody awaits the numbers in `dropped` any more.

    What an event both begins and drops is in none of the lists.
    """

    begins: list[Begin]
    delays: list[Delay]
    dropped: list[int]


class Leaving(NamedTuple):
    """What a state ends with: its output, and the variables that are assigned then."""

    output: Any
    assigned: Mapping[str, Any]


class Scope:
    """One run through the states of a machine, of a branch, or of an item of a Map.

    It and its visit know each other, but not after its end: what states hand on may be megabytes,
    and would stay until Python looks for cycles.
    """

    __slots__ = ("index", "item", "parent", "passed", "states", "variables", "visit")

    def __init__(
        self, definition: Mapping[str, Any], parent: Visit | None, index: int, item: Any
    ) -> None:
        self.states: Mapping[str, Any] = definition["States"]
        self.parent = parent
        self.index = index
        #: The values of variables, those of the scopes around it included.
        self.variables: Mapping[str, Any] = {} if parent is None else parent.scope.variables
        #: What ``$$.Map`` is here.
        self.item = item
        self.visit: Visit | None = None
        #: States that have been entered since one of them, or of the scopes within, had to wait.
        self.passed = 0

    def waits(self) -> None:
        """Something is awaited in this scope, and so in those around it."""
        scope: Scope | None = self
        while scope is not None:
            scope.passed = 0
            scope = None if scope.parent is None else scope.parent.scope


class Visit:
    """A state that has been entered, until it is left."""

    __slots__ = (
        *("after", "beats", "children", "dataset", "ends", "entered", "failed", "given", "items"),
        *("known", "left", "limit", "name", "number", "origin", "raw", "results", "retried"),
        *("run", "running", "scope", "source", "started", "starting", "state"),
    )

    # Of what begins scopes: what they get, and the values of expressions that they share; how many
    # may run at once, have begun, run, have not ended; what they answer, and by whose ends they
    # ended.
    given: Any
    known: dict[str, Any]
    items: Sequence[Any]
    limit: float
    started: int
    running: int
    left: int
    results: list[Any]
    ends: set[int]
    # Of a Map: its items, where `items` may be batches of them, and what `$$.Map.Item.Source` is
    # unless the items are of a dataset; how many have failed.
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
        #: The begin or delay that it awaits.
        self.number: int | None = None
        #: How often each of its retriers has been used.
        self.retried: dict[int, int] = {}
        #: Whether the task is given up when its heartbeat is late, not when its time is over.
        self.beats = False
        #: The run of a distributed Map.
        self.run: MapRun | None = None
        self.children: dict[int, Scope] = {}
        self.starting = False


def at(visit: Visit, error: StatesError) -> StatesError:
    """What has failed in a state, with its name; without a traceback, whose frames have it all."""
    name = f"{visit.name!a}"
    cause = error.cause if name in error.cause else f"state {name}: {error.cause}"
    return StatesError(error.name, cause)
