"""How often a task may begin: after the loss of its worker, or with what its streams connect."""

from __future__ import annotations

from wrap.core.deployment import Deployment
from wrap.core.recovery import Attempts


class Retries:
    """Counts how often each task has begun again after its worker was lost.

    Parameters
    ----------
    attempts
        Those of tasks that live streams connect, which count for each of these.
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
        return attempt + 1 < self._deployment.attempts

    def count(self, number: int) -> None:
        """A task begins again."""
        self._begun_again[number] = self._begun_again.get(number, 0) + 1
