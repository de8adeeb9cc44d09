"""Objects on disk: in files that have no name, so that nothing of them is ever left behind."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

#: File systems that are memory.
_MEMORY = ("tmpfs", "ramfs")


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
        """Its bytes."""
        return bytes(self.view())

    def text(self) -> str:
        """Its text. Raises UnicodeDecodeError where it is none."""
        return str(self.view(), "utf-8")


class Disk:
    """Where objects go that have no room in memory.

    Parameters
    ----------
    folder
        Where the files are; a folder for temporary files if none is said.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or Path(tempfile.gettempdir())

    def write(self, contents: Iterable[bytes | memoryview]) -> list[Spilled]:
        """Put all of `contents` into one file, or none: raises OSError where there is no room."""
        if _is_memory(self._folder):
            raise OSError(f"{self._folder} is in memory")
        file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 (theirs)
        spilled = list[Spilled]()
        end = 0
        for content in contents:
            start, left = end, memoryview(content)
            while left:
                written = os.write(file.fileno(), left)
                left, end = left[written:], end + written
            spilled.append(Spilled(file, start, end - start))
        return spilled


def _is_memory(folder: Path) -> bool:
    device = folder.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, kind = line.partition(" - ")
        if mount.split()[2] == number:
            return kind.split()[0] in _MEMORY
    return False
