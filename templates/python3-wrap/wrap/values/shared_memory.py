"""Shared memory: large objects cross between processes as sealed memfds, without a copy.

A memfd has no name. The kernel frees it with its last descriptor or mapping, unless the process
that wrote it reuses it (`wrap.values.memfd_pool`). Handlers get real `bytes` and `str` objects.
Their header is in a private page right before the pages of the memfd, so the content is not copied.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import mmap
import os
import sys
import sysconfig
from typing import TypeVar, cast

from wrap.values.memfd_pool import END, MEMFDS, SEALS, Memfd, length_in

Value = TypeVar("Value", bytes, str)

_MAP_FIXED = 0x10
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = (
    *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
    *(ctypes.c_int, ctypes.c_int, ctypes.c_long),
)
_LIBC.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_utf8_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyUnicode_AsUTF8AndSize", ctypes.pythonapi)
)
#: Whether headers of objects have the layout expected here; if not, values are copied.
_MAPPABLE = sys.implementation.name == "cpython" and not sysconfig.get_config_var("Py_GIL_DISABLED")


class Shared:
    """A sealed memfd.

    Args:
        descriptor: owned by this object from now on.
        is_ascii: whether it is known to hold an ASCII text.

    Raises ValueError if others could still change its content.
    """

    def __init__(self, descriptor: int, is_ascii: bool = False) -> None:
        self._descriptor = descriptor
        self._values: list[_Mapped] = []
        self.is_ascii = is_ascii
        try:
            sealed = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
        except OSError:
            sealed = 0
        if sealed & SEALS != SEALS:
            raise ValueError("a descriptor that is no sealed memory")
        self._length = length_in(descriptor)

    @classmethod
    def of(cls, value: str | bytes | bytearray | memoryview) -> Shared:
        """Copy `value` into shared memory; a text as UTF-8. Raises OSError if there is none."""
        content = _buffer(value)
        memfd = MEMFDS.take(len(content))
        memfd.fill(content)
        return cls(MEMFDS.open(memfd, len(content)), isinstance(value, str) and value.isascii())

    @classmethod
    def within(cls, memfd: Memfd, length: int) -> Shared:
        """Share what was written into the first `length` bytes of a memfd. Raises OSError."""
        return cls(MEMFDS.open(memfd, length))

    def __len__(self) -> int:
        return self._length

    def fileno(self) -> int:
        """The descriptor, valid as long as this object exists."""
        return self._descriptor

    def view(self) -> memoryview:
        """Return its bytes for sending, not copied."""
        mapped = mmap.mmap(self._descriptor, self._length + END, prot=mmap.PROT_READ)
        return memoryview(mapped)[: self._length]

    def data(self) -> bytes:
        """Return its bytes, not copied if this Python allows it."""
        return self._mapped(b"0") if _MAPPABLE else bytes(self.view())

    def text(self) -> str:
        """Return its text; ASCII is not copied if Python allows it. Raises UnicodeDecodeError."""
        if _MAPPABLE:
            self.is_ascii = self.is_ascii or self.data().isascii()  # 10 times as fast as decoding
            if self.is_ascii:
                return self._mapped("0")
        return str(self.view(), "utf-8")

    def _mapped(self, like: Value) -> Value:
        for mapped in self._values:
            if isinstance(mapped.value, type(like)):
                return mapped.value
        mapped = _Mapped(self._descriptor, self._length, like)
        self._values.append(mapped)
        return cast(Value, mapped.value)

    def __del__(self) -> None:
        with contextlib.suppress(OSError):  # a handler may have closed any descriptor
            os.close(self._descriptor)
        _release(self._values)


class _Mapped:
    """A `bytes` or an ASCII `str` whose content is the first `length` bytes of a file.

    It is like others of its type, except for its address. Its header is copied from another object,
    including the reference count. So the count stays too high, and nothing ever frees the object.

    Args:
        like: a value of the type, with at least one character and less than a page.
    """

    value: bytes | str

    def __init__(self, descriptor: int, length: int, like: bytes | str) -> None:
        header = sys.getsizeof(like) - len(like) - END
        self._size = mmap.PAGESIZE + length + END
        private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._start = _map(None, self._size, mmap.PROT_READ | mmap.PROT_WRITE, private, -1)
        try:
            content = self._start + mmap.PAGESIZE
            fixed = mmap.MAP_SHARED | _MAP_FIXED
            _map(content, length + END, mmap.PROT_READ, fixed, descriptor)
        except OSError:
            _LIBC.munmap(self._start, self._size)
            raise
        ctypes.memmove(content - header, id(like), header)
        # After the common part of all headers: the length, and the hash, which is not known yet.
        fields = (ctypes.c_ssize_t * 2).from_address(content - header + object.__basicsize__)
        fields[:] = [length, -1]
        self.value = ctypes.cast(content - header, ctypes.py_object).value
        self._references = sys.getrefcount(self.value)

    @property
    def is_used(self) -> bool:
        return sys.getrefcount(self.value) > self._references

    def unmap(self) -> None:
        del self.value
        _LIBC.munmap(self._start, self._size)


#: Values that handlers still refer to after their executions.
_KEPT: list[_Mapped] = []


def _release(values: list[_Mapped]) -> None:
    """Unmap `values`, and earlier values in `_KEPT`, except those that are still used.

    Any thread may call it at any time: each takes the values that it checks out of the list.
    """
    with contextlib.suppress(IndexError):
        while True:
            values.append(_KEPT.pop())
    for each in values:
        if each.is_used:
            _KEPT.append(each)
        else:
            each.unmap()


def _map(address: int | None, length: int, protection: int, flags: int, descriptor: int) -> int:
    start = _LIBC.mmap(address, length, protection, flags, descriptor, 0)
    if start in (None, ctypes.c_void_p(-1).value):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int(start)


def _buffer(value: str | bytes | bytearray | memoryview) -> memoryview:
    """Return the bytes of `value`; the bytes of an ASCII text are not copied."""
    if isinstance(value, str) and value.isascii():
        place = _utf8_of(value, None)
        return memoryview((ctypes.c_char * len(value)).from_address(place)).cast("B")
    return memoryview(value.encode() if isinstance(value, str) else value)
