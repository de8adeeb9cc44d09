"""Keeps memory that large inputs and outputs took for the next ones, and has it in large pages.

glibc gives a large block back when it is freed, and a request that needs one again pays for every
page of it: with 10 MB on their way through several copies, more than for copying them. A process
that is forked for one request finds nothing that was kept: it pays, but for 2 MiB at a time.
"""

from __future__ import annotations

import ctypes
import mmap

#: Bytes at the end of the heap that are kept, once they were needed; larger blocks are not.
_KEPT = 32 << 20
#: All processes of a wrap together keep no more than this share of what it may take.
_SHARE = 4
_LARGE_PAGE = 2 << 20
#: Room for small blocks before the large pages: the first one there would take a whole page.
_FOR_SMALL = 4 << 20
#: Between the two lies a block that stays, so that they do not become one when they are free. It
#: takes no memory, as nobody writes to it, and is so long that it fits into no hole.
_GUARD = 1 << 20
#: What glibc adds to two blocks, and more.
_HEADERS = 64
#: While modules are imported; glibc's own, which it would raise by itself.
_APART = 128 << 10
# malloc.h; with one arena they are kept once, and not for every thread.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def keep_apart() -> None:
    """Have large blocks outside the heap: what imports take and free shall leave no holes in it.

    Requests would fill these, page by page, before they came to the large pages.
    """
    _set({_M_ARENA_MAX: 1, _M_MMAP_THRESHOLD: _APART})


def keep_freed(limit: int, processes: int) -> None:
    """From now on keep freed memory, in this process and those that are forked from it.

    Parameters
    ----------
    limit
        What the wrap may take, in bytes.
    processes
        How many processes of the wrap keep memory from one request to the next.
    """
    kept = min(_KEPT, limit // _SHARE // processes)
    _set({_M_TRIM_THRESHOLD: kept, _M_MMAP_THRESHOLD: kept})
    libc = _glibc()
    if libc is not None and kept > 2 * _FOR_SMALL:
        libc.malloc.restype = ctypes.c_void_p
        libc.malloc_trim(0)  # what was used before fork is shared, and copied by 4 KiB
        _leave_room(libc)
        _use_large_pages(libc, kept - _LARGE_PAGE)


def _set(parameters: dict[int, int]) -> None:
    libc = _glibc()
    if libc is None:
        return
    for parameter, value in parameters.items():
        libc.mallopt(parameter, value)


def _leave_room(libc: ctypes.CDLL) -> None:
    """Have small blocks fit before the next large page but one or so, and large ones not."""
    begin = libc.malloc(_FOR_SMALL)  # whatever is written in the large pages makes one small
    libc.free(ctypes.c_void_p(begin))
    room = libc.malloc(_aligned(begin + _FOR_SMALL + _HEADERS) - begin - _GUARD)
    libc.malloc(_GUARD - _HEADERS)
    libc.free(ctypes.c_void_p(room))


def _use_large_pages(libc: ctypes.CDLL, size: int) -> None:
    """Have the last `size` bytes of the heap in large pages; no memory until they are used."""
    begin = libc.malloc(size)
    start = _aligned(begin)
    length = (begin + size - start) // _LARGE_PAGE * _LARGE_PAGE
    libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(length), mmap.MADV_HUGEPAGE)
    libc.free(ctypes.c_void_p(begin))


def _aligned(address: int) -> int:
    """The next address at which a large page can begin."""
    return -(-address // _LARGE_PAGE) * _LARGE_PAGE


def _glibc() -> ctypes.CDLL | None:
    """The C library, if it is the GNU one: musl has nothing to set."""
    libc = ctypes.CDLL(None)
    return libc if hasattr(libc, "mallopt") else None
