"""Keeps memory that large inputs and outputs took for the next ones, up to a limit.

glibc gives a large block back when it is freed, and a request that needs one again pays for every
page of it: with 10 MB on their way through several copies, more than for copying them.
"""

from __future__ import annotations

import ctypes

#: Bytes at the end of the heap that are kept, once they were needed.
_KEPT = 32 << 20
# malloc.h; with one arena they are kept once, and not for every thread.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def keep_freed() -> None:
    """Set it for this process and those that are forked from it; nothing where libc cannot."""
    libc = ctypes.CDLL(None)
    mallopt = getattr(libc, "mallopt", None)  # musl has none
    if mallopt is not None:
        for parameter, value in (
            (_M_ARENA_MAX, 1),
            (_M_TRIM_THRESHOLD, _KEPT),
            (_M_MMAP_THRESHOLD, _KEPT),
        ):
            mallopt(parameter, value)
