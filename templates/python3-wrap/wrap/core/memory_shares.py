"""How the memory of a replica is divided. All sizes are in bytes.

Parameters of all functions: ``memory``, the memory of the replica, and ``processes``, how many of
its processes keep memory between requests.
"""

from __future__ import annotations

#: Connections hold a quarter. The texts made of their bytes take as much again, and so do outputs.
#: One output may have a quarter. So may all waiting objects, unless the needs of the functions are
#: configured. The memory that processes keep for reuse is a quarter in all.
_QUARTER = 4
#: The share of the free memory for a request beyond the size that the replica was planned for: if
#: five functions read it as JSON at once, each of its bytes took 20.
_REQUEST = 24
#: The maximum that one process keeps for reuse: at the end of its heap; of shared memory.
_FREED, _SHARED = 32 << 20, 256 << 20
#: The minimum of idle threads, their share of a process's part, and the memory of each: 18 KiB
#: measured after small handlers.
_THREADS, _IDLE, _THREAD = 64, 16, 1 << 16


def of_connections(memory: int) -> int:
    """Return how much all connections of clients may hold."""
    return memory // _QUARTER


def of_output(memory: int) -> int:
    """Return the maximum size of one output, or of an answer of another wrap."""
    return memory // _QUARTER


def of_objects(memory: int) -> int:
    """Return the memory of waiting objects, unless the needs of the functions are configured."""
    return memory // _QUARTER


def of_request(memory: int, taken: int, sized_for: int) -> int:
    """Return the maximum size of a request, if `taken` bytes are used before the first request.

    >>> of_request(1_000_000, 280_000, sized_for=1000)
    31000
    >>> of_request(1_000_000, 2_000_000, sized_for=1000)
    1000
    """
    return sized_for + max(0, memory - taken) // _REQUEST


def freed(memory: int, processes: int) -> int:
    """Return how much each process keeps at the end of its heap."""
    return min(_FREED, memory // _QUARTER // processes)


def shared(memory: int, processes: int) -> int:
    """Return how much shared memory each process keeps for reuse."""
    return min(_SHARED, memory // _QUARTER // processes)


def idle_threads(wanted: int, memory: int, processes: int) -> int:
    """Return how many idle threads each process keeps: enough for a wide stage, if they fit.

    Starting a thread for each task of a wide stage doubles the CPU time of a request.
    """
    return max(_THREADS, min(wanted, memory // processes // _IDLE // _THREAD))
