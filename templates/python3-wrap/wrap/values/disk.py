"""Objects and streams on disk, in unnamed files, which never leave anything behind.

They take at most half of the space that is free without them, as others write to the disk too.
"""

from __future__ import annotations

import errno
import mmap
import os
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO

from wrap.core.spilling import has_room

#: File systems that are in memory.
_MEMORY = ("tmpfs", "ramfs")


def free_bytes(descriptor: int) -> int:
    disk = os.fstatvfs(descriptor)
    return disk.f_bavail * disk.f_frsize


class Spilled:
    """An object in a file, which may hold several; the file is freed with the last of them."""

    def __init__(self, file: IO[bytes], place: int, length: int) -> None:
        self._file = file
        self._place = place
        self._length = length

    def __len__(self) -> int:
        return self._length

    def view(self) -> memoryview:
        """Return its bytes for sending; the kernel reads them on access."""
        if not self._length:
            return memoryview(b"")
        before = self._place % mmap.ALLOCATIONGRANULARITY
        whole = before + self._length
        mapped = mmap.mmap(
            self._file.fileno(), whole, prot=mmap.PROT_READ, offset=self._place - before
        )
        return memoryview(mapped)[before:whole]

    def data(self) -> bytes:
        return bytes(self.view())

    def text(self) -> str:
        """Return its text. Raises UnicodeDecodeError if it is no UTF-8."""
        return str(self.view(), "utf-8")


class Disk:
    """The disk for objects that have no room in memory.

    Args:
        folder: the folder of the files; by default the folder for temporary files.
        free: returns the free bytes on the disk of a file.
    """

    def __init__(self, folder: Path | None = None, free: Callable[[int], int] = free_bytes) -> None:
        self._folder = folder
        self._free = free
        #: Existing files -> their bytes.
        self._files = weakref.WeakKeyDictionary[IO[bytes], int]()

    def write(self, contents: Iterable[bytes | memoryview]) -> list[Spilled]:
        """Write all of `contents` into one file, or none. Raises OSError if there is no room."""
        import tempfile  # few wraps write to disk, and it imports a dozen modules

        folder = self._folder or Path(tempfile.gettempdir())
        if _is_memory(folder):
            raise OSError(f"{folder} is in memory")
        file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 (theirs)
        others = sum(self._files.values())
        spilled = list[Spilled]()
        end = 0
        for content in contents:
            if not has_room(others + end, len(content), self._free(file.fileno())):
                what = f"objects have taken half of what is free in {folder}"
                raise OSError(errno.ENOSPC, f"{what}: {others + end} bytes")
            _write(file.fileno(), content, end)
            spilled.append(Spilled(file, end, len(content)))
            end += len(content)
        self._files[file] = end
        return spilled


class Backlog:
    """Bytes of a stream, read in order. Raises OSError if the disk has no room for a file."""

    def __init__(self) -> None:
        import tempfile

        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (`close` does)
        self._start = self._end = 0

    def __len__(self) -> int:
        return self._end - self._start

    def has_room(self, size: int) -> bool:
        return has_room(self._end, size, free_bytes(self._file.fileno()))

    def put(self, pieces: Iterable[bytes | memoryview]) -> None:
        """Append bytes. Raises OSError if the disk is full."""
        for piece in pieces:
            _write(self._file.fileno(), piece, self._end)
            self._end += len(piece)

    def take(self, most: int) -> bytes:
        """Return the next bytes, at most `most`; empty when all were taken."""
        data = os.pread(self._file.fileno(), most, self._start)
        self._start += len(data)
        return data

    def close(self) -> None:
        self._file.close()


def _write(descriptor: int, content: bytes | memoryview, place: int) -> None:
    """Write all of `content`. Raises OSError; a part may be written then."""
    left = memoryview(content)
    while left:
        written = os.pwrite(descriptor, left, place)
        left, place = left[written:], place + written


def _is_memory(folder: Path) -> bool:
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, kind = line.partition(" - ")
        if mount.split()[2] == number:
            return kind.split()[0] in _MEMORY
    return False
