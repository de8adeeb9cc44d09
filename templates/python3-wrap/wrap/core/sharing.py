"""Which wraps get the outputs of tasks, if several wraps take part in an execution."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

#: Task -> the wraps that wait for it -> whether each needs its object, not only its end.
Takers = Mapping[int, Mapping[str, bool]]


class Shares(NamedTuple):
    """The destinations of some tasks' outputs."""

    #: Wrap -> the tasks whose ends it is told -> whether the object is sent too.
    messages: dict[str, dict[int, bool]]
    #: The tasks whose objects stay in the results, as the answer to the coordinator.
    in_answer: set[int]
    #: The tasks whose objects leave this wrap.
    leaving: set[int]


class Sharing:
    """What one wrap sends to the other wraps of an execution.

    Args:
        own, coordinator: the names of this wrap, and of the wrap that has the request.
        wanted: tasks whose objects the coordinator awaits, besides the inputs of its own tasks.
    """

    def __init__(self, takers: Takers, own: str, coordinator: str, wanted: Collection[int]) -> None:
        self._takers = takers
        self._own = own
        self._coordinator = coordinator
        self._wanted = wanted

    def needed_by(self, task: int) -> dict[str, bool]:
        """Return the wraps that wait for a task -> whether each needs its object."""
        takers = dict(self._takers[task])
        if task in self._wanted:
            takers[self._coordinator] = True
        return takers

    def sends(self, task: int) -> bool:
        return any(needed and to != self._own for to, needed in self.needed_by(task).items())

    def of(self, tasks: Collection[int], last: bool) -> Shares:
        """Return the destinations of ended tasks' outputs; `last` if no task is left here.

        The coordinator gets the last outputs in the answer, unless other wraps need them too: then
        the answer has to wait.
        """
        others = {to for task in tasks for to in self._takers[task]}
        answers = last and others <= {self._coordinator, self._own}
        shares = Shares({}, set(), set(filter(self.sends, tasks)))
        for task in tasks:
            for to, needed in self.needed_by(task).items():
                if to == self._coordinator and answers:
                    if needed:
                        shares.in_answer.add(task)
                elif to != self._own:
                    shares.messages.setdefault(to, {})[task] = needed
        return shares


def is_needed(takers: Takers, own: str, wanted: Collection[int], task: int) -> bool:
    """Return whether a wrap needs the object of another wrap's task, or its answer is `wanted`."""
    return task in wanted or takers[task].get(own, False)
