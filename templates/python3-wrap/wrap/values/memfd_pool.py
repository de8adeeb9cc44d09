"""The memory of large objects, which is reused when nobody holds them any more.

Only the process that made a memfd can write it, as it had mapped it before the memfd was sealed.
All others, and its own readers, get read-only descriptors. The kernel can tell whether any process
still reads: it grants a write lease of a file only to its only holder (fcntl(2), F_SETLEASE).
Finding and clearing pages for an object takes four times as long as copying it. So an object is
first written to memory that others have released.
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
#: Operations that nobody can perform any more once readers have the memory.
SEALS = fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | _F_SEAL_FUTURE_WRITE
#: linux/mman.h: map all pages at once, not each when it is first written.
_MADV_POPULATE_WRITE = 23
#: Values end with a zero byte, on which C code may rely.
END = 1
#: The last bytes of a memfd are the length of its content.
_LENGTH = 8
#: The size of a memfd is a multiple of this fraction (1 in 16) of the next power of two. So objects
#: of similar sizes have memfds of one size.
_STEPS = 16
#: A memfd is reused only for an object that fills at least this share of it.
_USED = 0.5
#: The most memfds that a process keeps, each with two descriptors.
_MOST = 16
#: The kernel writes no more than 2 GiB at once.
_WRITTEN = 1 << 30


def length_in(descriptor: int) -> int:
    """Return the length of the content of a memfd. Raises ValueError if it is impossible."""
    size = os.fstat(descriptor).st_size
    place = size - _LENGTH
    length = int.from_bytes(os.pread(descriptor, _LENGTH, place), "big") if place > 0 else size
    if length + END > place:
        raise ValueError("shared memory that is shorter than its content")
    return length


class Memfd:
    """A memfd for an object of up to `size` bytes, which this process writes. Raises OSError."""

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
        # If the file is opened during a lease, SIGIO, the default, would kill this process.
        fcntl.fcntl(self._descriptor, fcntl.F_SETSIG, signal.SIGURG)
        self._memory = mmap.mmap(self._descriptor, self.capacity)

    def fits(self, size: int) -> bool:
        """Return whether it is large enough for `size` bytes, and not far too large."""
        needed = size + END + _LENGTH
        return self.capacity * _USED <= needed <= self.capacity

    def is_free(self) -> bool:
        """Return whether no process has a descriptor or a mapping of its content."""
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        except OSError:  # also where the kernel has no leases
            return False
        fcntl.fcntl(self._descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        return True

    def use_again(self) -> None:
        """Map all its pages at once, which is faster than one by one."""
        if self._written:
            with contextlib.suppress(OSError):  # before Linux 5.14
                self._memory.madvise(_MADV_POPULATE_WRITE, 0, self._written)
            self._written = 0

    def content(self, size: int) -> memoryview:
        """Return its first `size` bytes for writing; they take memory as they are written."""
        return memoryview(self._memory)[:size]

    def fill(self, content: memoryview) -> None:
        """Write `content` into it. Raises OSError."""
        if self._is_sealed:
            self._memory[: len(content)] = content
            return
        self._written = len(content)  # the mapping does not have these pages yet
        done = 0
        while done < len(content):
            done += os.pwrite(self._descriptor, content[done : done + _WRITTEN], done)

    def open(self, length: int) -> int:
        """Return a descriptor for readers of its first `length` bytes. Raises OSError."""
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
        """Keep memfds of up to `size` bytes together, here and in processes forked later."""
        self._most = size

    def take(self, size: int) -> Memfd:
        """Return a memfd for an object of `size` bytes, for the caller alone. Raises OSError."""
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
        """Return a descriptor for readers of what was written into a taken memfd.

        The caller closes it. The memfd is reused when the descriptor and all its copies and
        mappings are closed. Raises OSError.
        """
        descriptor = memfd.open(length)
        with self._lock:
            self._kept.append(memfd)
            while len(self._kept) > _MOST or sum(each.capacity for each in self._kept) > self._most:
                del self._kept[0]
        return descriptor

    def _let_go(self) -> None:
        """In a forked process: drop the memfds, which belong to the parent."""
        self._lock = threading.Lock()
        self._kept = []


MEMFDS = MemfdPool()
