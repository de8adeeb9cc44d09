"""Keeps freed memory of large inputs and outputs for the next ones.

By default glibc returns a large block to the system when it is freed. The next request that needs
such a block pays for every page again: from 100 KB on, a sixth to a third of a pool's request time.
"""

from __future__ import annotations

import ctypes

# malloc.h; with one arena, the memory is kept once, not for every thread.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


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
