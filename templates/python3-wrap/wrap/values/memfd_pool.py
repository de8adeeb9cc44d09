"""The memory that large objects are in, which is written again when nobody has them any more.

The process that has made a memfd alone can write it, as it had mapped it before it was sealed; all
others, and its own readers, get descriptors that can but read. Whether any reader is left, in
whatever process, the kernel knows: it grants a write lease of a file to nobody but its only holder
(fcntl(2), F_SETLEASE). To find and clear pages for an object takes four times as long
as to copy it, so what others have let go of is the first place to write the next one to.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import signal
import threading

#: linux/fcntl.h; Python's `fcntl` has it from 3.13 on.
_F_SEAL_FUTURE_WRITE = 0x0010
#: What nobody can do any more to what readers have.
SEALS = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | _F_SEAL_FUTURE_WRITE
#: linux/mman.h: have pages at once, and not each when it is first written.
_MADV_POPULATE_WRITE = 23
#: Values end with a byte that is 0, which C code that gets them may rely on.
END = 1
#: A memfd ends with how long the content is.
_LENGTH = 8
#: The size of a memfd is a multiple of a sixteenth of the next power of two, so that objects of
#: about one size have memfds of one size.
_STEPS = 16
#: Of a memfd that is used again, at least this share is used.
_USED = 0.5
#: Memfds that a process keeps, each with two descriptors.
_MOST = 16
#: The kernel writes no more than 2 GiB at once.
_WRITTEN = 1 << 30


def length_in(descriptor: int) -> int:
    """The length of the content of a memfd. Raises ValueError where that cannot be one's."""
    size = os.fstat(descriptor).st_size
    place = size - _LENGTH
    length = int.from_bytes(os.pread(descriptor, _LENGTH, place), "big") if place > 0 else size
    if length + END > place:
        raise ValueError("shared memory that is shorter than its content")
    return length


class Memfd:
    """A memfd for an object of up to `size` bytes, to be written by this process; OSError."""

    def __init__(self, size: int) -> None:
        needed = size + END + _LENGTH
        step = max(mmap.PAGESIZE, (1 << needed.bit_length()) // _STEPS)
        self.capacity = -(-needed // step) * step
        self._is_sealed = False
        self._written = 0
        made = os.memfd_create("object", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(made, self.capacity)
            # The kernel does not count the first descriptor among those that write.
            self._descriptor = os.open(f"/proc/self/fd/{made}", os.O_RDWR | os.O_CLOEXEC)
        finally:
            os.close(made)
        # What opens the file in the moment of a lease would have this process killed by SIGIO.
        fcntl.fcntl(self._descriptor, fcntl.F_SETSIG, signal.SIGURG)
        self._memory = mmap.mmap(self._descriptor, self.capacity)

    def fits(self, size: int) -> bool:
        """Whether it is large enough for an object of `size` bytes, and not far too large."""
        needed = size + END + _LENGTH
        return self.capacity * _USED <= needed <= self.capacity

    def is_free(self) -> bool:
        """Whether no process has a descriptor or a mapping of what was in it."""
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError:  # also where the kernel has no leases
            return False
        fcntl.fcntl(self._descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        return True

    def use_again(self) -> None:
        """Find all its pages at once, which is quicker than one by one."""
        if self._written:
            with contextlib.suppress(OSError):  # before Linux 5.14
                self._memory.madvise(_MADV_POPULATE_WRITE, 0, self._written)
            self._written = 0

    def content(self, size: int) -> memoryview:
        """Its first `size` bytes, to be written; they take memory as they are."""
        return memoryview(self._memory)[:size]

    def fill(self, content: memoryview) -> None:
        """Write `content` into it. Raises OSError."""
        if self._is_sealed:
            self._memory[: len(content)] = content
            return
        self._written = len(content)  # the mapping has none of its pages
        done = 0
        while done < len(content):
            done += os.pwrite(self._descriptor, content[done : done + _WRITTEN], done)

    def open(self, length: int) -> int:
        """A descriptor for readers of its first `length` bytes. Raises OSError."""
        self._memory[length] = 0
        self._memory[self.capacity - _LENGTH :] = length.to_bytes(_LENGTH, "big")
        if not self._is_sealed:
            fcntl.fcntl(self._descriptor, fcntl.F_ADD_SEALS, SEALS)
            self._is_sealed = True
        return os.open(f"/proc/self/fd/{self._descriptor}", os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        with contextlib.suppress(OSError, AttributeError):  # a handler may have closed it
            os.close(self._descriptor)


class MemfdPool:
    """The memfds of this process that may be written again."""

    def __init__(self) -> None:
        self._most = 0
        self._kept: list[Memfd] = []
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._let_go)

    def keep(self, size: int) -> None:
        """Keep memfds of so many bytes from now on, here and in processes that are forked."""
        self._most = size

    def take(self, size: int) -> Memfd:
        """A memfd for an object of `size` bytes, the caller's alone. Raises OSError."""
        with self._lock:
            for memfd in self._kept:
                if memfd.fits(size) and memfd.is_free():
                    self._kept.remove(memfd)
                    break
            else:
                memfd = None
        if memfd is None:
            return Memfd(size)
        memfd.use_again()
        return memfd

    def open(self, memfd: Memfd, length: int) -> int:
        """A descriptor for readers of what was written into a memfd that was taken.

        It is closed by the caller. The memfd is used again when it is, and all that was made of it.
        Raises OSError.
        """
        descriptor = memfd.open(length)
        with self._lock:
            self._kept.append(memfd)
            while len(self._kept) > _MOST or sum(each.capacity for each in self._kept) > self._most:
                del self._kept[0]
        return descriptor

    def _let_go(self) -> None:
        """In a process that was forked: they are those of the one that it was forked from."""
        self._lock = threading.Lock()
        self._kept = []


MEMFDS = MemfdPool()
