"""Keeps memory that large inputs and outputs took for the next ones.

glibc gives a large block back when it is freed, and a request that needs one again pays for every
page of it: from 100 KB on, a sixth to a third of what a pool's request takes.
"""

from __future__ import annotations

import ctypes

# malloc.h; with one arena they are kept once, and not for every thread.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def keep_freed(size: int) -> None:
    """Keep so many freed bytes from now on, in this process and those that are forked from it.

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
