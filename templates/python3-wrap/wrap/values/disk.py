"""What goes to disk: in files that have no name, so that nothing of them is ever left behind.

What goes there takes no more than half of what is free without it: others write to the disk too.
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

#: File systems that are memory.
_MEMORY = ("tmpfs", "ramfs")


def free_bytes(descriptor: int) -> int:
    """How many bytes the disk of a file has left."""
    disk = os.fstatvfs(descriptor)
    return disk.f_bavail * disk.f_frsize


class Spilled:
    """An object in a file, which others may be in too; it goes with the last of them."""

    def __init__(self, file: IO[bytes], place: int, length: int) -> None:
        self._file = file
        self._place = place
        self._length = length

    def __len__(self) -> int:
        return self._length

    def view(self) -> memoryview:
        """Its bytes, to be sent: the kernel reads them when they are wanted."""
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
        """Its text. Raises UnicodeDecodeError where it is none."""
        return str(self.view(), "utf-8")


class Disk:
    """Where objects go that have no room in memory.

    Args:
        folder: where the files are; a folder for temporary files if none is said.
        free: gives the bytes that are left on the disk of a file.
    """

    def __init__(self, folder: Path | None = None, free: Callable[[int], int] = free_bytes) -> None:
        self._folder = folder
        self._free = free
        #: Files that are there -> their bytes.
        self._files = weakref.WeakKeyDictionary[IO[bytes], int]()

    def write(self, contents: Iterable[bytes | memoryview]) -> list[Spilled]:
        """Put all of `contents` into one file, or none: raises OSError where there is no room."""
        import tempfile  # few wraps write to disk, and it imports a dozen of modules

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
    """Bytes of a stream that its reader takes in their order; OSError without room for a file."""

    def __init__(self) -> None:
        import tempfile

        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (`close` does)
        self._start = self._end = 0

    def __len__(self) -> int:
        return self._end - self._start

    def has_room(self, size: int) -> bool:
        """Whether so many bytes more may go to disk."""
        return has_room(self._end, size, free_bytes(self._file.fileno()))

    def put(self, pieces: Iterable[bytes | memoryview]) -> None:
        """Add bytes. Raises OSError where the disk is full."""
        for piece in pieces:
            _write(self._file.fileno(), piece, self._end)
            self._end += len(piece)

    def take(self, most: int) -> bytes:
        """The next bytes, no more than `most`; none where all were taken."""
        data = os.pread(self._file.fileno(), most, self._start)
        self._start += len(data)
        return data

    def close(self) -> None:
        """Do without them, and without the file."""
        self._file.close()


def _write(descriptor: int, content: bytes | memoryview, place: int) -> None:
    """Write all of `content`. Raises OSError; a part may have been written then."""
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
