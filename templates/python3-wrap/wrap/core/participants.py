"""The other wraps of an execution, as its coordinator knows them: what happens if one is lost.

A participant is asked a question, to run its tasks, and replies once. It is lost if its connection
breaks and its replica is gone, if its replica does not know the execution any more, or if its
replica refuses because it is ending. Then its tasks begin on another replica, as often as the
workflow has attempts. Which tasks begin again is in `wrap.core.recovery`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from wrap.core.deployment import Deployment
from wrap.core.errors import TaskError
from wrap.core.program import Component
from wrap.core.recovery import Again, Tally, may_follow, to_run_again

#: So often a broken connection to a wrap that is still there is made anew in an execution.
_RECONNECTIONS = 5
#: How often participants are told of a loss that do not know the execution: they may be about to
#: begin it, with what was true before.
_TELLINGS = 3


class Reply(Enum):
    """What came of a question."""

    RESULTS = 1
    #: A task has failed.
    FAILURE = 2
    #: The connection broke before an answer.
    BROKEN = 3
    #: The replica does not know the execution any more.
    UNKNOWN = 4
    #: The replica is ending, and has begun nothing.
    REFUSED = 5


class Remedy(Enum):
    """What the coordinator does after a reply."""

    #: It takes in the results, or fails.
    TAKE = 1
    #: Nothing: the participant has been asked again.
    IGNORE = 2
    #: It connects anew; if the replica is gone, it looks for another replica.
    RECONNECT = 3
    #: It has what is needed run again by the same replica.
    REPEAT = 4
    #: It looks for another replica; if there is none, this replica has to begin.
    TURN_TO_ANOTHER = 5


_REMEDIES = {
    Reply.RESULTS: Remedy.TAKE,
    Reply.FAILURE: Remedy.TAKE,
    Reply.BROKEN: Remedy.RECONNECT,
    Reply.UNKNOWN: Remedy.REPEAT,
    Reply.REFUSED: Remedy.TURN_TO_ANOTHER,
}


class Question(NamedTuple):
    """What a participant is asked."""

    #: Of the question, in its execution.
    number: int
    tasks: list[int]
    #: A task of each component that is not in its first attempt, and the attempt.
    attempts: list[tuple[int, int]]


class Participants:
    """The other wraps of one execution.

    Args:
        wanted: tasks whose objects the coordinator waits for, beside those that its own tasks need.
    """

    def __init__(self, workflow: Deployment, wanted: frozenset[int]) -> None:
        #: Wrap -> its question, of those that have not replied.
        self.asked: dict[str, Question] = {}
        self._workflow = workflow
        self._wanted = wanted
        self._questions = 0
        #: The wraps that are lost until they are asked again, and what they were asked for.
        self._losing: dict[str, Collection[int]] = {}
        #: How often each wrap was lost with what it had begun.
        self._losses: dict[str, int] = {}
        self._reconnections = 0
        self._tally = Tally(workflow.attempts)

    def waits(self, here: Collection[int]) -> bool:
        """Whether a wrap has not replied, or an object is missing of those that are `here`."""
        begun = self._questions > 0
        return not begun or bool(self.asked or self._losing) or not self._wanted.issubset(here)

    def late(self) -> TaskError | None:
        """The error at the deadline: which wraps are gone, or have not replied."""
        return self.gone() or _late(self.asked, "did not answer")

    def gone(self) -> TaskError | None:
        """The error if wraps are lost that have not been replaced yet."""
        return _late(self._losing, "ended, and was not there again")

    def attempt_of(self, component: Component) -> int:
        """The attempt that the tasks of a component are in."""
        return self._tally.now.get(component, 0)

    def ask(self, name: str, tasks: Iterable[int]) -> Question:
        """A wrap is asked to run tasks, and told which attempts they are in."""
        self._losing.pop(name, None)
        self._questions += 1
        attempts: list[tuple[int, int]] = []
        for component, attempt in self._tally.now.items():
            self.told(name, component, attempt)
            attempts.append((min(component), attempt))
        question = self.asked[name] = Question(self._questions, sorted(tasks), attempts)
        return question

    def replied(self, name: str, number: int, reply: Reply) -> Remedy:
        """What to do about a reply; results also count if the wrap was asked again meanwhile."""
        question = self.asked.get(name)
        if question is None or question.number != number:
            return Remedy.TAKE if reply is Reply.RESULTS else Remedy.IGNORE
        remedy = _REMEDIES[reply]
        if remedy is not Remedy.TAKE:
            self._losing[name] = self.asked.pop(name).tasks
        return remedy

    def ended(self, name: str, number: int) -> None:
        """A wrap has run all that the question asked for."""
        if name in self.asked and self.asked[name].number == number:
            del self.asked[name]

    def reconnected(self, name: str) -> Collection[int]:
        """A replica is still there; what it is asked for again. Raises TaskError if too often."""
        self._reconnections += 1
        if self._reconnections > _RECONNECTIONS:
            raise TaskError("remote", f"connections to wrap {name} break again and again")
        return self._losing[name]

    def urged(self, name: str) -> Collection[int]:
        """No other replica is there; what one that is ending has to run."""
        return self._losing[name]

    def replaced(self, name: str, is_lost: bool) -> list[str]:
        """A wrap begins elsewhere; the wraps to be told. Raises TaskError after too many losses.

        It `is_lost` if what it had begun is gone.
        """
        self._losses[name] = self._losses.get(name, 0) + is_lost
        if not may_follow(self._losses[name] - 1, self._workflow.attempts):
            raise _ended_while_it_ran(name)
        return [other for other in self.asked if other != name]

    def broke(self, component: Component, attempt: int) -> bool | None:
        """A stream broke; whether another attempt begins by that, None if there is none left."""
        return self._tally.broke(component, attempt)

    def told(self, name: str, component: Component, attempt: int) -> None:
        """A wrap has been told that a component is in an attempt."""
        self._tally.told(name, component, attempt)

    def lost_with(
        self,
        lost: str,
        has: Mapping[str, Collection[int]],
        here: Collection[int],
        broken: Collection[int] = (),
        spared: str = "",
    ) -> Again:
        """What is to run again. Raises TaskError if no attempt is left for that.

        Args:
            lost: the wrap that is lost; empty if streams broke.
            has: participant -> the tasks whose objects it has.
            here: the tasks whose objects the coordinator has.
            broken: the tasks whose streams broke.
            spared: the wrap that had begun nothing, so that no attempt is over with it.
        """
        flow, own = self._workflow, self._workflow.name
        runs = {other: self.asked[other].tasks for other in has if other in self.asked}
        found = to_run_again(
            lost,
            flow.wrap_of,
            flow.graph.needs,
            flow.takers,
            {**has, own: here},
            {**runs, own: flow.tasks},
            self._wanted,
            own,
            flow.components,
            {*flow.live, *map(flow.giver_of, flow.live)},
            broken,
        )
        for place, tasks in found.begin.items():
            for component in {flow.components[task] for task in tasks if task in flow.components}:
                if place != spared and self._tally.lost(place, component) is None:
                    raise _ended_while_it_ran(lost or place)
        return found

    def to_be_told(
        self, repeat: Collection[int], has: Collection[str]
    ) -> dict[Component, list[str]]:
        """Component -> the wraps that are to be told that its tasks run again.

        They are among those that `has`, which still take part.
        """
        flow, found = self._workflow, dict[Component, list[str]]()
        for component in {flow.components[task] for task in repeat}:
            wraps = {flow.wrap_of[task] for task in component.intersection(repeat)}
            untold = [
                each
                for each in wraps.intersection(has)
                if each != flow.name and not self._tally.knows(each, component)
            ]
            if untold:
                found[component] = untold
        return found

    def begin_again(
        self, lost: str, begin: Mapping[str, Collection[int]]
    ) -> dict[str, Collection[int]]:
        """The wraps to be asked again, and what for; of what they had before nothing is awaited.

        A wrap that is lost too is asked when it has been replaced.
        """
        again: dict[str, Collection[int]] = {}
        for other, tasks in begin.items():
            if other == lost or other not in self._losing:
                again[other] = tasks
                self.asked.pop(other, None)
        self._losing.pop(lost, None)
        self._losing.update(again)
        return again


class Standing(Enum):
    """What an execution is in a participant."""

    RUNS = 1
    #: All its tasks there have ended, and nothing was kept.
    ENDED = 2
    UNKNOWN = 3


class Telling:
    """Participants that are told of a loss, or of another attempt, until all have heard of it."""

    def __init__(self, names: Iterable[str]) -> None:
        #: Participant -> the tasks whose objects it has, but for those that have ended.
        self.has: dict[str, set[int]] = {name: set() for name in names}
        #: Those that are still to be told.
        self.left = set(self.has)
        #: Those that have said that they run the execution.
        self.running: set[str] = set()
        self._rounds = 0

    @property
    def is_over(self) -> bool:
        """Whether all have heard, or have been told often enough."""
        return not self.left or self._rounds >= _TELLINGS

    def heard(self, standings: Mapping[str, tuple[Standing, Collection[int]]]) -> None:
        """A round is over; the standing of each that has answered, and the tasks that it has."""
        self._rounds += 1
        for name, (standing, here) in standings.items():
            if standing is Standing.UNKNOWN:
                continue
            self.left.discard(name)
            if standing is Standing.ENDED:
                self.has.pop(name, None)
            else:
                self.has[name] = set(here)
                self.running.add(name)


def _ended_while_it_ran(name: str) -> TaskError:
    return TaskError("remote", f"wrap {name} ended while it ran").located(None, name)


def _late(wraps: Iterable[str], what: str) -> TaskError | None:
    names = sorted(wraps)
    if not names:
        return None
    error = TaskError("timeout", f"{', '.join(names)} {what} in time", status=504)
    return error.located(None, names[0])
