"""Which wraps get what the tasks of an execution give, if several wraps take part in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

#: Task -> the wraps that wait for it, and whether each needs its object, or only its end.
Takers = Mapping[int, Mapping[str, bool]]


class Shares(NamedTuple):
    """Where the outputs of some tasks go."""

    #: Wrap -> the tasks whose ends it is told, and whether the object goes with that.
    messages: dict[str, dict[int, bool]]
    #: The tasks whose objects stay in the results, which the coordinator gets as the answer.
    in_answer: set[int]
    #: The tasks whose objects leave this wrap.
    leaving: set[int]


class Sharing:
    """What one wrap sends to the others of an execution.

    Args:
        own, coordinator: the names of this wrap, and of the wrap that has the request.
        wanted: tasks whose objects the coordinator waits for, besides those that its tasks need.
    """

    def __init__(self, takers: Takers, own: str, coordinator: str, wanted: Collection[int]) -> None:
        self._takers = takers
        self._own = own
        self._coordinator = coordinator
        self._wanted = wanted

    def needed_by(self, task: int) -> dict[str, bool]:
        """The wraps that wait for a task, and whether each needs its object."""
        takers = dict(self._takers[task])
        if task in self._wanted:
            takers[self._coordinator] = True
        return takers

    def leaves(self, task: int) -> bool:
        """Whether another wrap needs the object of a task."""
        return any(needed and to != self._own for to, needed in self.needed_by(task).items())

    def of(self, tasks: Collection[int], last: bool) -> Shares:
        """Where the outputs of tasks go that have ended; `last` if no task is left here.

        The coordinator gets the last outputs in the answer, unless the answer has to wait until
        other wraps have theirs.
        """
        others = {to for task in tasks for to in self._takers[task]}
        answers = last and others <= {self._coordinator, self._own}
        shares = Shares({}, set(), set(filter(self.leaves, tasks)))
        for task in tasks:
            for to, needed in self.needed_by(task).items():
                if to == self._coordinator and answers:
                    if needed:
                        shares.in_answer.add(task)
                elif to != self._own:
                    shares.messages.setdefault(to, {})[task] = needed
        return shares


def is_needed(takers: Takers, own: str, wanted: Collection[int], task: int) -> bool:
    """Whether a wrap needs the object of another wrap's task, or its answer is `wanted`."""
    return task in wanted or takers[task].get(own, False)
