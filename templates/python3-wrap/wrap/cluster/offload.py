"""Sends executions that would wait here for a busy worker to another replica of this wrap.

References
----------
Pheromone (NSDI'23), algorithm 1: delayed scheduling. A node runs what it can itself, and forwards
what has waited longer than a threshold.
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
#: The timeout of its answer, in seconds.
_ANSWER_S = 0.5

#: Gets the outcome: results, the error of a task, or None if the execution has to run here.
Returned = Callable[[list[Result] | TaskError | None], None]


class Offload:
    """Sends executions to the other replicas of this wrap.

    Args:
        name, address: the name of this wrap, and where this replica accepts messages.
        after_s: how long an execution waits for workers before other replicas are asked.
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
        """Send `request` to the replica with the most free workers, if it is still `wanted`."""
        self._threads.start(partial(self._send, request, deadline, wanted, returned))

    def _send(
        self, request: Request, deadline: float, wanted: Callable[[], bool], returned: Returned
    ) -> None:
        replica = freest(self._free())
        if replica is None or not wanted():
            return
        asked = time.monotonic()
        message = Message(CALL, [left_s(asked, deadline)], request.frames())

        def on_answer(answer: Received | None) -> None:
            try:
                if answer is None or is_refused(answer):
                    returned(None)
                else:
                    returned(answered(self._name, answer, request, asked))
            except TaskError as error:
                returned(error)

        self._direct.pool.ask(replica, message, on_answer)

    def _free(self) -> dict[str, int]:
        """Return replica -> for how many executions it has free workers."""
        others = self._direct.replicas(self._name).known(but=self._address)
        answers = self._direct.pool.ask_all(
            {each: each for each in others}, Message(FREE), _ANSWER_S
        )
        return {other: int(answer.fields[0]) for other, answer in answers.items()}
