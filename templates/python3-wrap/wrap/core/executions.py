"""Which executions of other wraps run here, and what becomes of objects that come for the others.

Messages overtake each other. So objects may come before their execution begins, and after it has
ended: then some of its tasks may have to run again, after a loss elsewhere.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

#: How long objects and streams are kept for an execution that has not begun here, in seconds.
EARLY_S = 30.0
#: The same after it has ended all its tasks here.
_AGAIN_S = 5.0
#: So many executions that have ended are remembered.
_ENDED = 10_000

#: An execution that runs here.
Running = TypeVar("Running")
#: What comes with one message.
Given = TypeVar("Given")


class Executions(Generic[Running, Given]):
    """The executions of other wraps, by their numbers."""

    def __init__(self) -> None:
        self._running: dict[int, Running] = {}
        self._early: dict[int, list[Given]] = {}
        #: Whether all its tasks here ended.
        self._ended = OrderedDict[int, bool]()

    @property
    def in_hand(self) -> bool:
        """Whether any runs, or something has come for an execution that may begin."""
        return bool(self._running or self._early)

    def get(self, number: int) -> Running | None:
        """The execution of a number, while it runs."""
        return self._running.get(number)

    def has_ended(self, number: int) -> bool:
        """Whether an execution ran here, and does no more."""
        return number in self._ended

    def expects(self, number: int) -> bool:
        """Whether objects of an execution may be of use: it runs, or may begin."""
        is_known = number in self._running or number in self._early
        return is_known or self._ended.get(number, False)

    def begin(self, number: int, execution: Running) -> list[Given]:
        """An execution begins; what has come for it."""
        self._running[number] = execution
        self._ended.pop(number, None)
        return self._early.pop(number, [])

    def end(self, number: int, execution: Running, is_complete: bool) -> None:
        """An execution has ended, and all its tasks if it `is_complete`.

        Another execution of the number may have begun in its place.
        """
        if self._running.get(number) is execution:
            del self._running[number]
            self._ended[number] = is_complete
            if len(self._ended) > _ENDED:
                self._ended.popitem(last=False)

    def begin_again(self, number: int) -> Running | None:
        """An execution is to begin once more, for which is what comes now; the former one."""
        self._ended.pop(number, None)
        return self._running.pop(number, None)

    def keep(self, number: int, given: Given) -> float | None:
        """Keep what came for an execution that does not run, unless that failed here.

        Returns in how many seconds to `forget` it, if that is not to come anyway.
        """
        if not self._ended.get(number, True):
            return None
        is_first = number not in self._early
        self._early.setdefault(number, []).append(given)
        if not is_first:
            return None
        return _AGAIN_S if number in self._ended else EARLY_S

    def forget(self, number: int) -> None:
        """Keep nothing for an execution any more that has not begun."""
        self._early.pop(number, None)
