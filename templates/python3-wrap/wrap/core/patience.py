"""How long the expressions of an execution may be evaluated."""

from __future__ import annotations

from collections.abc import Callable

from wrap.core.errors import TaskError
from wrap.core.statemachine.errors import StatesError


class Patience:
    """Ends evaluations; it knows no execution, whose values would stay until cycles are looked for.

    Args:
        deadline: until when may be evaluated, in seconds of `clock`.
        clock: returns seconds.
    """

    def __init__(self, deadline: float, clock: Callable[[], float]) -> None:
        self._deadline = deadline
        self._clock = clock
        #: When the event that is handled has evaluated for so long that its state fails.
        self._until = deadline

    def left_s(self) -> float:
        """The seconds until the deadline."""
        return self._deadline - self._clock()

    def renew(self) -> None:
        """Let evaluations go on for half of the time that is left: an event is handled now."""
        now = self._clock()
        self._until = now + (self._deadline - now) / 2

    def look(self) -> None:
        """Raise TaskError if the request's time is over.

        Raise StatesError, which a Catch takes, if an event has evaluated for half of the time that
        was left before it: the Catch has the other half.
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
