"""The limits of retries: of tasks, of sending objects, of the search for a replica."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from wrap.core.recovery import Attempts, may_retry

if TYPE_CHECKING:
    from wrap.core.wrap_spec import Wrap

#: How often a wrap sends objects directly to their consumer, before it asks the coordinator.
STRAIGHT = 2
#: How often a wrap reports broken streams to the coordinator if the connection breaks.
REPORTS = 3


class Search(NamedTuple):
    """How often to ask the gateway for a replica, and the pause between requests in seconds."""

    looks: float
    pause_s: float


#: For the replacement of a lost replica, which may have to start first: until the deadline.
REPLACEMENT = Search(math.inf, 0.05)
#: For an alternative to a replica that is shutting down. If none is found soon, that replica has to
#: begin itself. The gateway may name any replica each time.
ANOTHER = Search(10, 0.02)


def sends_to(tries: int, consumer: str, coordinator: str, own: str) -> str | None:
    """Return the wrap that gets a consumer's objects at the next try; None after the last.

    The last try goes through the coordinator, in case it can reach the consumer. The coordinator
    itself only sends directly, because it replaces a lost consumer.

    >>> [sends_to(tries, "b", "home", "a") for tries in range(4)]
    ['b', 'b', 'home', None]
    >>> [sends_to(tries, "b", "home", "home") for tries in range(3)]
    ['b', 'b', None]
    """
    if tries < STRAIGHT:
        return consumer
    return coordinator if tries == STRAIGHT and coordinator != own else None


def is_called_again(losses: int, attempts: int, now: float, deadline: float) -> bool:
    """Return whether to call a wrap again after `losses` broken calls that may have begun tasks.

    >>> [is_called_again(losses, 2, now=1.0, deadline=9.0) for losses in (1, 2)]
    [True, False]
    >>> is_called_again(1, 2, now=9.0, deadline=9.0)
    False
    """
    return may_retry(losses - 1, attempts) and now < deadline


class Retries:
    """Counts how often each task has begun again after the loss of its worker.

    Args:
        attempts: the attempts of components, which count for each of their tasks.
    """

    def __init__(self, deployment: Wrap, attempts: Attempts) -> None:
        self._deployment = deployment
        self._attempts = attempts
        self._begun_again: dict[int, int] = {}

    def are_left(self, number: int, answering: bool) -> bool:
        """Return whether a task may run again; not if the client has part of its answer."""
        if answering and number == self._deployment.answers:
            return False
        attempt = self._attempts.running_attempt(number)
        if attempt is None:
            attempt = self._begun_again.get(number, 0)
        return may_retry(attempt, self._deployment.attempts)

    def count(self, number: int) -> None:
        self._begun_again[number] = self._begun_again.get(number, 0) + 1
