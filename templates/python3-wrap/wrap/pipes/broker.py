"""Connects the tasks of an execution that write streams with the tasks that read them.

The rules are in `wrap.core.streams`. Within a wrap, an endpoint is one of a pair of sockets;
between two wraps it is a direct connection. A worker process asks the main process for an endpoint,
and gets a descriptor. Every process of the machine may find the abstract address of the broker, so
processes of other users are refused.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from wrap.config.redaction import redacted
from wrap.core.errors import TaskError
from wrap.core.executions import EARLY_S
from wrap.core.streams import Broken, OpenStreams, StreamId, Streams
from wrap.core.wrap_spec import Wrap
from wrap.event_loop.liveness import essential
from wrap.event_loop.loop import Loop
from wrap.event_loop.threads import ThreadPool
from wrap.net.sockets import pair, patient, user_of
from wrap.pipes.frames import lost

if TYPE_CHECKING:
    from wrap.pipes.piecewise import Client

#: The client, as the reader of the answering task's stream.
CLIENT = -1
#: The kind of the message that turns a connection into a stream.
STREAM = "stream"
#: The most bytes of a worker's request, and of an error that it gets.
_SAID = 1 << 12
#: The abstract address of the broker for workers; see `ask_at`.
_address = ""
#: Timeout of a worker's request after it has connected, in seconds.
_ASK_S = 5.0
#: How often a reader checks whether its stream has arrived, in seconds.
_LOOK_S = 0.2

#: Returns the endpoint of a stream that writes (True) or reads (False).
Open = Callable[[StreamId, bool], socket.socket]
#: Connects to another wrap of an execution, to write a stream, while the callable returns True.
Connect = Callable[[str, StreamId, Callable[[], bool]], socket.socket]


class ExecutionStreams(OpenStreams[socket.socket]):
    """The streams of an execution that runs here.

    Args:
        attempt_of: a method that returns the attempt of a task that opens a stream; None if that is
            over.
        client: the client that the answering task may write to; None if the answer is sent as a
            whole.
    """

    def __init__(
        self, number: int, attempt_of: Callable[[int], int | None], client: Client | None = None
    ) -> None:
        super().__init__(number)
        self.client = client
        # A strong reference would keep the execution's data until cycles are collected.
        self._attempt_of = weakref.WeakMethod(attempt_of)

    def attempt_of(self, task: int) -> int | None:
        """Return the present attempt of a task that opens a stream; None if it is over."""
        attempt_of = self._attempt_of()
        return None if attempt_of is None else attempt_of(task)


class Broker:
    """The broker of streams, in the main process.

    Args:
        connect: None if the wrap runs all of the workflow.
    """

    def __init__(
        self, wrap: Wrap, threads: ThreadPool, loop: Loop, connect: Connect | None
    ) -> None:
        self._wrap = wrap
        self._threads = threads
        self._loop = loop
        self._connect = connect
        self._streams = Streams[socket.socket, ExecutionStreams]()
        self._refused = 0
        self._changed = threading.Condition()

    def serve(self) -> None:
        server = patient(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        server.bind(f"\0{_address}")
        server.listen()
        os.register_at_fork(after_in_child=server.close)
        essential(partial(self._accept, server), "streams")

    def begin(self, execution: ExecutionStreams) -> None:
        with self._changed:
            self._streams.begin(execution)

    def end(self, execution: ExecutionStreams) -> None:
        """Remove an execution that has ended: nobody waits for its streams any longer."""
        with self._changed:
            broken = self._streams.end(execution)
            self._changed.notify_all()
        _close(broken)

    def begin_attempt(
        self, execution: ExecutionStreams, tasks: Iterable[int], attempt: int
    ) -> None:
        """Begin another attempt of some tasks: the streams of earlier attempts break off."""
        with self._changed:
            broken = self._streams.begin_attempt(execution, tasks, attempt)
            self._changed.notify_all()
        _close(broken)

    def open(self, stream: StreamId, writes: bool) -> socket.socket:
        """Return an endpoint of a stream. Raises TaskError if there is none."""
        stream, end = self._end(stream, writes)
        with self._changed:
            if self._streams.use(stream, end):
                return end
        end.close()
        raise _over()

    @property
    def in_hand(self) -> bool:
        """Whether streams wait for an execution that has not begun here."""
        with self._changed:
            return self._streams.in_hand

    def expects(self, execution: int) -> bool:
        """Return whether an execution runs here, or streams of it wait."""
        with self._changed:
            return self._streams.expects(execution)

    def arrived(self, stream: StreamId, channel: socket.socket) -> None:
        """Accept a connection over which another wrap writes a stream that is read here."""
        if stream.reader == CLIENT:
            self._write_to_client(stream, channel)
            return
        with self._changed:
            if not self._streams.add(stream, channel):
                channel.close()
                return
            self._changed.notify_all()
        self._loop.call_at(time.monotonic() + EARLY_S, partial(self._forget, stream, channel))

    def _forget(self, stream: StreamId, channel: socket.socket) -> None:
        with self._changed:
            is_dropped = self._streams.forget(stream, channel)
        if is_dropped:
            channel.close()

    def _end(self, stream: StreamId, writes: bool) -> tuple[StreamId, socket.socket]:
        if stream.reader == CLIENT:
            return stream, self._client_of(stream).open(stream)
        reader, writer = stream.reader, self._wrap.giver_of(stream.output)
        execution = self._streams.get(stream.execution)
        attempt = None if execution is None else execution.attempt_of(writer if writes else reader)
        if attempt is None:
            raise _over()
        stream = stream._replace(attempt=attempt)
        there = self._wrap.wrap_of[reader if writes else writer]
        if there == self._wrap.name:
            return stream, self._half(stream)
        if not writes:
            return stream, self._come(stream)
        if self._connect is None:
            raise _over()
        is_wanted = partial(self._streams.is_wanted, stream)
        return stream, self._connect(there, stream, is_wanted)

    def _write_to_client(self, stream: StreamId, channel: socket.socket) -> None:
        try:
            self._client_of(stream).take(channel)
        except TaskError:  # the execution is over, or the client has got an answer
            channel.close()

    def _client_of(self, stream: StreamId) -> Client:
        execution = self._streams.get(stream.execution)
        if execution is None or execution.client is None:
            raise _over()
        return execution.client

    def _half(self, stream: StreamId) -> socket.socket:
        """Return one end of a pair to the task that asks first; keep the other end for its task."""
        with self._changed:
            if not self._streams.is_wanted(stream):
                raise _over()
            end = self._streams.take(stream)
            if end is None:
                end, other = pair()
                self._streams.add(stream, other)
            return end

    def _come(self, stream: StreamId) -> socket.socket:
        """Wait until another wrap has connected, and return the reader's end of its stream."""
        with self._changed:
            while (end := self._streams.take(stream)) is None:
                if not self._streams.is_wanted(stream):
                    raise _over()
                self._changed.wait(_LOOK_S)
            return end

    def _accept(self, server: socket.socket) -> None:
        while True:
            with contextlib.suppress(OSError, RuntimeError):  # the worker asks again, or fails
                channel, _ = server.accept()
                if (user := user_of(channel)) == os.geteuid():
                    self._threads.start(partial(self._answer, patient(channel)))
                else:
                    channel.close()
                    self._refuse(user)

    def _refuse(self, user: int) -> None:
        self._refused += 1
        if self._refused & (self._refused - 1) == 0:  # else strangers could fill the log
            print(f"user {user} was refused streams, the {self._refused}. so far")

    def _answer(self, channel: socket.socket) -> None:
        # The worker may be gone, and the message may be no request.
        with channel, contextlib.suppress(OSError, ValueError, TypeError):
            channel.settimeout(_ASK_S)
            *stream, writes = json.loads(channel.recv(_SAID))
            try:
                with self._end(StreamId(*stream), writes)[1] as end:
                    socket.send_fds(channel, [b"{}"], [end.fileno()])
            except TaskError as error:
                channel.send(json.dumps(error.as_dict(redacted)).encode())


def ask_at(address: str) -> None:
    """Set the address at which this process, and processes forked from it, ask for streams."""
    global _address
    _address = address


def ask(stream: StreamId, writes: bool) -> socket.socket:
    """`Broker.open`, for a worker process."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
            patient(channel).connect(f"\0{_address}")
            channel.send(json.dumps([*stream, writes]).encode())
            said, descriptors, _, _ = socket.recv_fds(channel, _SAID, 1)
    except OSError:
        raise _over() from None
    if not descriptors:
        raise TaskError.from_dict(json.loads(said), status=500) if said else _over()
    return patient(socket.socket(fileno=descriptors[0]))


def _over() -> TaskError:
    return lost("the execution is over")


def _close(broken: Broken[socket.socket]) -> None:
    for end in broken.waiting:
        end.close()
    for end in broken.in_use:  # its task may be blocked on it
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
