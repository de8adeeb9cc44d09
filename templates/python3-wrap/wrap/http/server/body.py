"""Bodies of requests and answers: large ones are not copied."""

from __future__ import annotations

import ctypes
import io
from typing import Any

from waitress.buffers import ReadOnlyFileBasedBuffer

#: Pieces of a body from this size on stay where they lie: waitress's own buffers copy them.
LARGE = 1 << 16
_bytearray = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t)(
    ("PyByteArray_FromStringAndSize", ctypes.pythonapi)
)


def unfilled(length: int) -> bytearray:
    """Room for `length` bytes, which takes memory only as it is filled.

    ``bytearray(length)`` writes zeros into all of it. What is in here before it is filled may be
    anything: hand on no more than has been written.
    """
    return _bytearray(None, length)  # type: ignore[no-any-return]


class LargeBody(io.RawIOBase):
    """A large body of a request: its pieces are appended, and the application reads it as a file.

    The buffer has its full length at once; the kernel provides memory only for what has arrived.
    waitress would keep the body in a file that grows with every piece, which copies it, and copy
    it once more when it is read.
    """

    def __init__(self, length: int) -> None:
        self._bytes = unfilled(length)
        self._come = 0
        self._read = 0

    def __len__(self) -> int:
        return self._come

    def append(self, piece: bytes) -> None:
        """Take in what came next."""
        end = self._come + len(piece)
        self._bytes[self._come : end] = piece
        self._come = end

    def getfile(self) -> LargeBody:
        """The file that has the body."""
        return self

    def whole(self) -> bytearray:
        """All of it, not copied; it is the caller's from now on, and no longer in here."""
        whole, self._bytes = self._bytes, bytearray()
        return whole

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Copy what comes next, as much as fits."""
        piece = memoryview(self._bytes)[self._read : self._read + len(buffer)]
        buffer[: len(piece)] = piece
        self._read += len(piece)
        return len(piece)

    def readall(self) -> bytes:
        """All that is left, copied once."""
        return bytes(memoryview(self.whole())[self._read :])

    def close(self) -> None:
        self._bytes = bytearray()
        super().close()


class Nowhere(LargeBody):
    """What is left of a body that is refused."""

    def __init__(self) -> None:
        super().__init__(0)

    def append(self, piece: bytes) -> None:
        """Do without it."""


class Uncopied(ReadOnlyFileBasedBuffer):  # type: ignore[misc]
    """A large piece of an answer.

    waitress's other buffers copy it, and then, at each turn, as much as a socket takes at most,
    which for 10 MB comes to several times what is sent.
    """

    def __init__(self, piece: bytes | memoryview) -> None:
        self._rest = memoryview(piece)

    def __len__(self) -> int:
        return len(self._rest)

    def get(self, numbytes: int = -1, skip: bool = False) -> memoryview:
        """The next `numbytes` bytes, or all that are left; they stay until they are skipped."""
        return self._rest if numbytes < 0 else self._rest[:numbytes]

    def skip(self, numbytes: int, allow_prune: bool = False) -> None:
        """Be done with the next `numbytes` bytes."""
        self._rest = self._rest[numbytes:]

    def close(self) -> None:
        self._rest = memoryview(b"")
