"""How long the expressions of an execution may be evaluated."""

from __future__ import annotations

from collections.abc import Callable

from wrap.core.errors import TaskError
from wrap.core.statemachine.errors import StatesError


class Patience:
    """Ends evaluations. A reference to the execution would delay freeing its values."""

    def __init__(self, deadline: float, clock: Callable[[], float]) -> None:
        self._deadline = deadline
        self._clock = clock
        #: When the evaluation of the current event fails its state.
        self._until = deadline

    def left_s(self) -> float:
        """Return the seconds until the deadline."""
        return self._deadline - self._clock()

    def renew(self) -> None:
        """Grant the current event half of the time that is left."""
        now = self._clock()
        self._until = now + (self._deadline - now) / 2

    def look(self) -> None:
        """Raise TaskError after the deadline.

        Raise StatesError if an event has used half of the time that was left before it. A Catch can
        handle that error: it has the other half.
        """
        now = self._clock()
        if now >= self._deadline:
            message = "the request's time was over while expressions of the workflow were evaluated"
            raise TaskError("timeout", message, status=504)
        if now >= self._until:
            self.renew()
            half = "half of the request's time was over"
            cause = f"{half} while expressions of the workflow were evaluated"
            raise StatesError("States.Timeout", cause)
