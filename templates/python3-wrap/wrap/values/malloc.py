"""Keeps memory that large inputs and outputs took for the next ones.

glibc gives a large block back when it is freed, and a request that needs one again pays for every
page of it: from 100 KB on, a sixth to a third of what a pool's request takes.
"""

from __future__ import annotations

import ctypes

#: Bytes at the end of the heap that are kept, once they were needed; larger blocks are not.
_KEPT = 32 << 20
#: The processes that a request runs in keep no more together than this share of what the wrap may.
_SHARE = 4
# malloc.h; with one arena they are kept once, and not for every thread.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def keep_freed(limit: int, processes: int) -> None:
    """From now on keep freed memory, in this process and those that are forked from it.

    Parameters
    ----------
    limit
        What the wrap may take, in bytes.
    processes
        How many processes of the wrap keep memory from one request to the next, where these come
        one at a time.
    """
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt"):  # musl has nothing to set
        return
    kept = min(_KEPT, limit // _SHARE // processes)
    for parameter, value in (
        (_M_ARENA_MAX, 1),
        (_M_TRIM_THRESHOLD, kept),
        (_M_MMAP_THRESHOLD, kept),
    ):
        libc.mallopt(parameter, value)
