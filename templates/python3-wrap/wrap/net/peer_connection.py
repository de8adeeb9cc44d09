"""A connection to another wrap, after the handshake: whole messages, both ways.

The loop reads from it, and writes the bytes that could not be sent at once. A message is a header
(kind, number of frames that follow, fields) and these frames.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from wrap.event_loop.loop import Loop
from wrap.net.framing import Frame, Inflow, Outflow, Unsent
from wrap.net.messages import decoded_header, encoded_header
from wrap.values.budget import MemoryBudget
from wrap.values.shared_memory import Shared
from wrap.values.value import SHARED_FROM

if TYPE_CHECKING:
    from wrap.net.peer_pool import PendingQuestion

#: The kind of the unasked message that a replica which is ending sends over its connections.
ENDS = "ends"


class Message(NamedTuple):
    """A message to another wrap."""

    #: What it is about; see `wrap.cluster.peers`.
    kind: str
    #: Values that JSON can represent.
    fields: Sequence[Any] = ()
    content: Sequence[Unsent | Shared] = ()

    def frames(self) -> list[Unsent | Shared]:
        return [encoded_header((self.kind, len(self.content), self.fields)), *self.content]


class Received(NamedTuple):
    kind: str
    fields: Sequence[Any]
    content: Sequence[Frame | Shared]


class PeerConnection:
    """A connection that calls `got` for each message that arrives.

    Args:
        got: called by the loop with each message that has arrived whole.
        gone: called once by the loop if the other side has closed, or has sent an invalid message.
        longest: most bytes of a frame.
        budget: while it is full, nothing more is read, so the other side waits (backpressure).
    """

    def __init__(
        self,
        channel: socket.socket,
        loop: Loop,
        longest: int,
        got: Callable[[PeerConnection, Received], None],
        gone: Callable[[PeerConnection, Exception | None], None],
        budget: MemoryBudget | None = None,
    ) -> None:
        channel.setblocking(False)
        self._channel = channel
        self._loop = loop
        self._got = got
        self._gone = gone
        self._inflow = Inflow(longest, SHARED_FROM)
        self._outflow = Outflow()
        self._frames: list[Frame | Shared] = []
        self._header: tuple[str, int, list[Any]] | None = None
        self._budget = budget
        #: Whether the budget allows reading.
        self.receiving = True
        #: The question that waits for the next message, if its owner has sent one.
        self.question: PendingQuestion | None = None
        self._sent: Callable[[], None] | None = None
        self._lock = threading.Lock()
        self._open = True
        _CONNECTIONS.add(self)
        loop.watch(self, self._ready)

    def fileno(self) -> int:
        return self._channel.fileno()

    @property
    def sending(self) -> bool:
        return bool(self._outflow)

    def send(self, message: Message, sent: Callable[[], None] | None = None) -> bool:
        """Send a message; return whether the connection is open, as far as is known.

        `sent` is called once, by any thread, when all of it has gone or the connection has closed.
        """
        frames = message.frames()
        with self._lock:
            there = self._open
            self._sent = sent or self._sent
            if there:
                was_sending = self.sending
                self._outflow.push(frames)
                if not was_sending:
                    there = self._flush()  # else `gone` will be called
                    if self._outflow:
                        self._loop.renew(self)
            self._tell_sent()
            return there

    def detached(self) -> socket.socket:
        """Return the socket, which the caller owns from now on."""
        with self._lock:
            self._open = False
            self._loop.forget(self)
            return self._channel

    def close(self) -> None:
        """Close the connection; no callback but `sent` is called any more."""
        with self._lock:
            if self._open:
                self._open = False
                self._loop.forget(self)
                self._channel.close()
                self._outflow = Outflow()
                self._tell_sent()

    def let_go(self) -> None:
        """In a process that a handler has forked: close the inherited socket."""
        with contextlib.suppress(OSError):
            os.close(self._channel.detach())

    def _flush(self) -> bool:
        try:
            self._outflow.flush(self._channel)
        except OSError:
            self._outflow = Outflow()
            return False
        return True

    def _tell_sent(self) -> None:
        if self._sent is not None and not self._outflow:
            sent, self._sent = self._sent, None
            sent()

    def _ready(self, writable: bool, readable: bool) -> None:
        if writable:
            with self._lock:
                if self._open:
                    self._flush()
                    self._loop.renew(self)
                    self._tell_sent()
        if readable:
            self._read()

    def _wait_for_room(self, budget: MemoryBudget) -> None:
        self._receive(False)
        budget.when_room(partial(self._receive, True))

    def _receive(self, receiving: bool) -> None:
        with self._lock:
            self.receiving = receiving
            if self._open:
                self._loop.renew(self)

    def _read(self) -> None:
        why: Exception | None
        if self._budget is not None and self._budget.full:
            self._wait_for_room(self._budget)
            return
        try:
            frames = self._inflow.receive(self._channel)
            if frames is not None:
                self._frames += frames
                for message in self._messages():
                    self._got(self, message)
                return
            unfinished = self._inflow.begun or self._frames or self._header
            why = ValueError("a message breaks off") if unfinished else None
        except BlockingIOError:
            return
        except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
            why = error
        if self._open:
            self.close()
            self._gone(self, why)

    def _messages(self) -> list[Received]:
        found: list[Received] = []
        while True:
            if self._header is None:
                if not self._frames:
                    return found
                self._header = _decoded(self._frames.pop(0))
            kind, count, fields = self._header
            if len(self._frames) < count:
                return found
            found.append(Received(kind, fields, self._frames[:count]))
            del self._frames[:count]
            self._header = None


_CONNECTIONS = weakref.WeakSet[PeerConnection]()


def _let_go() -> None:
    for connection in list(_CONNECTIONS):
        connection.let_go()


os.register_at_fork(after_in_child=_let_go)


def _decoded(header: Frame | Shared) -> tuple[str, int, list[Any]]:
    kind, count, fields = decoded_header(header)
    if not isinstance(count, int) or not isinstance(fields, list) or not isinstance(kind, str):
        raise TypeError("a header that is none")
    return kind, count, fields
