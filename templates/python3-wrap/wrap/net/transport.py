"""The interface between executions and the way in which calls reach other wraps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from wrap.net.messages import Ident, Request, Result

#: How long after the deadline to wait for another wrap's answer, in seconds: at the deadline, that
#: wrap finds out which function hangs.
GRACE_S = 0.5


class Forwarded(NamedTuple):
    """A request of the workflow for another entry to answer; `target` is path and query."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes | bytearray


class Answered(NamedTuple):
    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


class Transport(Protocol):
    """Sends a request to the wrap that runs its tasks, and returns their results.

    Each call has a thread, so it may wait. The transport decides how the objects travel: in the
    message, through memory that two wraps of a machine share, or as names of objects in a store.
    """

    def call(
        self, wrap: str, request: Request, deadline: float, sent: Callable[[], None]
    ) -> list[Result]:
        """Return the results of all tasks of `request`, with times on this machine's clock.

        Args:
            wrap: the name of the OpenFaaS function.
            deadline: the execution's, in seconds of the monotonic clock.
            sent: called as soon as the request is on its way. Tasks of this wrap wait for that,
                since a sending thread rarely gets the GIL while others compute.

        Raises TaskError: the wrap's own error; ``timeout``; ``remote`` if it cannot be reached.
        """

    def forward(self, wrap: str, request: Forwarded, deadline: float) -> Answered:
        """Return the answer of the entry `wrap`. Raises TaskError: ``timeout``, ``remote``."""

    def release(self, execution: Ident) -> None:
        """Drop the state of an execution, if any: it has ended and was answered."""
        return
