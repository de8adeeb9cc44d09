"""Length-prefixed frames: how bytes of any size cross a socket or an HTTP body.

A frame is its length (4 bytes, big endian), followed by that many bytes. Between processes it may
be shared memory: its descriptor is sent with a special number in place of the length. No function
waits for a whole message before the other side may continue. So no result is large enough to make
two sides wait for each other.
"""

from __future__ import annotations

import array
import contextlib
import os
import socket
import struct
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain

from wrap.values.malloc import unfilled
from wrap.values.memfd_pool import MEMFDS, Memfd
from wrap.values.shared_memory import Shared

#: A received frame.
Frame = bytearray | memoryview
#: A frame to send: bytes, or an ASCII text.
Unsent = bytes | memoryview | str
#: Bytes to send at once, and the shared memory that their last number announces, if any.
_Piece = tuple[bytes | memoryview, Shared | None]

_LENGTH = struct.Struct("!I")
#: A longer frame is treated as garbage that something else wrote into the socket.
LONGEST = 1 << 30
_SMALL = 1 << 16
#: In place of a length: shared memory with bytes, or with an ASCII text.
_SHARED_BYTES, _SHARED_ASCII = 0xFFFFFFFE, 0xFFFFFFFF
#: Buffer size for the most descriptors that Linux sends at once.
_ANCILLARY = socket.CMSG_SPACE(253 * array.array("i").itemsize)
#: Characters of a text that are encoded at a time: they fit into the processor's cache, and the
#: other side reads the first of them while the rest is encoded.
_AT_ONCE = 1 << 18


def unsent(text: str) -> Unsent:
    """Return `text` as a frame. The length of an ASCII text is known before it is encoded."""
    return text if text.isascii() else text.encode()


def length(frames: Iterable[Unsent]) -> int:
    """Return the number of bytes that `pieces` makes of the frames."""
    return sum(_LENGTH.size + len(frame) for frame in frames)


def pieces(frames: Iterable[Unsent]) -> Iterator[bytes | memoryview]:
    """Yield the frames, each after its length. Small frames are joined, large ones not copied."""
    return (piece for piece, _ in _pieces(frames))


def _pieces(frames: Iterable[Unsent | Shared]) -> Iterator[_Piece]:
    small = bytearray()
    for frame in frames:
        if isinstance(frame, Shared):
            small += _LENGTH.pack(_SHARED_ASCII if frame.is_ascii else _SHARED_BYTES)
            yield bytes(small), frame
            small = bytearray()
            continue
        small += _LENGTH.pack(len(frame))
        if len(frame) <= _SMALL:
            small += frame.encode() if isinstance(frame, str) else frame
            continue
        yield bytes(small), None
        small = bytearray()
        if isinstance(frame, str):
            for start in range(0, len(frame), _AT_ONCE):
                yield frame[start : start + _AT_ONCE].encode(), None
        else:
            yield frame, None
    if small:
        yield bytes(small), None


def split(body: bytes | bytearray) -> list[Frame]:
    """Return the frames of a whole body, not copied. Raises ValueError if it ends within one."""
    found: list[Frame] = []
    rest = memoryview(body)
    while rest:
        end = _LENGTH.size
        if len(rest) >= end:
            end += _LENGTH.unpack_from(rest)[0]
        if len(rest) < end:
            raise ValueError("the body ends within a frame")
        found.append(rest[_LENGTH.size : end])
        rest = rest[end:]
    return found


class Inflow:
    """Assembles frames from the pieces that arrive. A frame takes memory only as it arrives.

    Args:
        longest: most bytes of a frame.
        share_from: frames of at least this many bytes are received into memory that other processes
            can share.
    """

    def __init__(self, longest: int = LONGEST, share_from: int | None = None) -> None:
        self._longest = longest
        self._share_from = longest + 1 if share_from is None else share_from
        self._length = bytearray()
        self._frame: bytearray | memoryview | None = None
        self._memfd: Memfd | None = None
        self._filled = 0
        self._descriptors: deque[int] = deque()

    @property
    def begun(self) -> bool:
        return self._frame is not None or bool(self._length)

    def receive(self, channel: socket.socket) -> list[bytearray | Shared] | None:
        """Return the frames that one read of `channel` completes; None at its end.

        Raises ValueError if a frame's length is impossible, or if announced shared memory is
        missing. Raises OSError as the socket does: BlockingIOError if there is nothing to read now.
        """
        if self._frame is None or len(self._frame) - self._filled < _SMALL:
            piece, came, _, _ = channel.recvmsg(_SMALL, _ANCILLARY)
            self._note(came)
            return self._feed(piece) if piece else None
        rest = memoryview(self._frame)[self._filled :]
        count, came, _, _ = channel.recvmsg_into([rest], _ANCILLARY)
        self._note(came)
        self._filled += count
        return self._feed(b"") if count else None

    def _note(self, came: list[tuple[int, int, bytes]]) -> None:
        """Keep the descriptors that came with the bytes just read; they belong to their frames."""
        for level, kind, numbers in came:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                self._descriptors.extend(array.array("i", numbers))

    def __del__(self) -> None:
        for descriptor in self._descriptors:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _shared(self, number: int) -> Shared:
        if not self._descriptors:
            raise ValueError("no descriptor came with a frame that is in shared memory")
        shared = Shared(self._descriptors.popleft(), number == _SHARED_ASCII)
        if len(shared) > self._longest:
            raise ValueError(f"an object of {len(shared)} bytes, above {self._longest}")
        return shared

    def _feed(self, piece: bytes) -> list[bytearray | Shared]:
        done: list[bytearray | Shared] = []
        start, end = 0, len(piece)
        while self._frame is None and not self._length and start + _LENGTH.size <= end:
            (length,) = _LENGTH.unpack_from(piece, start)
            if length > end - start - _LENGTH.size:
                break
            start += _LENGTH.size + length
            done.append(bytearray(piece[start - length : start]))
        view = memoryview(piece)[start:]
        while view or self._is_full():
            if self._frame is None:
                view = self._begin(view, done)
                continue
            taken = min(len(view), len(self._frame) - self._filled)
            self._frame[self._filled : self._filled + taken] = view[:taken]
            self._filled += taken
            view = view[taken:]
            if self._is_full():
                done.append(self._whole(self._frame))
        return done

    def _place(self, length: int) -> bytearray | memoryview:
        if length >= self._share_from:
            with contextlib.suppress(OSError):  # no descriptor could be had
                self._memfd = MEMFDS.take(length)
                return self._memfd.content(length)
        return unfilled(length)

    def _whole(self, frame: bytearray | memoryview) -> bytearray | Shared:
        memfd, self._memfd = self._memfd, None
        self._frame, self._filled = None, 0
        if memfd is not None:
            with contextlib.suppress(OSError):
                return Shared.within(memfd, len(frame))
        return frame if isinstance(frame, bytearray) else bytearray(frame)

    def _is_full(self) -> bool:
        return self._frame is not None and self._filled == len(self._frame)

    def _begin(self, view: memoryview, done: list[bytearray | Shared]) -> memoryview:
        taken = _LENGTH.size - len(self._length)
        self._length += view[:taken]
        if len(self._length) == _LENGTH.size:
            (length,) = _LENGTH.unpack(self._length)
            self._length = bytearray()
            if length in (_SHARED_BYTES, _SHARED_ASCII):
                done.append(self._shared(length))
            elif length > self._longest:
                raise ValueError(f"a frame of {length} bytes, above {self._longest}")
            else:
                self._frame = self._place(length)
        return view[taken:]


class Outflow:
    """Bytes on their way to a socket that accepts them piece by piece."""

    def __init__(self) -> None:
        self._piece = memoryview(b"")
        self._shared: Shared | None = None
        self._later: Iterator[_Piece] = iter(())

    def __bool__(self) -> bool:
        return bool(self._piece)

    def push(self, frames: Iterable[Unsent | Shared]) -> None:
        if self._piece:
            self._later = chain(self._later, _pieces(frames))
        else:
            self._later = _pieces(frames)
            self._next()

    def flush(self, channel: socket.socket) -> None:
        """Send as much as `channel` accepts: all if it blocks. Raises OSError if it is closed."""
        while self._piece:
            try:
                if self._shared is None:
                    sent = channel.send(self._piece)
                else:  # the descriptor is sent with the first byte
                    sent = socket.send_fds(channel, [self._piece], [self._shared.fileno()])
                    self._shared = None
            except BlockingIOError:
                return
            self._piece = self._piece[sent:]
            if not self._piece:
                self._next()

    def _next(self) -> None:
        piece, self._shared = next(self._later, (b"", None))
        self._piece = memoryview(piece)


def read(channel: socket.socket) -> Iterator[bytearray | Shared]:
    """Yield the frames that arrive over a blocking socket, until its other end is closed."""
    inflow = Inflow()
    while (frames := inflow.receive(channel)) is not None:
        frames.reverse()
        while frames:  # keep no frame while waiting for the next
            yield frames.pop()


def write(channel: socket.socket, frames: Iterable[Unsent | Shared]) -> None:
    outflow = Outflow()
    outflow.push(frames)
    outflow.flush(channel)
