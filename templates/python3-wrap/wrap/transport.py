"""The seam between "a stage is ready" and "its data is where it is needed"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from wrap.messages import Job, Result

#: How long after the deadline the answer of a remote wrap is waited for: it knows at the deadline
#: which function hangs.
GRACE_S = 0.5


class Transport(Protocol):
    """Brings a job to the remote wrap that runs it, and its results back.

    A stage starts one call for each remote wrap, at once and each in a thread, so a call may wait.
    How the texts of the job travel is the transport's own affair: in the message, through
    memory that two wraps of a machine share, or as names under which a store has them.
    """

    def call(self, wrap: str, job: Job, deadline: float, sent: Callable[[], None]) -> list[Result]:
        """The results of all tasks of `job`, with times on this machine's clock.

        Parameters
        ----------
        wrap
            The name of the OpenFaaS function.
        deadline
            The job's, in seconds of the monotonic clock.
        sent
            Called as soon as the job is on its way: the stage's own tasks wait for that, since a
            thread that sends can have the GIL only now and then when others compute.

        Raises
        ------
        TaskError
            The wrap's own error; ``timeout``; ``remote`` where it cannot be reached.
        """

    def forward(
        self, wrap: str, body: bytes | bytearray, headers: Mapping[str, str], deadline: float
    ) -> tuple[int, bytes, str]:
        """Status, body and type of the answer of the entry `wrap` to a whole request.

        Raises
        ------
        TaskError
            ``timeout``; ``remote`` where it cannot be reached.
        """
