"""Bodies of requests and answers; large bodies are not copied."""

from __future__ import annotations

import io
from typing import Any

from waitress.buffers import ReadOnlyFileBasedBuffer

from wrap.values.malloc import unfilled

#: Pieces of at least this size are not copied; waitress's own buffers copy them.
LARGE = 1 << 16


class LargeBody(io.RawIOBase):
    """A large body of a request: its pieces are appended, and the application reads it as a file.

    The buffer has its full length at once; the kernel provides memory only for bytes that have
    arrived. waitress would keep the body in a file that grows with every piece, which copies it.
    Reading would copy it again.
    """

    def __init__(self, length: int) -> None:
        self._bytes = unfilled(length)
        self._come = 0
        self._read = 0

    def __len__(self) -> int:
        return self._come

    def append(self, piece: bytes) -> None:
        end = self._come + len(piece)
        self._bytes[self._come : end] = piece
        self._come = end

    def getfile(self) -> LargeBody:
        """Return the file that has the body: this one."""
        return self

    def whole(self) -> bytearray:
        """Return the whole body, not copied; the caller owns it and this buffer is empty."""
        whole, self._bytes = self._bytes, bytearray()
        return whole

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = memoryview(self._bytes)[self._read : self._read + len(buffer)]
        buffer[: len(piece)] = piece
        self._read += len(piece)
        return len(piece)

    def readall(self) -> bytes:
        """Return the remaining bytes, copied once."""
        return bytes(memoryview(self.whole())[self._read :])

    def close(self) -> None:
        self._bytes = bytearray()
        super().close()


class Nowhere(LargeBody):
    """The rest of a refused body."""

    def __init__(self) -> None:
        super().__init__(0)

    def append(self, piece: bytes) -> None:
        """Drop the piece."""


class Uncopied(ReadOnlyFileBasedBuffer):  # type: ignore[misc]
    """A large piece of an answer.

    waitress's other buffers copy it. At each turn they also copy as much as a socket accepts at
    most. For 10 MB that is several times the bytes sent.
    """

    def __init__(self, piece: bytes | memoryview) -> None:
        self._rest = memoryview(piece)

    def __len__(self) -> int:
        return len(self._rest)

    def get(self, numbytes: int = -1, skip: bool = False) -> memoryview:
        """Return the next `numbytes` bytes, or all remaining; they stay until they are skipped."""
        return self._rest if numbytes < 0 else self._rest[:numbytes]

    def skip(self, numbytes: int, allow_prune: bool = False) -> None:
        self._rest = self._rest[numbytes:]

    def close(self) -> None:
        self._rest = memoryview(b"")
