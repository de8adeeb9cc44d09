"""Which tasks are run again where something was lost: those whose outputs are needed and gone.

What was read of a stream while it was written cannot be read again. So tasks that live streams
connect begin again together, from the objects that they began with: each such component of tasks
has an attempt of its own, by a number from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from wrap.core.program import Component

#: The code of the error of a task whose stream broke off.
STREAM_LOST = "stream-lost"


class Again(NamedTuple):
    """What is to be run again."""

    #: Wrap -> its tasks that it is to begin with, as it keeps nothing of the execution.
    begin: dict[str, set[int]]
    #: Tasks of components that their wraps run again from what they have.
    repeat: set[int]


def to_run_again(
    lost: str,
    wrap_of: Mapping[int, str],
    needs: Callable[[int], Collection[int]],
    takers: Mapping[int, Collection[str]],
    has: Mapping[str, Collection[int]],
    runs: Mapping[str, Collection[int]],
    wanted: Collection[int],
    coordinator: str,
    components: Mapping[int, Component] = {},
    read: Collection[int] = (),
    broken: Collection[int] = (),
) -> Again:
    """What is to be run again, or for the first time, where something was lost.

    Args:
        lost: the wrap that has nothing any more of the execution; empty where there is none.
        wrap_of, needs, takers: of every task: its wrap, the tasks that have to end before it, the
            other wraps that wait for it.
        has: of every wrap that still takes part, the tasks that have ended as far as it knows, and
            whose objects it has. A wrap that is not here has ended all its tasks, and kept nothing,
            or is lost too.
        runs: of every such wrap the tasks that it runs, or has run: all of its own, if it has not
            begun once more. One that has to run others too begins again, with all of them.
        wanted: the tasks whose objects the coordinator waits for, beside those that its own tasks
            need.
        components: task -> its component, of those that live streams connect with others.
        read: those of them whose streams others read.
        broken: tasks that were lost with a process, or whose streams broke.

    A chain over three wraps: b's object has reached its consumer, c's has not.

    >>> chain = {1: [], 2: [1], 3: [2], 4: [3]}
    >>> places = {1: "home", 2: "far", 3: "far", 4: "home"}
    >>> takers = {1: ["far"], 2: [], 3: ["home"], 4: []}
    >>> has = {"home": {1}}
    >>> runs = {"home": {1, 4}}
    >>> to_run_again("far", places, chain.__getitem__, takers, has, runs, [4], "home").begin
    {'far': {2, 3}}
    """
    used = {needed for task in wrap_of for needed in needs(task)}.union(wanted, read)

    missed: list[int] = []
    for task, place in wrap_of.items():
        waits = {*takers[task], coordinator} if task in wanted else takers[task]
        if place == lost and _is_missed(task, wrap_of, waits, has, used, components):
            missed.append(task)
    return _with_what_they_need([*broken, *missed], wrap_of, needs, runs, components)


def _is_missed(
    task: int,
    wrap_of: Mapping[int, str],
    waits: Collection[str],
    has: Mapping[str, Collection[int]],
    used: Collection[int],
    components: Mapping[int, Component],
) -> bool:
    """Whether a task of a wrap that was lost has to run again, as the wraps in `waits` need it."""
    missing = any(task not in has[taker] for taker in waits if taker in has)
    goes_on = any(each not in has.get(wrap_of[each], wrap_of) for each in components.get(task, ()))
    # Of what nobody uses nobody knows whether it ended.
    return missing or goes_on or task not in used


def _with_what_they_need(
    gone: list[int],
    wrap_of: Mapping[int, str],
    needs: Callable[[int], Collection[int]],
    runs: Mapping[str, Collection[int]],
    components: Mapping[int, Component],
) -> Again:
    """The tasks in `gone`, and all that has to run again for them; as in `to_run_again`."""
    found: dict[str, set[int]] = {}
    repeated: set[int] = set()
    while gone:
        task = gone.pop()
        place = wrap_of[task]
        if place not in found and task in runs.get(place, ()):
            if task not in repeated:
                repeated.add(task)
                gone += components.get(task, ())
            continue
        its = found.setdefault(place, set())
        if task not in its:
            its.add(task)
            gone += runs.get(place, ())
            gone += components.get(task, ())
            # A wrap that runs it sends it again, or will have it.
            gone += [each for each in needs(task) if each not in runs.get(wrap_of[each], ())]
    return Again(found, repeated.difference(*found.values()))


def connected(
    readers: Mapping[int, Iterable[int]], giver_of: Callable[[int], int], emitted: Iterable[int]
) -> dict[int, Component]:
    """Task -> its component, of those that read or write live streams.

    Args:
        readers: output -> the tasks that read it while it is written.
        giver_of: the task that gives an output.
        emitted: the outputs that have numbers of their own.

    >>> sorted(map(sorted, set(connected({0: [1], 2: [3, 4]}, lambda each: each, []).values())))
    [[0, 1], [2, 3, 4]]
    """
    found: dict[int, Component] = {}

    def join(tasks: Iterable[int]) -> None:
        members = frozenset[int]().union(*(found.get(each, {each}) for each in tasks))
        found.update(dict.fromkeys(members, members))

    for output, tasks in readers.items():
        join((output, giver_of(output), *tasks))
    for output in emitted:
        if giver_of(output) in found:
            join((output, giver_of(output)))
    return found


def may_follow(attempt: int, most: int) -> bool:
    """Whether another attempt may follow one of that number, if there may be `most`.

    >>> [may_follow(attempt, 2) for attempt in range(3)]
    [True, False, False]
    """
    return attempt + 1 < most


class Attempts:
    """The attempts of components in one wrap.

    A task is in the attempt that its component had when it began. With the next attempt all of the
    component begin again that have begun here, as soon as none runs any more that has begun before:
    so a task never runs twice at once.

    Args:
        components: task -> its component.
    """

    def __init__(self, components: Mapping[int, Component]) -> None:
        self.components = components
        self._now: dict[Component, int] = {}
        self._begun: set[int] = set()
        #: The attempt of each task that runs.
        self._running: dict[int, int] = {}
        #: What begins again when all has answered that was in an attempt before.
        self._waiting: dict[Component, set[int]] = {}

    @property
    def pending(self) -> bool:
        """Whether any task of a component runs, or is about to run again."""
        return bool(self._running or self._waiting)

    def ran_in(self, task: int) -> int | None:
        """The attempt that a task is in which runs."""
        return self._running.get(task)

    def now(self, task: int) -> int:
        """The attempt of its component."""
        return self._now.get(self.components[task], 0)

    def begin(self, tasks: Iterable[int]) -> None:
        """Tasks begin for the first time, if others do not know it already."""
        for task in tasks:
            if task in self.components and task not in self._begun:
                self._begun.add(task)
                self._running[task] = self.now(task)

    def attempt_of(self, task: int) -> int | None:
        """The attempt that a task is in which opens a stream; None if that attempt is over.

        It may have begun before that is known here.
        """
        self.begin([task])
        attempt = self._running.get(task)
        return attempt if attempt == self.now(task) else None

    def ended(self, task: int) -> int | None:
        """A task runs no more; the attempt that it was in, if it ran."""
        return self._running.pop(task, None)

    def next(self, task: int, attempt: int) -> bool:
        """Its component is in that attempt from now on; whether that is news."""
        component = self.components[task]
        if attempt <= self._now.get(component, 0):
            return False
        self._now[component] = attempt
        if again := component & self._begun:
            self._waiting[component] = set(again)
        return True

    def due(self) -> list[int]:
        """The tasks that begin again now."""
        found: list[int] = []
        for component, tasks in list(self._waiting.items()):
            now = self._now[component]
            if all(self._running.get(task, now) == now for task in component):
                del self._waiting[component]
                self._running.update(dict.fromkeys(tasks, now))
                found += sorted(tasks)
        return found


class Tally:
    """The attempts of components as the coordinator counts them, so that one loss counts once.

    A lost wrap breaks the attempts of its streams at both ends. The coordinator may hear of these
    in any order.

    Args:
        most: how many attempts there are.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.now: dict[Component, int] = {}
        self._of: dict[tuple[str, Component], int] = {}

    def told(self, wrap: str, component: Component, attempt: int) -> None:
        """A wrap has been told of an attempt, and has it."""
        self._of[wrap, component] = attempt

    def knows(self, wrap: str, component: Component) -> bool:
        """Whether a wrap has been told of the attempt that is."""
        return self._of.get((wrap, component), 0) == self.now.get(component, 0)

    def broke(self, component: Component, attempt: int) -> bool | None:
        """An attempt broke; whether another one begins by that, None if there is none left."""
        if attempt < self.now.get(component, 0):
            return False
        if not may_follow(attempt, self._most):
            return None
        self.now[component] = attempt + 1
        return True

    def lost(self, wrap: str, component: Component) -> bool | None:
        """A wrap was lost with all that it had begun in a component; as `broke`."""
        return self.broke(component, self._of.get((wrap, component), 0))
