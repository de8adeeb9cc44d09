"""Calls other wraps over direct connections, or through the gateway if there are none."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue

from wrap.core.errors import TaskError, too_late
from wrap.core.limits import left_s
from wrap.core.retry import is_called_again
from wrap.event_loop.loop import Loop
from wrap.event_loop.threads import ThreadPool
from wrap.net.gateway_client import OK, Gateway, failure, results_of
from wrap.net.messages import Request, Result
from wrap.net.peer_connection import Message, Received
from wrap.net.peer_pool import PeerPool
from wrap.net.replicas import Replicas
from wrap.net.transport import GRACE_S, Answered, Forwarded, Transport
from wrap.values.shared_memory import Shared

#: The kind of a message that asks a wrap to run tasks and return their results.
CALL = "call"
#: The kind of all answers; their field is a status.
ANSWER = "answer"
#: The status with which a replica that is ending refuses a request.
ENDING = 503


class Direct(Transport):
    """Reaches the replicas of other wraps, whose addresses it gets from the gateway.

    The other parameters are those of `wrap.net.peer_pool.PeerPool`.
    """

    def __init__(
        self, gateway: Gateway, key: bytes, longest: int, loop: Loop, threads: ThreadPool
    ) -> None:
        self.pool = PeerPool(key, longest, loop, threads, self._gone, self._ends)
        self._gateway, self._threads = gateway, threads
        self._replicas: dict[str, Replicas] = {}
        self._lock = threading.Lock()

    def replicas(self, wrap: str) -> Replicas:
        with self._lock:
            if wrap not in self._replicas:
                ask = partial(self._gateway.address, wrap)
                self._replicas[wrap] = Replicas(ask, self.pool.reach, self._threads.start)
            return self._replicas[wrap]

    def _ends(self, address: str) -> None:
        for replicas in list(self._replicas.values()):
            replicas.mark_ending(address)

    def _gone(self, address: str) -> None:
        for replicas in list(self._replicas.values()):
            replicas.forget(address)

    def call(
        self, wrap: str, request: Request, deadline: float, sent: Callable[[], None]
    ) -> list[Result]:
        """Implement `wrap.net.transport.Transport.call`.

        If a connection breaks before the answer, the tasks may or may not have run. They are then
        called again through the gateway, if attempts are left.
        """
        replicas = self.replicas(wrap)
        losses = 0
        while address := replicas.of(request.ident.number):
            asked = time.monotonic()
            answer = self._ask(wrap, address, request, deadline, sent)
            if answer is None:
                losses = 1
                replicas.forget(address)
                message = f"wrap {wrap} at {address} broke off"
                if not is_called_again(losses, self._gateway.attempts, time.monotonic(), deadline):
                    raise TaskError("remote", message)
                print(message)
                break
            if not is_refused(answer):
                return answered(wrap, answer, request, asked)
            replicas.mark_ending(address)
            if not replicas.known():
                break
        return self._gateway.call(wrap, request, deadline, sent, losses)

    def _ask(
        self, wrap: str, address: str, request: Request, deadline: float, sent: Callable[[], None]
    ) -> Received | None:
        """Return a replica's answer; None if the connection broke. Raises TaskError: timeout."""
        remaining = left_s(time.monotonic(), deadline)
        answers = SimpleQueue[Received | None]()
        call = Message(CALL, [remaining], request.frames())
        question = self.pool.ask(address, call, answers.put)
        sent()
        try:
            return answers.get(timeout=remaining + GRACE_S)
        except Empty:
            question.cancel()
            raise too_late(f"wrap {wrap}") from None

    def forward(self, wrap: str, request: Forwarded, deadline: float) -> Answered:
        """Forward through the gateway, as every whole request goes."""
        return self._gateway.forward(wrap, request, deadline)


def is_refused(answer: Received) -> bool:
    return answer.fields[0] == ENDING and not answer.content


def answered(wrap: str, answer: Received, request: Request, asked: float) -> list[Result]:
    """Return the results of a request that was sent at `asked`. Raises TaskError."""
    status = int(answer.fields[0])
    if status != OK:
        (said,) = answer.content
        raise failure(wrap, status, b"" if isinstance(said, Shared) else said)
    return results_of(wrap, answer.content, request, asked)
