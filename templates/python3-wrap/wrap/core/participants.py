"""The other wraps of an execution from the coordinator's side, and the recovery from their loss.

The coordinator sends a participant a question: to run its tasks. The participant replies once. A
participant is lost if its connection breaks and its replica is gone. It is also lost if its replica
no longer has the execution, or is shutting down and refuses. Its tasks then begin on another
replica, at most `attempts` times. `wrap.core.recovery` finds the tasks to run again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from wrap.core.errors import TaskError
from wrap.core.program import Component
from wrap.core.recovery import AttemptCounts, Rerun, may_retry, tasks_to_rerun

if TYPE_CHECKING:
    from wrap.core.wrap_spec import Wrap

#: How often an execution may reconnect to wraps that still exist.
_RECONNECTIONS = 5
#: How many rounds of notices about a loss go to participants without the execution. They may be
#: about to begin it, from the state before the loss.
_NOTICE_ROUNDS = 3


class Reply(Enum):
    """The outcome of a question."""

    RESULTS = 1
    #: A task has failed.
    FAILURE = 2
    #: The connection broke before an answer: reconnect; if the replica is gone, look for another.
    BROKEN = 3
    #: The replica no longer has the execution: it has to run the needed tasks again.
    UNKNOWN = 4
    #: The replica is shutting down and has begun nothing: look for another; if none exists, force
    #: this replica to begin.
    REFUSED = 5


class Question(NamedTuple):
    """A request to a participant to run tasks."""

    #: The number of the question within its execution.
    number: int
    tasks: list[int]
    #: One task of each component past its first attempt, and its attempt.
    attempts: list[tuple[int, int]]


class Participants:
    """The other wraps of one execution.

    Args:
        wanted: tasks whose objects the coordinator awaits, besides the inputs of its own tasks.
    """

    def __init__(self, workflow: Wrap, wanted: frozenset[int]) -> None:
        #: Wrap -> its question, for wraps that have not replied.
        self.asked: dict[str, Question] = {}
        self._workflow = workflow
        self._wanted = wanted
        self._questions = 0
        #: Lost wrap -> the tasks of its last question, until the wrap is asked again.
        self._losing: dict[str, Collection[int]] = {}
        #: How often each wrap was lost with tasks that it had begun.
        self._losses: dict[str, int] = {}
        self._reconnections = 0
        #: The attempts of the components that live streams connect.
        self.attempts = AttemptCounts(workflow.attempts)

    def is_waiting(self, here: Collection[int]) -> bool:
        """Return whether a wrap has not replied, or a wanted object is not `here`."""
        begun = self._questions > 0
        return not begun or bool(self.asked or self._losing) or not self._wanted.issubset(here)

    def timeout_error(self) -> TaskError | None:
        """Return the error at the deadline: which wraps are gone, or have not replied."""
        return self.loss_error() or _late(self.asked, "did not answer")

    def loss_error(self) -> TaskError | None:
        """Return the error if lost wraps have not been replaced yet; None if there are none."""
        return _late(self._losing, "ended, and was not there again")

    def attempt_of(self, component: Component) -> int:
        return self.attempts.current.get(component, 0)

    def ask(self, name: str, tasks: Iterable[int]) -> Question:
        """Return a new question to a wrap: its tasks and their attempts."""
        self._losing.pop(name, None)
        self._questions += 1
        attempts: list[tuple[int, int]] = []
        for component, attempt in self.attempts.current.items():
            self.attempts.record_notified(name, component, attempt)
            attempts.append((min(component), attempt))
        question = self.asked[name] = Question(self._questions, sorted(tasks), attempts)
        return question

    def replied(self, name: str, number: int, reply: Reply) -> bool:
        """Record a reply; return whether it counts, as results do even after a newer question."""
        question = self.asked.get(name)
        if question is None or question.number != number:
            return reply is Reply.RESULTS
        if reply not in (Reply.RESULTS, Reply.FAILURE):
            self._losing[name] = self.asked.pop(name).tasks
        return True

    def ended(self, name: str, number: int) -> None:
        """Record that a wrap has run all tasks of a question."""
        if name in self.asked and self.asked[name].number == number:
            del self.asked[name]

    def reconnected(self, name: str) -> Collection[int]:
        """Return the tasks to ask a replica for again. Raises TaskError after the last retry."""
        self._reconnections += 1
        if self._reconnections > _RECONNECTIONS:
            raise TaskError("remote", f"connections to wrap {name} break again and again")
        return self._losing[name]

    def tasks_to_force(self, name: str) -> Collection[int]:
        """Return the tasks that a wrap has to run despite its shutdown: it has no other replica."""
        return self._losing[name]

    def replaced(self, name: str, is_lost: bool) -> list[str]:
        """Return the wraps to notify of a replacement. Raises TaskError after too many losses.

        It `is_lost` if the tasks that the wrap had begun are gone.
        """
        self._losses[name] = self._losses.get(name, 0) + is_lost
        if not may_retry(self._losses[name] - 1, self._workflow.attempts):
            raise _ended_while_it_ran(name)
        return [other for other in self.asked if other != name]

    def rerun_after_loss(
        self,
        lost: str,
        objects_at: Mapping[str, Collection[int]],
        here: Collection[int],
        broken: Collection[int] = (),
        not_begun: str = "",
    ) -> Rerun:
        """Return the tasks to run again. Raises TaskError if no attempt is left for them.

        Args:
            lost, objects_at, broken: see `tasks_to_rerun`.
            here: the tasks whose objects the coordinator has.
            not_begun: the wrap that had begun nothing, so that its loss ends no attempt.
        """
        flow, own = self._workflow, self._workflow.name
        runs = {other: self.asked[other].tasks for other in objects_at if other in self.asked}
        found = tasks_to_rerun(
            lost,
            wrap_of=flow.wrap_of,
            needs=flow.graph.needs,
            takers=flow.takers,
            objects_at={**objects_at, own: here},
            runs={**runs, own: flow.tasks},
            wanted=self._wanted,
            coordinator=own,
            components=flow.components,
            read={*flow.live, *map(flow.giver_of, flow.live)},
            broken=broken,
        )
        for place, tasks in found.begin.items():
            for component in {flow.components[task] for task in tasks if task in flow.components}:
                if place != not_begun and self.attempts.count_loss(place, component) is None:
                    raise _ended_while_it_ran(lost or place)
        return found

    def wraps_to_notify(
        self, repeat: Collection[int], objects_at: Collection[str]
    ) -> dict[Component, list[str]]:
        """Return component -> the wraps to notify that its tasks run again.

        Only wraps in `objects_at` still take part.
        """
        flow, found = self._workflow, dict[Component, list[str]]()
        for component in {flow.components[task] for task in repeat}:
            wraps = {flow.wrap_of[task] for task in component.intersection(repeat)}
            unnotified = [
                each
                for each in wraps.intersection(objects_at)
                if each != flow.name and not self.attempts.is_notified(each, component)
            ]
            if unnotified:
                found[component] = unnotified
        return found

    def begin_again(
        self, lost: str, begin: Mapping[str, Collection[int]]
    ) -> dict[str, Collection[int]]:
        """Return the wraps to ask again, each with its tasks, and forget their old questions.

        If such a wrap is lost too, it is asked after its replacement.
        """
        again: dict[str, Collection[int]] = {}
        for other, tasks in begin.items():
            if other == lost or other not in self._losing:
                again[other] = tasks
                self.asked.pop(other, None)
        self._losing.pop(lost, None)
        self._losing.update(again)
        return again


class NoticeRounds:
    """The rounds in which participants are told of a loss or a new attempt, until all confirm."""

    def __init__(self, names: Iterable[str]) -> None:
        #: Participant -> the tasks whose objects it has; without participants that have ended.
        self.objects_at: dict[str, set[int]] = {name: set() for name in names}
        self.unconfirmed = set(self.objects_at)
        #: The participants that have confirmed that they run the execution.
        self.running: set[str] = set()
        self._rounds = 0

    @property
    def is_over(self) -> bool:
        """Return whether all participants have confirmed, or all rounds are used up."""
        return not self.unconfirmed or self._rounds >= _NOTICE_ROUNDS

    def record_answers(self, answers: Mapping[str, Collection[int] | None]) -> None:
        """Record the tasks of each participant that answered a round and knows the execution.

        None if all its tasks there have ended, and their objects are dropped.
        """
        self._rounds += 1
        for name, here in answers.items():
            self.unconfirmed.discard(name)
            if here is None:
                self.objects_at.pop(name, None)
            else:
                self.objects_at[name] = set(here)
                self.running.add(name)


def _ended_while_it_ran(name: str) -> TaskError:
    return TaskError("remote", f"wrap {name} ended while it ran").located(None, name)


def _late(wraps: Iterable[str], what: str) -> TaskError | None:
    names = sorted(wraps)
    if not names:
        return None
    error = TaskError("timeout", f"{', '.join(names)} {what} in time", status=504)
    return error.located(None, names[0])
