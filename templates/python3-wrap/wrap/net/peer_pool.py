"""Kept connections to other wraps, and the questions sent over them.

A connection carries one question at a time, so that none waits for the bytes of another.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from queue import Empty, SimpleQueue

from wrap.event_loop.loop import Loop
from wrap.event_loop.threads import ThreadPool
from wrap.net import framing
from wrap.net.handshake import CONNECT_S, introduce
from wrap.net.peer_connection import ENDS, Message, PeerConnection, Received
from wrap.pipes.frames import bounded

#: Most idle connections that are kept to a replica.
_KEPT = 64
#: Called once with the answer; with None if the connection broke or could not be made.
Answered = Callable[[Received | None], None]


class PendingQuestion:
    def __init__(self, answered: Answered) -> None:
        self._answered: Answered | None = answered
        self._connection: PeerConnection | None = None
        self._lock = threading.Lock()

    def goes_over(self, connection: PeerConnection) -> bool:
        """Note the connection that carries it; return whether the answer is still wanted."""
        with self._lock:
            self._connection = connection
            return self._answered is not None

    def answer(self, message: Received | None) -> None:
        """Pass on the answer, if it is still wanted."""
        with self._lock:
            answered, self._answered = self._answered, None
        if answered is not None:
            answered(message)

    def cancel(self) -> None:
        """Drop the answer; closing the connection informs the other side."""
        with self._lock:
            self._answered, wanted = None, self._answered
            connection = self._connection
        if wanted is not None and connection is not None:
            connection.close()


class PeerPool:
    """Connections to replicas of wraps, by their addresses, HOST PORT.

    Args:
        key: the key that both sides prove to have.
        longest: most bytes of a frame.
        gone: called by the loop when the other side has ended a connection to an address.
        ends: called by the loop when the replica at an address announces that it is ending.
    """

    def __init__(
        self,
        key: bytes,
        longest: int,
        loop: Loop,
        threads: ThreadPool,
        gone: Callable[[str], None],
        ends: Callable[[str], None],
    ) -> None:
        self._key = key
        self._longest = longest
        self._loop = loop
        self._threads = threads
        self._other_gone = gone
        self._other_ends = ends
        self._idle: dict[str, list[PeerConnection]] = {}

    def reach(self, address: str) -> None:
        """Ensure a connection to a replica. Raises OSError; ValueError if of another deployment."""
        if not self._idle.get(address):
            self._keep(address, self._connected(address))

    def ask(self, address: str, message: Message, answered: Answered) -> PendingQuestion:
        """Send `message`; the loop calls `answered`, or a thread does if it could not be sent."""
        asked = PendingQuestion(answered)
        with contextlib.suppress(LookupError):
            self._send(address, self._idle[address].pop(), asked, message)
            return asked
        self._threads.start(partial(self._ask_anew, address, message, asked))
        return asked

    def ask_all(
        self, addresses: Mapping[str, str], message: Message, seconds: float
    ) -> dict[str, Received]:
        """Return the answers that arrive in time, by the names of `addresses`."""
        answers = SimpleQueue[tuple[str, Received | None]]()
        for name, address in addresses.items():
            self.ask(address, message, partial(_put, answers, name))
        found: dict[str, Received] = {}
        until = time.monotonic() + seconds
        for _ in addresses:
            with contextlib.suppress(Empty):
                name, answer = answers.get(timeout=max(0.0, until - time.monotonic()))
                if answer is not None:
                    found[name] = answer
        return found

    def _ask_anew(self, address: str, message: Message, asked: PendingQuestion) -> None:
        try:
            connection = self._connected(address)
        except (OSError, ValueError) as error:
            print(f"the wrap at {address} cannot be reached: {error}")
            asked.answer(None)
            return
        self._send(address, connection, asked, message)

    def _send(
        self, address: str, connection: PeerConnection, asked: PendingQuestion, message: Message
    ) -> None:
        connection.question = asked
        if not asked.goes_over(connection):
            connection.close()
        elif not connection.send(message):
            # The caller may hold a lock, and does not have `asked` yet.
            self._drop(address)
            self._threads.start(partial(asked.answer, None))

    def stream(self, address: str, message: Message) -> socket.socket:
        """Return a connection that is a stream after an accepted `message`; raises as `reach`."""
        channel = self._introduced(address)
        try:
            channel.settimeout(CONNECT_S)
            framing.write(channel, message.frames())
            if not channel.recv(1):
                raise ConnectionError("it takes no streams any more")
        except BaseException:
            channel.close()
            raise
        return bounded(channel)

    def _connected(self, address: str) -> PeerConnection:
        channel = self._introduced(address)
        answered = partial(self._answered, address)
        return PeerConnection(
            channel, self._loop, self._longest, answered, partial(self._gone, address)
        )

    def _introduced(self, address: str) -> socket.socket:
        host, _, port = address.partition(" ")
        until = time.monotonic() + CONNECT_S
        channel = socket.create_connection((host, int(port)), CONNECT_S)
        try:
            introduce(channel, self._key, until)
        except BaseException as error:
            channel.close()
            if isinstance(error, TimeoutError):  # it exists, and is busy
                raise ConnectionError("it did not say in time who it is") from error
            raise
        return channel

    def _answered(self, address: str, connection: PeerConnection, message: Received) -> None:
        if message.kind == ENDS:
            self._other_ends(address)
            return
        asked, connection.question = connection.question, None
        if asked is None:
            raise ValueError("an answer that nobody asked for")
        self._keep(address, connection)
        asked.answer(message)

    def _keep(self, address: str, connection: PeerConnection) -> None:
        idle = self._idle.setdefault(address, [])
        if len(idle) < _KEPT:
            idle.append(connection)
        else:
            connection.close()

    def _drop(self, address: str) -> None:
        """Close all idle connections to an address: the fault may have broken them all."""
        idle = self._idle.pop(address, [])
        while idle:
            with contextlib.suppress(IndexError):  # a thread took it meanwhile
                idle.pop().close()

    def _gone(self, address: str, connection: PeerConnection, _: Exception | None) -> None:
        self._drop(address)
        self._other_gone(address)
        if asked := connection.question:
            connection.question = None
            asked.answer(None)


def _put(
    answers: SimpleQueue[tuple[str, Received | None]], name: str, answer: Received | None
) -> None:
    answers.put((name, answer))
