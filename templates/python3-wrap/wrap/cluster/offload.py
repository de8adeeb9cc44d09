"""Has another replica of this wrap run what would wait here for a busy process.

References
----------
Pheromone (NSDI'23), algorithm 1: delayed scheduling. A node runs what it can itself, and hands on
what has waited for longer than a threshold.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from wrap.core.admission import freest
from wrap.core.errors import TaskError
from wrap.core.limits import left_s
from wrap.event_loop.threads import ThreadPool
from wrap.net.direct import CALL, Direct, answered, is_refused
from wrap.net.messages import Request, Result
from wrap.net.peer_connection import Message, Received

#: Asks a replica for how many executions it has free workers.
FREE = "free"
#: How long a replica may take to say so, in seconds.
_ANSWER_S = 0.5

#: Is told what came of it: results, the error of a task, or None where it has to be run here.
Returned = Callable[[list[Result] | TaskError | None], None]


class Offload:
    """Sends executions to the other replicas of this wrap.

    Args:
        name, address: of this wrap, and where this replica takes messages.
        after_s: how long an execution waits for processes before others are asked.
    """

    def __init__(
        self, direct: Direct, name: str, address: str, after_s: float, threads: ThreadPool
    ) -> None:
        self.after_s = after_s
        self._direct = direct
        self._name = name
        self._address = address
        self._threads = threads

    def send(
        self, request: Request, deadline: float, wanted: Callable[[], bool], returned: Returned
    ) -> None:
        """Have `request` run by the freest replica, unless it is not `wanted` then."""
        self._threads.start(partial(self._send, request, deadline, wanted, returned))

    def _send(
        self, request: Request, deadline: float, wanted: Callable[[], bool], returned: Returned
    ) -> None:
        replica = freest(self._free())
        if replica is None or not wanted():
            return
        asked = time.monotonic()
        message = Message(CALL, [left_s(asked, deadline)], request.frames())

        def got(answer: Received | None) -> None:
            try:
                if answer is None or is_refused(answer):
                    returned(None)
                else:
                    returned(answered(self._name, answer, request, asked))
            except TaskError as error:
                returned(error)

        self._direct.pool.ask(replica, message, got)

    def _free(self) -> dict[str, int]:
        """For how many executions each of the other replicas has free workers."""
        others = self._direct.replicas(self._name).known(but=self._address)
        answers = self._direct.pool.ask_all(
            {each: each for each in others}, Message(FREE), _ANSWER_S
        )
        return {other: int(answer.fields[0]) for other, answer in answers.items()}
