"""Length-prefixed frames: how bytes of any size cross a socket or an HTTP body.

A frame is its length (4 bytes, big endian) and that many bytes. Nothing here waits for a whole
message before it lets the other side go on, so no size of result can make two sides wait for
each other.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator
from itertools import chain

from wrap.serving import unfilled

#: A frame as it was received.
Frame = bytearray | memoryview
#: A frame that is to be sent: bytes, or a text that is ASCII.
Unsent = bytes | str

_LENGTH = struct.Struct("!I")
#: Longer frames are taken for garbage that something else wrote into the socket.
LONGEST = 1 << 30
_SMALL = 1 << 16
#: A text is encoded so much at a time: what the processor's cache holds, and the other side reads
#: the first of it while the rest is encoded.
_AT_ONCE = 1 << 18


def unsent(text: str) -> Unsent:
    """`text` as a frame. Of ASCII the length is known before it is encoded."""
    return text if text.isascii() else text.encode()


def length(frames: Iterable[Unsent]) -> int:
    """How many bytes `pieces` makes of them."""
    return sum(_LENGTH.size + len(frame) for frame in frames)


def pieces(frames: Iterable[Unsent]) -> Iterator[bytes]:
    """The frames, each after its length: small ones travel together, large ones are not copied."""
    small = bytearray()
    for frame in frames:
        small += _LENGTH.pack(len(frame))
        if len(frame) <= _SMALL:
            small += frame.encode() if isinstance(frame, str) else frame
            continue
        yield bytes(small)
        small = bytearray()
        if isinstance(frame, str):
            for start in range(0, len(frame), _AT_ONCE):
                yield frame[start : start + _AT_ONCE].encode()
        else:
            yield frame
    if small:
        yield bytes(small)


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

    Parameters
    ----------
    longest
        Bytes that a frame may have.
    """

    def __init__(self, longest: int = LONGEST) -> None:
        self._longest = longest
        self._length = bytearray()
        self._frame: bytearray | None = None
        self._filled = 0

    def receive(self, channel: socket.socket) -> list[bytearray] | None:
        """The frames that one read of `channel` completes; None at its end.

        Raises
        ------
        ValueError
            The length of a frame is impossible.
        OSError
            As the socket does: BlockingIOError where there is nothing to read now.
        """
        if self._frame is None or len(self._frame) - self._filled < _SMALL:
            piece = channel.recv(_SMALL)
            return self._feed(piece) if piece else None
        count = channel.recv_into(memoryview(self._frame)[self._filled :])
        self._filled += count
        return self._feed(b"") if count else None

    def _feed(self, piece: bytes) -> list[bytearray]:
        done: list[bytearray] = []
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
            if length > self._longest:
                raise ValueError(f"a frame of {length} bytes, above {self._longest}")
            self._frame, self._length = unfilled(length), bytearray()
        return view[taken:]


class Outflow:
    """Bytes on their way to a socket that takes them only piece by piece."""

    def __init__(self) -> None:
        self._piece = memoryview(b"")
        self._later: Iterator[bytes] = iter(())

    def __bool__(self) -> bool:
        return bool(self._piece)

    def push(self, frames: Iterable[Unsent]) -> None:
        """Add frames."""
        if self._piece:
            self._later = chain(self._later, pieces(frames))
        else:
            self._later = pieces(frames)
            self._next()

    def flush(self, channel: socket.socket) -> None:
        """Send what `channel` takes: all of it if it blocks. Raises OSError when it is closed."""
        while self._piece:
            try:
                self._piece = self._piece[channel.send(self._piece) :]
            except BlockingIOError:
                return
            if not self._piece:
                self._next()

    def _next(self) -> None:
        self._piece = memoryview(next(self._later, b""))


def read(channel: socket.socket) -> Iterator[bytearray]:
    """The frames that arrive over a blocking socket, until its other end is closed."""
    inflow = Inflow()
    while (frames := inflow.receive(channel)) is not None:
        yield from frames


def write(channel: socket.socket, frames: Iterable[Unsent]) -> None:
    """Send frames over a blocking socket."""
    outflow = Outflow()
    outflow.push(frames)
    outflow.flush(channel)
