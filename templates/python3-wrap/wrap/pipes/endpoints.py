"""The two ends of a stream: what one task writes, others read at the same time.

A stream goes over a socket to each of its readers, in frames: a length, and so many bytes. The
length 0 ends it; the highest one says that the writer has failed, and why. Where the socket ends
without either, the writer was lost.

A writer waits for its slowest reader, so that no stream takes more memory than its buffers. That
alone could have tasks wait for each other in a circle: a reads what b writes and does not take what
c has for it, while b waits for c. In a graph without cycles every such circle has a writer in it
that waits for one reader while another one waits for that writer. So where a reader has taken
nothing for a moment, and another one of the same task has taken all, what the first is to get goes
to disk, and the writer goes on. What goes there is bounded (`wrap.values.disk`): above the bound
the writer waits again, until the reader has taken what is on disk. The writer fails at once where
the disk is full. At the bound it fails where the reader has taken nothing for some seconds, since
that may be a circle.

References
----------
Floki: tasks that run at the same time, with streams of bounded buffers between them.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import json
import select
import socket
import struct
import termios
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import IO, TYPE_CHECKING, Any

from wrap.config.redaction import redacted
from wrap.core.errors import TaskError
from wrap.core.recovery import STREAM_LOST
from wrap.values.disk import Backlog

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer
    from _typeshed import WriteableBuffer

#: Bytes that a file buffers, and that are read and written at once.
BUFFER = 1 << 16
_LENGTH = struct.Struct("!I")
_END, _FAILED = 0, (1 << 32) - 1
#: Half of what the kernel buffers of a stream on each of its sides.
_KERNEL_BUFFER = 448 << 10
#: Bytes that are received with the length of a frame: small frames come several at once, and of
#: large ones little is copied.
_AHEAD = 1 << 12
#: The longest frame; more is several.
_LONGEST = 1 << 30
#: For how long a reader takes nothing before what it is to get may go to disk, in seconds.
_PATIENCE_S = 0.1
#: The same before a writer fails that has to wait although as much is on disk as may be.
_CIRCLE_S = 5.0
#: How often is looked whether another reader has taken all meanwhile, in milliseconds.
_STUCK_MS = 20
#: How long what a handler yields may wait for more, in seconds.
_MOMENT_S = 0.001
#: How often a thread that waits looks whether it was cancelled, in milliseconds.
_LOOK_MS = 200


def bounded(channel: socket.socket) -> socket.socket:
    """`channel`, over which a stream goes between wraps, with bounded buffers of the kernel's.

    They grow to ten times that else. With less, 1 GB took longer (64 KiB at once, 2 cores).
    """
    for buffer in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        channel.setsockopt(socket.SOL_SOCKET, buffer, _KERNEL_BUFFER)
    return channel


def lost(what: str) -> TaskError:
    """The other end of a stream is gone, and why is not known here."""
    return TaskError(STREAM_LOST, what)


class Outlet:
    """The way to one reader.

    Parameters
    ----------
    channel
        A socket, whose other end the reader has.
    reader
        Its function, by which errors name it.

    Attributes
    ----------
    broken
        What was raised, where the reader is gone.
    """

    def __init__(self, channel: socket.socket, reader: str) -> None:
        channel.setblocking(False)
        self._channel = channel
        self._reader = reader
        self.broken: TaskError | None = None
        self._left: list[bytes | memoryview] = []
        self._spilled: Backlog | None = None
        #: What comes after that on disk, which has no room for it.
        self._later: list[bytes | memoryview] = []
        self._took = time.monotonic()

    def fileno(self) -> int:
        """The descriptor to wait on."""
        return self._channel.fileno()

    @property
    def sending(self) -> bool:
        """Whether there is more to send when the reader takes more."""
        return bool(self._left) or self._spilled is not None

    @property
    def held_up(self) -> bool:
        """Whether the writer has to wait: what goes to disk is no reason to."""
        return bool(self._left if self._spilled is None else self._later)

    @property
    def starves(self) -> bool:
        """Whether the reader has got all that there is for it."""
        room = fcntl.ioctl(self._channel, termios.TIOCOUTQ, bytes(4))
        return not self.sending and not int.from_bytes(room, "little")

    @property
    def patience_s(self) -> float:
        """How long it may still take nothing before what it is to get goes to disk."""
        return self._took + _PATIENCE_S - time.monotonic()

    def put(self, pieces: Iterable[bytes | memoryview]) -> None:
        """Send bytes, as far as the reader takes them now.

        Raises TaskError where it is gone, OSError where they have to go to disk and that is full.
        """
        if self._spilled is not None:
            pieces = list(pieces)
            if self._later or not self._spilled.has_room(sum(map(len, pieces))):
                self._wait_for_disk(pieces)
            else:
                self._spilled.put(pieces)
        else:
            if not self._left:
                self._took = time.monotonic()
            self._left += pieces
        self.flush()

    def flush(self) -> None:
        """Send more of what is left."""
        while self._left or self._refill():
            try:
                sent = self._channel.sendmsg(self._left)
            except BlockingIOError:
                return
            except OSError:
                self.broken = lost(f"{self._reader} stopped before it had read its stream")
                raise self.broken from None
            self._took = time.monotonic()
            left = self._left
            while left and sent >= len(left[0]):
                sent -= len(left.pop(0))
            if sent:
                left[0] = memoryview(left[0])[sent:]

    def spill(self) -> None:
        """Have what is left on disk, so that the writer need not wait.

        At the bound it goes on waiting. Raises OSError where the disk is full, and at the bound
        where the reader has taken nothing for long.
        """
        if self._spilled is not None:
            if time.monotonic() > self._took + _CIRCLE_S:
                raise OSError(errno.ENOSPC, f"{self._on_disk()}, and it reads nothing")
        else:
            spilled = Backlog()
            try:
                spilled.put(self._left)
            except BaseException:
                spilled.close()
                raise
            self._spilled, self._left = spilled, []

    def _wait_for_disk(self, pieces: Iterable[bytes | memoryview]) -> None:
        if not self._later:
            print(f"{self._on_disk()}: their writer waits until they are read")
        self._later += pieces

    def _on_disk(self) -> str:
        size = len(self._spilled or ())
        return f"{size} bytes for {self._reader} are on disk, half of what is free there"

    def close(self, error: TaskError | None = None) -> None:
        """Be done with it; a reader that has not got all learns of `error`."""
        if error is not None and not self.sending:
            said = json.dumps(error.as_dict(redacted)).encode()
            with contextlib.suppress(TaskError):
                self.put([_LENGTH.pack(_FAILED), _LENGTH.pack(len(said)), said])
        if self._spilled is not None:
            self._spilled.close()
        self._channel.close()

    def _refill(self) -> bool:
        """Read on in what is on disk, and then after it; whether there is more."""
        if self._spilled is None:
            return False
        data = self._spilled.take(BUFFER)
        if data:
            self._left = [data]
        else:
            self._spilled.close()
            self._spilled = None
            self._left, self._later = self._later, []
        return bool(self._left)


class Outlets:
    """The ways to all readers of a task's outputs; any of its threads may write."""

    def __init__(self) -> None:
        self._all = list[Outlet]()
        self._failure: OSError | None = None
        self._lock = threading.Lock()

    def add(self, outlet: Outlet) -> None:
        """There is one more."""
        with self._lock:
            self._all.append(outlet)

    def send(self, outlets: Sequence[Outlet], pieces: Iterable[bytes | memoryview]) -> None:
        """Send bytes to some of the readers, as soon as these take them.

        Raises TaskError where one is gone, OSError where the disk is full. It raises that again for
        whatever follows, since readers lack what came before.
        """
        with self._lock:
            if self._failure is not None:
                raise self._failure
            try:
                for outlet in outlets:
                    outlet.put(pieces)
                while waiting := [outlet for outlet in outlets if outlet.held_up]:
                    self._wait(waiting)
            except OSError as error:
                self._failure = error
                raise

    def finish(self) -> None:
        """Wait until all have taken what there is for them, also what is on disk."""
        with self._lock:
            while waiting := [outlet for outlet in self._all if outlet.sending]:
                self._wait(waiting)

    @property
    def broken(self) -> TaskError | None:
        """What was raised, where a reader is gone."""
        return next((each.broken for each in self._all if each.broken is not None), None)

    def close(self, error: TaskError | None = None) -> None:
        """Be done with all; those that have not got all learn of `error`."""
        for outlet in self._all:
            outlet.close(error)

    def _wait(self, waiting: Sequence[Outlet]) -> None:
        poll = select.poll()
        by_number = {each.fileno(): each for each in self._all if each.sending}
        for number in by_number:
            poll.register(number, select.POLLOUT)
        patience_s = min(each.patience_s for each in waiting)
        wait_ms = 1 + 1000 * patience_s if patience_s > 0 else _STUCK_MS
        for number, _ in poll.poll(min(_LOOK_MS, wait_ms)):
            by_number[number].flush()
        stuck = [each for each in waiting if each.held_up and each.patience_s <= 0]
        if stuck and any(each.starves for each in self._all):
            for each in stuck:
                each.spill()


class Writer(io.RawIOBase):
    """An output of a task as a file: small pieces go together, large ones from where they are.

    Parameters
    ----------
    outlets
        To those that read it as a stream, among all of the task's.
    kept
        Whether it is needed as a whole too.
    written
        Called when it has been closed, unless it was abandoned.

    Attributes
    ----------
    begun
        When there was something to send of it for the first time.
    """

    def __init__(
        self,
        outlets: Sequence[Outlet],
        among: Outlets,
        kept: bool,
        written: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self._outlets = outlets
        self._among = among
        self._kept: bytearray | None = bytearray() if kept else None
        self._written = written
        self._waiting = bytearray()
        self._abandoned = False
        self._lock = threading.RLock()
        self.begun: float | None = None

    def writable(self) -> bool:
        """It is there to be written."""
        return True

    def write(self, data: Buffer) -> int:
        """Take all of `data`. Raises TaskError where a reader is gone."""
        view = memoryview(data).cast("B")
        with self._lock:
            if self.closed:
                raise ValueError("it has been closed")
            if self._kept is not None:
                self._kept += view
            if not self._outlets:
                if len(self.whole) >= BUFFER:
                    self._begin()
                return len(view)
            if len(self._waiting) + len(view) < BUFFER:
                self._waiting += view
            else:
                self._send(view)
        return len(view)

    def flush(self) -> None:
        """Send what waits for more."""
        with self._lock:
            if self._waiting:
                self._send(memoryview(b""))
            elif self.whole:
                self._begin()

    def close(self) -> None:
        """End it."""
        with self._lock:
            if self.closed:
                return
            try:
                self.flush()
                if self._outlets:
                    self._among.send(self._outlets, [_LENGTH.pack(_END)])
            finally:
                super().close()
            if not self._abandoned:
                self._written()

    def abandon(self) -> None:
        """Send nothing more, not even an end."""
        self._outlets, self._abandoned = (), True

    def __exit__(self, *raised: Any) -> None:
        if raised[0] is not None:
            self.abandon()
        self.close()

    @property
    def whole(self) -> bytearray:
        """All that was written, if that was kept."""
        return self._kept or bytearray()

    def _begin(self) -> None:
        if self.begun is None:
            self.begun = time.monotonic()

    def _send(self, view: memoryview) -> None:
        self._begin()
        waiting, self._waiting = self._waiting, bytearray()
        for start in range(0, len(view) or 1, _LONGEST):
            piece = view[start : start + _LONGEST]
            length = _LENGTH.pack(len(waiting) + len(piece))
            self._among.send(self._outlets, [length, memoryview(waiting), piece])
            waiting = bytearray()


class Flusher:
    """Sends what is written to a file a moment later at the latest, small pieces together."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._flushed = 0.0
        self._wrote = threading.Event()
        self._ended = False
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Flusher:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._wrote.set()

    def wrote(self) -> None:
        """There is something to send: now, or with what comes within the moment."""
        now = time.monotonic()
        if now > self._flushed + _MOMENT_S:
            self._flushed = now
            self._file.flush()
            return
        self._wrote.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="flusher", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(TaskError, ValueError):  # the writer sees it too, or has closed it
            while self._wrote.wait() and not self._ended:
                self._wrote.clear()
                time.sleep(_MOMENT_S)
                self._flushed = time.monotonic()
                self._file.flush()


class Whole(io.RawIOBase):
    """A stream as a file that has been written before.

    Attributes
    ----------
    read_from, read_until
        When the first and the last piece of it were read, if they were.
    """

    def __init__(self, content: bytes | memoryview) -> None:
        super().__init__()
        self._left = memoryview(content)
        self.read_from: float | None = None
        self.read_until: float | None = None

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read some bytes; 0 at the end."""
        room = memoryview(buffer).cast("B")
        count = min(len(room), len(self._left))
        room[:count] = self._left[:count]
        self._took(count)
        return count

    def readall(self) -> bytes:
        """Read the rest."""
        rest = bytes(self._left)
        self._took(len(rest))
        return rest

    def _took(self, count: int) -> None:
        now = time.monotonic()
        if self.read_from is None:
            self.read_from = now
        self._left = self._left[count:]
        if not self._left and self.read_until is None:
            self.read_until = now


class Reader(io.RawIOBase):
    """A stream as a file.

    Parameters
    ----------
    channel
        A socket, whose other end the writer has.
    writer
        Its function, by which errors name it.

    Attributes
    ----------
    broken
        What was raised, where the writer is gone, or what it reads.
    """

    def __init__(self, channel: socket.socket, writer: str) -> None:
        super().__init__()
        channel.setblocking(False)
        self._channel = channel
        self._writer = writer
        self.broken: TaskError | None = None
        self._left = 0
        self._ended = False
        #: What has been received and not been read.
        self._rest = memoryview(b"")
        self._ahead = bytearray(_LENGTH.size)

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read some bytes; 0 at the end. Raises TaskError where the writer failed or is gone."""
        if not self._left and not self._ended:
            self._left = self._number()
            self._ended = self._left == _END
            if self._left == _FAILED:
                self._left, self._ended = 0, True
                said = json.loads(bytes(self._exactly(self._number())))
                error = TaskError.from_dict(said, status=500)
                self.broken = error if error.code == STREAM_LOST else None
                raise error
        if self._ended:
            return 0
        room = memoryview(buffer).cast("B")[: self._left]
        count = min(len(self._rest), len(room))
        if count:
            room[:count], self._rest = self._rest[:count], self._rest[count:]
        else:
            whole = len(room) == self._left  # then the next one's length may be there too
            came = self._receive([room, self._ahead] if whole else [room])
            count = min(came, len(room))
            self._rest = memoryview(self._ahead)[: came - count]
        self._left -= count
        return count

    def drain(self) -> None:
        """Read the rest, of which nobody wants anything, and be done with it."""
        rest = bytearray(BUFFER)
        while self.readinto(rest):
            pass
        self._channel.close()

    def let_go(self) -> None:
        """Be done with it before its end."""
        self._channel.close()

    def _number(self) -> int:
        return int(_LENGTH.unpack(self._exactly(_LENGTH.size))[0])

    def _exactly(self, count: int) -> memoryview:
        """So many bytes, and with them those that are there already of what follows."""
        while len(self._rest) < count:
            more = bytearray(_AHEAD)
            got = self._receive([more])
            self._rest = memoryview(bytes(self._rest) + more[:got])
        data, self._rest = self._rest[:count], self._rest[count:]
        return data

    def _receive(self, room: list[bytearray | memoryview]) -> int:
        while True:
            try:
                count = self._channel.recvmsg_into(room)[0]
            except BlockingIOError:
                poll = select.poll()
                poll.register(self._channel, select.POLLIN)
                poll.poll(_LOOK_MS)
                continue
            except OSError:
                count = 0
            if not count:
                self.broken = lost(f"{self._writer} stopped before the end of its stream")
                raise self.broken
            return count
