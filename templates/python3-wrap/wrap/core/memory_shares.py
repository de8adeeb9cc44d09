"""How the memory that a replica may take is divided. All sizes are in bytes.

Parameters of all functions: ``memory``, what the replica may take, and ``processes``, how many of
its processes keep memory from one request to the next.
"""

from __future__ import annotations

#: Connections hold a quarter of it; the texts that are made of their bytes take as much again, and
#: so do the outputs. One output may have a quarter, and so may all objects that wait, if nobody has
#: said what the functions need. What processes keep for reuse is a quarter of it in all.
_QUARTER = 4
#: A request that is larger than any that the replica was sized for may have this share of what is
#: free: if five functions read it as JSON at once, each of its bytes took 20.
_REQUEST = 24
#: What one process keeps for reuse at most: at the end of its heap; of memory that is shared.
_FREED, _SHARED = 32 << 20, 256 << 20
#: Idle threads that are kept at least, the share that they may take of a process's part, and what
#: each takes: 18 KiB measured after small handlers.
_THREADS, _IDLE, _THREAD = 64, 16, 1 << 16


def of_connections(memory: int) -> int:
    """What all connections of clients may hold."""
    return memory // _QUARTER


def of_output(memory: int) -> int:
    """How large one output, or an answer of another wrap, may be."""
    return memory // _QUARTER


def of_objects(memory: int) -> int:
    """What objects that wait may take in memory, if nobody has said what the functions need."""
    return memory // _QUARTER


def of_request(memory: int, taken: int, sized_for: int) -> int:
    """How large a request may be, if so much is `taken` before the first request.

    >>> of_request(1_000_000, 280_000, sized_for=1000)
    31000
    >>> of_request(1_000_000, 2_000_000, sized_for=1000)
    1000
    """
    return sized_for + max(0, memory - taken) // _REQUEST


def freed(memory: int, processes: int) -> int:
    """What each process keeps at the end of its heap."""
    return min(_FREED, memory // _QUARTER // processes)


def shared(memory: int, processes: int) -> int:
    """What each process keeps of memory that it has shared with others."""
    return min(_SHARED, memory // _QUARTER // processes)


def idle_threads(wanted: int, memory: int, processes: int) -> int:
    """How many idle threads each process keeps: as many as a wide stage takes, if there is room.

    To start a thread for each task of a wide stage doubles the CPU time of a request.
    """
    return max(_THREADS, min(wanted, memory // processes // _IDLE // _THREAD))
