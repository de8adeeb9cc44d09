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

from wrap.core.errors import TaskError
from wrap.event_loop.threads import ThreadPool
from wrap.net.direct import CALL, Direct, answered, is_refused
from wrap.net.messages import Request, Result
from wrap.net.peer_connection import Message, Received

#: What asks a replica for how many executions it has processes.
ROOM = "room"
#: How long a replica may take to say so, in seconds.
_ANSWER_S = 0.5

#: Is told what came of it: results, the error of a task, or None where it has to be run here.
Returned = Callable[[list[Result] | TaskError | None], None]


class Offload:
    """Knows the other replicas of this wrap.

    Parameters
    ----------
    name, address
        Of this wrap, and where this replica takes messages.
    after_s
        How long an execution waits for processes before others are asked.
    """

    def __init__(
        self, direct: Direct, name: str, address: str, after_s: float, threads: ThreadPool
    ) -> None:
        self.after_s = after_s
        self._direct = direct
        self._name = name
        self._address = address
        self._threads = threads

    def lend(
        self, request: Request, deadline: float, wanted: Callable[[], bool], returned: Returned
    ) -> None:
        """Have `request` run by the replica with the most room, unless it is not `wanted` then."""
        self._threads.start(partial(self._lend, request, deadline, wanted, returned))

    def _lend(
        self, request: Request, deadline: float, wanted: Callable[[], bool], returned: Returned
    ) -> None:
        room = self._room()
        if not room or not wanted():
            return
        asked = time.monotonic()
        message = Message(CALL, [max(0.001, deadline - asked)], request.frames())

        def got(answer: Received | None) -> None:
            try:
                if answer is None or is_refused(answer):
                    returned(None)
                else:
                    returned(answered(self._name, answer, request, asked))
            except TaskError as error:
                returned(error)

        self._direct.lines.ask(max(room, key=room.__getitem__), message, got)

    def _room(self) -> dict[str, int]:
        """The replicas that have room, and for how many executions."""
        others = self._direct.replicas(self._name).known(but=self._address)
        answers = self._direct.lines.ask_all(
            {each: each for each in others}, Message(ROOM), _ANSWER_S
        )
        room = {other: int(answer.fields[0]) for other, answer in answers.items()}
        return {other: count for other, count in room.items() if count > 0}
