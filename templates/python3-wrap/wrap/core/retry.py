"""How often something is tried: a task, the sending of objects, the search for a replica."""

from __future__ import annotations

import math
from typing import NamedTuple

from wrap.core.deployment import Deployment
from wrap.core.recovery import Attempts, may_follow

#: So often a wrap sends objects straight to their consumer before it asks the coordinator to.
_STRAIGHT = 2
#: How often the coordinator is told that streams broke, if its connection breaks.
REPORTS = 3


class Search(NamedTuple):
    """How often the gateway is asked for a replica, and the pause before it is asked again."""

    looks: float
    pause_s: float


#: For a replica in place of a lost one, which may have to start first: until the deadline.
REPLACEMENT = Search(math.inf, 0.05)
#: For another replica than one that is ending, which has to begin itself if none is soon found.
#: The gateway names any of the replicas each time.
ANOTHER = Search(10, 0.02)


def sends_to(tries: int, consumer: str, coordinator: str, own: str) -> str | None:
    """The wrap that gets objects for a consumer at the next try; None after the last.

    The coordinator passes objects on if it is reached and the consumer is not. Its own objects it
    sends straight alone, because it looks after a consumer that is lost.

    >>> [sends_to(tries, "b", "home", "a") for tries in range(4)]
    ['b', 'b', 'home', None]
    >>> [sends_to(tries, "b", "home", "home") for tries in range(3)]
    ['b', 'b', None]
    """
    if tries < _STRAIGHT:
        return consumer
    return coordinator if tries == _STRAIGHT and coordinator != own else None


def tries_after_refusal(coordinator: str, own: str) -> int:
    """After how many tries objects go on that a wrap has refused because it is ending.

    The coordinator knows where the wrap begins, or will know soon, and begins anew with its tries.
    The others have the coordinator pass their objects on.

    >>> tries_after_refusal("home", "home"), tries_after_refusal("home", "a")
    (0, 2)
    """
    return 0 if coordinator == own else _STRAIGHT


#: What a gateway answers itself if the wrap behind it has ended, or has no replica at the moment.
_BROKEN = frozenset((500, 502, 503))


def has_broken(status: int, is_of_wrap: bool) -> bool:
    """Whether a call through the gateway broke: the answer is an error, and not the wrap's own.

    >>> has_broken(502, is_of_wrap=False), has_broken(500, is_of_wrap=True)
    (True, False)
    >>> has_broken(404, is_of_wrap=False)
    False
    """
    return status in _BROKEN and not is_of_wrap


def is_called_again(losses: int, attempts: int, now: float, deadline: float) -> bool:
    """Whether a wrap is called again after so many calls broke, whose tasks may have begun.

    >>> [is_called_again(losses, 2, now=1.0, deadline=9.0) for losses in (1, 2)]
    [True, False]
    >>> is_called_again(1, 2, now=9.0, deadline=9.0)
    False
    """
    return may_follow(losses - 1, attempts) and now < deadline


class Retries:
    """Counts how often each task has begun again after its worker was lost.

    Args:
        attempts: those of tasks that live streams connect, which count for each of these.
    """

    def __init__(self, deployment: Deployment, attempts: Attempts) -> None:
        self._deployment = deployment
        self._attempts = attempts
        self._begun_again: dict[int, int] = {}

    def are_left(self, number: int, answering: bool) -> bool:
        """Whether a task may run once more; not if the client has got a part of its answer."""
        if answering and number == self._deployment.answers:
            return False
        attempt = self._attempts.ran_in(number)
        if attempt is None:
            attempt = self._begun_again.get(number, 0)
        return may_follow(attempt, self._deployment.attempts)

    def count(self, number: int) -> None:
        """A task begins again."""
        self._begun_again[number] = self._begun_again.get(number, 0) + 1
