"""A stream as a file for its reader: while it is written, or afterwards."""

from __future__ import annotations

import io
import json
import select
import socket
import time
from typing import TYPE_CHECKING

from wrap.core.errors import TaskError
from wrap.core.recovery import STREAM_LOST
from wrap.pipes.frames import BUFFER, END, FAILED, LENGTH, LOOK_MS, lost

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

#: Bytes to receive with the length of a frame: several small frames come at once, and little of a
#: large frame is copied.
_AHEAD = 1 << 12


class WrittenStream(io.RawIOBase):
    """A file that reads a stream which has been written completely."""

    def __init__(self, content: bytes | memoryview) -> None:
        super().__init__()
        self._left = memoryview(content)
        #: When its first and its last piece were read; None before that.
        self.read_from: float | None = None
        self.read_until: float | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        room = memoryview(buffer).cast("B")
        count = min(len(room), len(self._left))
        room[:count] = self._left[:count]
        self._took(count)
        return count

    def readall(self) -> bytes:
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
    """A file that reads a stream.

    Args:
        channel: a socket whose other end the writer has.
        writer: the name of the function that writes, for errors.
    """

    def __init__(self, channel: socket.socket, writer: str) -> None:
        super().__init__()
        channel.setblocking(False)
        self._channel = channel
        self._writer = writer
        #: The error raised because the writer, or a writer before it, is gone.
        self.broken: TaskError | None = None
        self._left = 0
        self._ended = False
        #: Received bytes that have not been read.
        self._rest = memoryview(b"")
        self._ahead = bytearray(LENGTH.size)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Read some bytes; 0 at the end. Raises TaskError if the writer failed or is gone."""
        if not self._left and not self._ended:
            self._left = self._number()
            self._ended = self._left == END
            if self._left == FAILED:
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
            whole = len(room) == self._left  # then the next frame's length may be there too
            came = self._receive([room, self._ahead] if whole else [room])
            count = min(came, len(room))
            self._rest = memoryview(self._ahead)[: came - count]
        self._left -= count
        return count

    def drain(self) -> None:
        rest = bytearray(BUFFER)
        while self.readinto(rest):
            pass
        self._channel.close()

    def let_go(self) -> None:
        """Close the stream before its end."""
        self._channel.close()

    def _number(self) -> int:
        return int(LENGTH.unpack(self._exactly(LENGTH.size))[0])

    def _exactly(self, count: int) -> memoryview:
        """Return `count` bytes. Bytes after them stay for the next read."""
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
                poll.poll(LOOK_MS)
                continue
            except OSError:
                count = 0
            if not count:
                self.broken = lost(f"{self._writer} stopped before the end of its stream")
                raise self.broken
            return count
