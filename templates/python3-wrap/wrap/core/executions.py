"""The executions here in which other wraps take part, and the objects that arrive early.

Messages overtake each other. So objects may arrive before their execution begins, or after it has
ended: then some of its tasks may have to run again, after a loss elsewhere.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

#: How long objects and streams are kept for an execution that has not begun here, in seconds.
EARLY_S = 30.0
#: The same for an execution that has ended all its tasks here, in seconds.
_AGAIN_S = 5.0
#: How many ended executions are remembered.
_ENDED = 10_000

#: An execution that runs here.
Running = TypeVar("Running")
#: The objects of one message.
Given = TypeVar("Given")


class DistributedExecutions(Generic[Running, Given]):
    """The executions here in which other wraps take part, by their numbers."""

    def __init__(self) -> None:
        self._running: dict[int, Running] = {}
        self._early: dict[int, list[Given]] = {}
        #: Ended execution -> whether all its tasks here ended.
        self._ended = OrderedDict[int, bool]()

    @property
    def in_hand(self) -> bool:
        """Whether an execution runs, or objects wait for an execution that may begin."""
        return bool(self._running or self._early)

    def get(self, number: int) -> Running | None:
        return self._running.get(number)

    def has_ended(self, number: int) -> bool:
        return number in self._ended

    def expects(self, number: int) -> bool:
        """Return whether objects of an execution may be useful: it runs, or may begin."""
        is_known = number in self._running or number in self._early
        return is_known or self._ended.get(number, False)

    def begin(self, number: int, execution: Running) -> list[Given]:
        """Register an execution, and return the objects that arrived early."""
        self._running[number] = execution
        self._ended.pop(number, None)
        return self._early.pop(number, [])

    def end(self, number: int, execution: Running, is_complete: bool) -> None:
        """Unregister an execution; `is_complete` if all its tasks have ended.

        Another execution of the number may have begun in its place.
        """
        if self._running.get(number) is execution:
            del self._running[number]
            self._ended[number] = is_complete
            if len(self._ended) > _ENDED:
                self._ended.popitem(last=False)

    def begin_again(self, number: int) -> Running | None:
        """Unregister and return an execution that will begin again; new objects are kept."""
        self._ended.pop(number, None)
        return self._running.pop(number, None)

    def keep(self, number: int, given: Given) -> float | None:
        """Keep objects for an execution that does not run, unless it failed here.

        Returns the seconds after which to call `forget`; None if no call is needed.
        """
        if not self._ended.get(number, True):
            return None
        is_first = number not in self._early
        self._early.setdefault(number, []).append(given)
        if not is_first:
            return None
        return _AGAIN_S if number in self._ended else EARLY_S

    def forget(self, number: int) -> None:
        """Drop the objects of an execution that has not begun."""
        self._early.pop(number, None)
