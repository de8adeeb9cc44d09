"""Memory of large inputs and outputs: what is freed is kept for the next ones.

By default glibc returns a large block to the system when it is freed. The next request that needs
such a block pays for every page again: from 100 KB on, a sixth to a third of a pool's request time.
"""

from __future__ import annotations

import ctypes

# malloc.h; with one arena, the memory is kept once, not for every thread.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_bytearray = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t)(
    ("PyByteArray_FromStringAndSize", ctypes.pythonapi)
)


def keep_freed(size: int) -> None:
    """Keep up to `size` freed bytes, in this process and in processes forked from it.

    They are at the end of the heap; larger blocks are not kept.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt"):  # musl has nothing to set
        return
    for parameter, value in (
        (_M_ARENA_MAX, 1),
        (_M_TRIM_THRESHOLD, size),
        (_M_MMAP_THRESHOLD, size),
    ):
        libc.mallopt(parameter, value)


def unfilled(length: int) -> bytearray:
    """Return a buffer of `length` bytes, which takes memory only as it is filled.

    ``bytearray(length)`` writes zeros into all of it. Bytes that have not been written may be
    anything: pass on only written bytes.
    """
    return _bytearray(None, length)  # type: ignore[no-any-return]
