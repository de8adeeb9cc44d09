"""Length-prefixed frames: how bytes of any size cross a socket or an HTTP body.

A frame is its length (4 bytes, big endian) and that many bytes; between processes it may be shared
memory, whose descriptor comes with a number in place of the length. Nothing here waits for a whole
message before it lets the other side go on, so no size of result can make two sides wait for
each other.
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

from wrap.http.server import unfilled
from wrap.values.memfd_pool import MEMFDS, Memfd
from wrap.values.shared_memory import Shared

#: A frame as it was received.
Frame = bytearray | memoryview
#: A frame that is to be sent: bytes, or a text that is ASCII.
Unsent = bytes | memoryview | str
#: What goes out at once: bytes, and the memory whose number they end with, if any.
_Piece = tuple[bytes | memoryview, Shared | None]

_LENGTH = struct.Struct("!I")
#: Longer frames are taken for garbage that something else wrote into the socket.
LONGEST = 1 << 30
_SMALL = 1 << 16
#: In place of a length: shared memory with bytes, with a text that is ASCII.
_SHARED_BYTES, _SHARED_ASCII = 0xFFFFFFFE, 0xFFFFFFFF
#: Room for as many descriptors as Linux sends at once.
_ANCILLARY = socket.CMSG_SPACE(253 * array.array("i").itemsize)
#: A text is encoded so much at a time: what the processor's cache holds, and the other side reads
#: the first of it while the rest is encoded.
_AT_ONCE = 1 << 18


def unsent(text: str) -> Unsent:
    """`text` as a frame. Of ASCII the length is known before it is encoded."""
    return text if text.isascii() else text.encode()


def length(frames: Iterable[Unsent]) -> int:
    """How many bytes `pieces` makes of them."""
    return sum(_LENGTH.size + len(frame) for frame in frames)


def pieces(frames: Iterable[Unsent]) -> Iterator[bytes | memoryview]:
    """The frames, each after its length: small ones travel together, large ones are not copied."""
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
    """The frames of a whole body, not copied. Raises ValueError where it ends within one."""
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
    """Puts frames together from the pieces in which they arrive; they take memory as they do.

    Args:
        longest: bytes that a frame may have.
        share_from: frames from so many bytes on are received into memory that further processes can
            share.
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
        """Whether a part of a frame has come, and not yet the rest."""
        return self._frame is not None or bool(self._length)

    def receive(self, channel: socket.socket) -> list[bytearray | Shared] | None:
        """The frames that one read of `channel` completes; None at its end.

        Raises ValueError: the length of a frame is impossible, or there is no memory where some is
        announced.
        Raises OSError: as the socket does: BlockingIOError where there is nothing to read now.
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
        """Take in the descriptors that came with what was read; they are of frames in it."""
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
    """Bytes on their way to a socket that takes them only piece by piece."""

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
        """Send what `channel` takes: all of it if it blocks. Raises OSError when it is closed."""
        while self._piece:
            try:
                if self._shared is None:
                    sent = channel.send(self._piece)
                else:  # it travels with the first byte
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
    """The frames that arrive over a blocking socket, until its other end is closed."""
    inflow = Inflow()
    while (frames := inflow.receive(channel)) is not None:
        frames.reverse()
        while frames:  # none is kept while the next one is waited for
            yield frames.pop()


def write(channel: socket.socket, frames: Iterable[Unsent | Shared]) -> None:
    """Send frames over a blocking socket."""
    outflow = Outflow()
    outflow.push(frames)
    outflow.flush(channel)
