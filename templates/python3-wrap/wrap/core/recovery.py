"""Which tasks run again after a loss: those whose outputs are needed and gone.

A live stream cannot be read twice. So tasks that live streams connect restart together, from their
original inputs. Each such component of tasks counts its own attempts, from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from wrap.core.program import Component

#: The code of the error of a task whose stream broke off.
STREAM_LOST = "stream-lost"


class Rerun(NamedTuple):
    """The tasks to run again."""

    #: Wrap -> the tasks that it begins with, after it has discarded the execution.
    begin: dict[str, set[int]]
    #: Tasks of components that their wraps repeat with the objects that they have.
    repeat: set[int]


def tasks_to_rerun(
    lost: str,
    wrap_of: Mapping[int, str],
    needs: Callable[[int], Collection[int]],
    takers: Mapping[int, Collection[str]],
    objects_at: Mapping[str, Collection[int]],
    runs: Mapping[str, Collection[int]],
    wanted: Collection[int],
    coordinator: str,
    components: Mapping[int, Component] = {},
    read: Collection[int] = (),
    broken: Collection[int] = (),
) -> Rerun:
    """Return the tasks to run again after a loss, and those to start for the first time.

    Args:
        lost: the wrap that has lost all state of the execution; empty if no wrap is lost.
        wrap_of, needs, takers: for each task: its wrap, the tasks that have to end before it, the
            other wraps that wait for it.
        objects_at: wrap -> the ended tasks that it knows of and whose objects it has. A missing
            wrap is lost too, or has ended all its tasks and kept nothing.
        runs: wrap -> the tasks that it runs or has run: all its own unless it began again. A wrap
            that has to run further tasks begins again, with all of them.
        wanted: the tasks whose objects the coordinator awaits, besides the inputs of its own tasks.
        components: task -> its component, for tasks that live streams connect.
        read: the tasks of components whose streams other tasks read.
        broken: tasks that were lost with a process, or whose streams broke.

    A chain over three wraps: b's object has reached its consumer, c's has not.

    >>> chain = {1: [], 2: [1], 3: [2], 4: [3]}
    >>> places = {1: "home", 2: "far", 3: "far", 4: "home"}
    >>> takers = {1: ["far"], 2: [], 3: ["home"], 4: []}
    >>> objects, runs = {"home": {1}}, {"home": {1, 4}}
    >>> tasks_to_rerun("far", places, chain.__getitem__, takers, objects, runs, [4], "home").begin
    {'far': {2, 3}}
    """
    used = {needed for task in wrap_of for needed in needs(task)}.union(wanted, read)

    missed: list[int] = []
    for task, place in wrap_of.items():
        waits = {*takers[task], coordinator} if task in wanted else takers[task]
        if place == lost and _is_missed(task, wrap_of, waits, objects_at, used, components):
            missed.append(task)
    return _with_dependencies([*broken, *missed], wrap_of, needs, runs, components)


def _is_missed(
    task: int,
    wrap_of: Mapping[int, str],
    waits: Collection[str],
    objects_at: Mapping[str, Collection[int]],
    used: Collection[int],
    components: Mapping[int, Component],
) -> bool:
    """Return whether a task of a lost wrap has to run again for the wraps in `waits`."""
    missing = any(task not in objects_at[taker] for taker in waits if taker in objects_at)
    goes_on = any(
        each not in objects_at.get(wrap_of[each], wrap_of) for each in components.get(task, ())
    )
    # No wrap records whether a task without users has ended, so it runs again.
    return missing or goes_on or task not in used


def _with_dependencies(
    gone: list[int],
    wrap_of: Mapping[int, str],
    needs: Callable[[int], Collection[int]],
    runs: Mapping[str, Collection[int]],
    components: Mapping[int, Component],
) -> Rerun:
    """Return the tasks in `gone` and all tasks that have to run again for them."""
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
            # A wrap that runs the needed task will send its object, or sends it again.
            gone += [each for each in needs(task) if each not in runs.get(wrap_of[each], ())]
    return Rerun(found, repeated.difference(*found.values()))


def connected(
    readers: Mapping[int, Iterable[int]], giver_of: Callable[[int], int], emitted: Iterable[int]
) -> dict[int, Component]:
    """Return task -> its component, for tasks that read or write live streams.

    Args:
        readers: output -> the tasks that read it while it is written.
        giver_of: returns the task of an output.
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


def may_retry(attempt: int, most: int) -> bool:
    """Return whether another attempt may follow attempt number `attempt` (from 0) of `most`."""
    return attempt + 1 < most


class Attempts:
    """The attempts of components in one wrap.

    A task runs in the attempt that its component had when the task began. In the next attempt, all
    tasks of the component that have begun here begin again. They wait until no task of an earlier
    attempt runs. So a task never runs twice at once.
    """

    def __init__(self, components: Mapping[int, Component]) -> None:
        self.components = components
        self._now: dict[Component, int] = {}
        self._begun: set[int] = set()
        #: The attempt of each task that runs.
        self._running: dict[int, int] = {}
        #: Component -> the tasks that restart when all tasks of earlier attempts have answered.
        self._waiting: dict[Component, set[int]] = {}

    @property
    def pending(self) -> bool:
        """Return whether a task of a component runs or is about to run again."""
        return bool(self._running or self._waiting)

    def running_attempt(self, task: int) -> int | None:
        """Return the attempt that a task runs in; None if it does not run."""
        return self._running.get(task)

    def now(self, task: int) -> int:
        """Return the current attempt of the task's component."""
        return self._now.get(self.components[task], 0)

    def begin(self, tasks: Iterable[int]) -> None:
        """Record the first start of tasks. Tasks outside components and known tasks are ignored."""
        for task in tasks:
            if task in self.components and task not in self._begun:
                self._begun.add(task)
                self._running[task] = self.now(task)

    def attempt_of(self, task: int) -> int | None:
        """Return the attempt of a task that opens a stream; None if that attempt is over.

        The stream may open before the task is recorded as begun here.
        """
        self.begin([task])
        attempt = self._running.get(task)
        return attempt if attempt == self.now(task) else None

    def ended(self, task: int) -> int | None:
        """Record that a task has stopped, and return its attempt; None if it did not run."""
        return self._running.pop(task, None)

    def next(self, task: int, attempt: int) -> bool:
        """Move the task's component to `attempt`; return whether the attempt is new."""
        component = self.components[task]
        if attempt <= self._now.get(component, 0):
            return False
        self._now[component] = attempt
        if again := component & self._begun:
            self._waiting[component] = set(again)
        return True

    def due(self) -> list[int]:
        """Return the tasks that restart now, and record them as running."""
        found: list[int] = []
        for component, tasks in list(self._waiting.items()):
            now = self._now[component]
            if all(self._running.get(task, now) == now for task in component):
                del self._waiting[component]
                self._running.update(dict.fromkeys(tasks, now))
                found += sorted(tasks)
        return found


class AttemptCounts:
    """The coordinator's count of attempts, in which one loss counts once.

    A lost wrap breaks the attempts of its streams at both ends. The reports may reach the
    coordinator in any order.

    Args:
        most: the maximum number of attempts.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.current: dict[Component, int] = {}
        self._notified: dict[tuple[str, Component], int] = {}

    def record_notified(self, wrap: str, component: Component, attempt: int) -> None:
        self._notified[wrap, component] = attempt

    def is_notified(self, wrap: str, component: Component) -> bool:
        return self._notified.get((wrap, component), 0) == self.current.get(component, 0)

    def count_break(self, component: Component, attempt: int) -> bool | None:
        """Return whether another attempt begins after a break; None if no attempt is left."""
        if attempt < self.current.get(component, 0):
            return False
        if not may_retry(attempt, self._most):
            return None
        self.current[component] = attempt + 1
        return True

    def count_loss(self, wrap: str, component: Component) -> bool | None:
        """Count the loss of all that a wrap had begun in a component; returns as `count_break`."""
        return self.count_break(component, self._notified.get((wrap, component), 0))
