"""The seam between "tasks of another wrap are to run" and "their objects are where they run"."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from wrap.net.messages import Ident, Request, Result

#: How long after the deadline the answer of another wrap is waited for: it knows at the deadline
#: which function hangs.
GRACE_S = 0.5


class Forwarded(NamedTuple):
    """A request of the workflow that another entry is to answer; `target` is path and query."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes | bytearray


class Answered(NamedTuple):
    """An HTTP answer."""

    status: int
    headers: Sequence[tuple[str, str]]
    body: bytes


class Transport(Protocol):
    """Brings a request to the wrap that runs its tasks, and their results back.

    Each call has a thread, so it may wait. How the objects travel is the transport's own affair: in
    the message, through memory that two wraps of a machine share, or as names under which a store
    has them.
    """

    def call(
        self, wrap: str, request: Request, deadline: float, sent: Callable[[], None]
    ) -> list[Result]:
        """The results of all tasks of `request`, with times on this machine's clock.

        Args:
            wrap: the name of the OpenFaaS function.
            deadline: the execution's, in seconds of the monotonic clock.
            sent: called as soon as the request is on its way: tasks of this wrap wait for that,
                since a thread that sends can have the GIL only now and then when others compute.

        Raises TaskError: the wrap's own error; ``timeout``; ``remote`` where it cannot be reached.
        """

    def forward(self, wrap: str, request: Forwarded, deadline: float) -> Answered:
        """The answer of the entry `wrap` to a request; TaskError: ``timeout``, ``remote``."""

    def release(self, execution: Ident) -> None:
        """Keep nothing of an execution any more: it has ended, and was answered."""
