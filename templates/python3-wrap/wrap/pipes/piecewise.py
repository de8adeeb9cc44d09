"""An answer that goes to the client while its task computes it: what the task and the server do.

It goes over a stream of `wrap.pipes.frames`. A line of JSON comes first: status, content type
and headers.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Protocol, cast

from wrap.core.errors import TaskError
from wrap.http.server import CutError
from wrap.pipes.broker import Which
from wrap.pipes.frames import BUFFER, lost
from wrap.pipes.outlets import Outlet, Outlets
from wrap.pipes.reader import Reader
from wrap.pipes.writer import Flusher, Writer

#: Status, content type and the other headers.
Begin = tuple[str, str, list[tuple[str, str]]]


def send(begin: Begin, pieces: Iterable[bytes], channel: socket.socket) -> None:
    """Send an answer, each piece a moment after it came. Raises TaskError where nobody takes it."""
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
    """The body of such an answer, as a WSGI server iterates over it.

    It ends as its execution does: where that fails, the connection is cut, so that no client takes
    what it has got for the whole.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._reader = Reader(channel, "the task that answers")
        self._first = b""
        self._over = threading.Event()
        self._failed = False

    def begin(self) -> Begin:
        """What comes before the first piece, which is there then too.

        Raises TaskError where the task has failed before that, or is gone.
        """
        came = b""
        while b"\n" not in came:
            came += self._read()
        line, _, self._first = came.partition(b"\n")
        self._first = self._first or self._read()
        status, kind, headers = json.loads(line)
        return str(status), str(kind), [(str(name), str(value)) for name, value in headers]

    def end(self, failed: bool) -> None:
        """The execution has ended: where it has failed, nothing more is read."""
        self._failed = failed
        self._over.set()
        if failed:
            with contextlib.suppress(OSError):  # it is closed already
                self._channel.shutdown(socket.SHUT_RDWR)

    def __iter__(self) -> Iterator[bytes]:
        """The pieces. Raises CutError where there is no more of them, though that is not all."""
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
        """Be done with it: the task notices where it has more."""
        self._reader.let_go()

    def _read(self) -> bytes:
        room = bytearray(BUFFER)
        return bytes(memoryview(room)[: self._reader.readinto(room)])


class Client(Protocol):
    """Whom an execution answers while it goes on.

    Attributes
    ----------
    begun
        Whether a part of the answer may be there already: the task cannot run again.
    """

    begun: bool

    def open(self, which: Which) -> socket.socket:
        """What the task that answers writes to. Raises TaskError where it cannot, or did before."""

    def take(self, channel: socket.socket) -> None:
        """The task runs in another wrap, and writes into the other end. Raises TaskError too."""


class Near:
    """The client of an execution whose request came to this wrap; `answer` is called once."""

    def __init__(self, answer: Callable[[Pieces], None]) -> None:
        self.begun = False
        self._answer = answer
        self._lock = threading.Lock()

    def open(self, which: Which) -> socket.socket:
        """As `Client` says."""
        ours, theirs = socket.socketpair()
        try:
            self.take(ours)
        except TaskError:
            ours.close()
            theirs.close()
            raise
        return theirs

    def take(self, channel: socket.socket) -> None:
        """As `Client` says."""
        with self._lock:
            before, self.begun = self.begun, True
        if before:
            raise lost("the client has got a part of another run's answer")
        self._answer(Pieces(channel))


class Far:
    """The client of an execution whose coordinator is another wrap, to which `connect` connects."""

    def __init__(self, connect: Callable[[Which], socket.socket]) -> None:
        self.begun = False
        self._connect = connect

    def open(self, which: Which) -> socket.socket:
        """As `Client` says."""
        self.begun = True
        return self._connect(which)

    def take(self, channel: socket.socket) -> None:
        """As `Client` says: that is the coordinator's."""
        raise lost("the client is another wrap's")
