"""Length-prefixed frames: how bytes of any size cross a socket or an HTTP body.

A frame is its length (4 bytes, big endian) and that many bytes. Nothing here waits for a whole
message before it lets the other side go on, so no size of result can make two sides wait for
each other.
"""

from __future__ import annotations

import socket
import struct
from collections import deque
from collections.abc import Iterable, Iterator

_LENGTH = struct.Struct("!I")
#: Longer frames are taken for garbage that something else wrote into the socket.
LONGEST = 1 << 30
_SMALL_READ = 1 << 16
_LARGE_READ = 1 << 20


def join(frames: Iterable[bytes]) -> bytes:
    """The frames, each after its length, as one body."""
    return b"".join(part for frame in frames for part in (_LENGTH.pack(len(frame)), frame))


def split(body: bytes) -> list[bytearray]:
    """The frames of a whole body. Raises ValueError where it ends within one."""
    inflow = Inflow()
    frames = inflow.feed(body)
    if inflow.partial:
        raise ValueError("the body ends within a frame")
    return frames


class Inflow:
    """Puts frames together from the pieces in which they arrive."""

    def __init__(self) -> None:
        self._length = bytearray()
        self._frame: bytearray | None = None
        self._filled = 0

    @property
    def partial(self) -> bool:
        """Whether a frame has begun and not ended."""
        return self._frame is not None or bool(self._length)

    @property
    def wanted(self) -> int:
        """How many bytes to ask the socket for next: more within a large frame."""
        missing = 0 if self._frame is None else len(self._frame) - self._filled
        return min(max(missing, _SMALL_READ), _LARGE_READ)

    def feed(self, piece: bytes) -> list[bytearray]:
        """The frames that `piece` completes. Raises ValueError for an impossible length."""
        done: list[bytearray] = []
        view = memoryview(piece)
        while view or self._is_full():
            if self._frame is None:
                view = self._begin(view)
                continue
            taken = min(len(view), len(self._frame) - self._filled)
            self._frame[self._filled : self._filled + taken] = view[:taken]
            self._filled += taken
            view = view[taken:]
            if self._is_full():
                done.append(self._frame)
                self._frame, self._filled = None, 0
        return done

    def _is_full(self) -> bool:
        return self._frame is not None and self._filled == len(self._frame)

    def _begin(self, view: memoryview) -> memoryview:
        taken = _LENGTH.size - len(self._length)
        self._length += view[:taken]
        if len(self._length) == _LENGTH.size:
            (length,) = _LENGTH.unpack(self._length)
            if length > LONGEST:
                raise ValueError(f"a frame of {length} bytes is not possible")
            self._frame, self._length = bytearray(length), bytearray()
        return view[taken:]


class Outflow:
    """Bytes on their way to a socket that takes them only piece by piece."""

    def __init__(self) -> None:
        self._pieces: deque[memoryview] = deque()

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def push(self, frames: Iterable[bytes]) -> None:
        """Add frames; small ones travel together, large ones are not copied."""
        small = bytearray()
        for frame in frames:
            small += _LENGTH.pack(len(frame))
            if len(frame) <= _SMALL_READ:
                small += frame
            else:
                self._pieces += (memoryview(small), memoryview(frame))
                small = bytearray()
        if small:
            self._pieces.append(memoryview(small))

    def flush(self, channel: socket.socket) -> None:
        """Send what `channel` takes: all of it if it blocks. Raises OSError when it is closed."""
        while self._pieces:
            piece = self._pieces[0]
            try:
                sent = channel.send(piece)
            except BlockingIOError:
                return
            if sent == len(piece):
                self._pieces.popleft()
            else:
                self._pieces[0] = piece[sent:]


def read(channel: socket.socket) -> Iterator[bytearray]:
    """The frames that arrive over a blocking socket, until its other end is closed."""
    inflow = Inflow()
    while piece := channel.recv(inflow.wanted):
        yield from inflow.feed(piece)


def write(channel: socket.socket, frames: Iterable[bytes]) -> None:
    """Send frames over a blocking socket."""
    outflow = Outflow()
    outflow.push(frames)
    outflow.flush(channel)
