"""An answer that is sent to the client while its task computes it: both ends of its stream.

It is a stream of `wrap.pipes.frames`. Its first line is JSON: status, content type and headers.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Protocol, cast

from wrap.core.errors import TaskError
from wrap.core.streams import StreamId
from wrap.net.sockets import pair
from wrap.pipes.frames import BUFFER, lost
from wrap.pipes.outlets import Outlet, Outlets
from wrap.pipes.reader import Reader
from wrap.pipes.writer import Flusher, Writer

#: Status, content type and the other headers.
Begin = tuple[str, str, list[tuple[str, str]]]


def send(begin: Begin, pieces: Iterable[bytes], channel: socket.socket) -> None:
    """Send an answer, each piece a moment after it came. Raises TaskError if nobody reads it."""
    outlets = Outlets()
    outlets.add(outlet := Outlet(channel, "the client"))
    try:
        file = cast(IO[bytes], Writer([outlet], outlets, kept=False))
        with file, Flusher(file) as flusher:
            file.write(json.dumps(begin).encode() + b"\n")
            for piece in pieces:
                file.write(piece)
                flusher.wrote()
        outlets.finish()
    finally:
        outlets.close()


class Pieces:
    """The body of such an answer, over which a WSGI server iterates.

    If the execution fails, the connection is cut, so that no client takes a part for the whole.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._reader = Reader(channel, "the task that answers")
        self._first = b""
        self._over = threading.Event()
        self._failed = False

    def begin(self) -> Begin:
        """Return status, content type and headers, once the first piece has arrived too.

        Raises TaskError if the task has failed before that, or is gone.
        """
        came = b""
        while b"\n" not in came:
            came += self._read()
        line, _, self._first = came.partition(b"\n")
        self._first = self._first or self._read()
        status, kind, headers = json.loads(line)
        return str(status), str(kind), [(str(name), str(value)) for name, value in headers]

    def end(self, failed: bool) -> None:
        """Note that the execution has ended; if it `failed`, nothing more is read."""
        self._failed = failed
        self._over.set()
        if failed:
            with contextlib.suppress(OSError):  # it is closed already
                self._channel.shutdown(socket.SHUT_RDWR)

    def __iter__(self) -> Iterator[bytes]:
        """The pieces. Raises CutError if the answer breaks off."""
        from wrap.http.server.connection import CutError  # processes of tasks have no server

        piece = self._first
        while piece:
            yield piece
            try:
                piece = self._read()
            except TaskError as error:
                raise CutError from error
        self._over.wait()
        if self._failed:
            raise CutError

    def close(self) -> None:
        """Close the stream. A task that writes more gets an error."""
        self._reader.let_go()

    def _read(self) -> bytes:
        room = bytearray(BUFFER)
        return bytes(memoryview(room)[: self._reader.readinto(room)])


class Client(Protocol):
    """The client that an execution answers piece by piece, while it runs."""

    #: Whether the client may have a part of the answer: then the task cannot run again.
    begun: bool

    def open(self, stream: StreamId) -> socket.socket:
        """Return the answering task's socket. Raises TaskError if an earlier run has had one."""

    def take(self, channel: socket.socket) -> None:
        """Read the answer of a task elsewhere from `channel`. Raises TaskError as `open`."""


class LocalClient:
    """The client of an execution whose request came to this wrap; `answer` is called once."""

    def __init__(self, answer: Callable[[Pieces], None]) -> None:
        self.begun = False
        self._answer = answer
        self._lock = threading.Lock()

    def open(self, stream: StreamId) -> socket.socket:
        ours, theirs = pair()
        try:
            self.take(ours)
        except TaskError:
            ours.close()
            theirs.close()
            raise
        return theirs

    def take(self, channel: socket.socket) -> None:
        with self._lock:
            before, self.begun = self.begun, True
        if before:
            raise lost("the client has got a part of another run's answer")
        self._answer(Pieces(channel))


class RemoteClient:
    """The client of an execution whose coordinator is another wrap; `connect` reaches that."""

    def __init__(self, connect: Callable[[StreamId], socket.socket]) -> None:
        self.begun = False
        self._connect = connect

    def open(self, stream: StreamId) -> socket.socket:
        self.begun = True
        return self._connect(stream)

    def take(self, channel: socket.socket) -> None:
        raise lost("the client is another wrap's")
