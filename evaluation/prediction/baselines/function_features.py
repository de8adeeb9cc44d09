"""What a baseline is told of a function: its profile as numbers.

Of the features that Chiron §6.1 takes over from Gsight these are left out, since they need the
hardware's performance counters, which a virtual machine or a container rarely offers: misses of
the L1I, L1D, L2 and L3 caches, of both TLBs and of the branch predictor, memory-level parallelism,
occupancy of the last-level cache, instructions per cycle and memory bandwidth. Instead come the
lengths of the periods, which Chiron's predictor sees too.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from workflow.profile import FunctionProfile

#: System calls that wait for a disk; all others that block count as waiting for a network or a
#: timer, since reading a socket and reading a file look alike.
_DISK = frozenset(
    ["open", "openat", "stat", "fstat", "fcntl", "ioctl", "lseek", "fsync", "fdatasync", "close",
     "rename", "unlink", "mkdir", "getdents64"]
)  # fmt: skip


def _log(value: float) -> float:
    """Times and sizes span orders of magnitude; nothing stays 0."""
    return math.log1p(value)


def _blocks(function: FunctionProfile) -> int:
    return sum(period.kind == "block" for period in function.periods)


def _blocked_ms(function: FunctionProfile, disk: bool) -> float:
    return sum(
        period.duration_ms
        for period in function.periods
        if period.kind == "block" and (period.syscall in _DISK) == disk
    )


def _longest_ms(function: FunctionProfile, kind: str) -> float:
    return max((p.duration_ms for p in function.periods if p.kind == kind), default=0.0)


def _busy_share(function: FunctionProfile) -> float:
    busy_ms = function.time_ms("cpu") + function.time_ms("native")
    return busy_ms / function.latency_ms if function.latency_ms else 0.0


#: Name -> feature; in brackets what Chiron §6.1 calls it, where it names it.
_FEATURES: dict[str, Callable[[FunctionProfile], float]] = {
    "solo latency": lambda f: _log(f.latency_ms),
    "time with the GIL": lambda f: _log(f.time_ms("cpu")),
    "time computing without the GIL": lambda f: _log(f.time_ms("native")),
    "time blocked": lambda f: _log(f.time_ms("block")),
    "CPU utilization": _busy_share,
    "longest time with the GIL": lambda f: _log(_longest_ms(f, "cpu")),
    "longest time blocked": lambda f: _log(_longest_ms(f, "block")),
    "periods": lambda f: _log(len(f.periods)),
    "system calls that block (context switches)": lambda f: _log(_blocks(f)),
    "time in disk calls (disk IO)": lambda f: _log(_blocked_ms(f, disk=True)),
    "time in other calls (network bandwidth)": lambda f: _log(_blocked_ms(f, disk=False)),
    "memory (memory utilization)": lambda f: _log(f.memory_mib),
    "files": lambda f: _log(len(f.files_read) + len(f.files_written)),
    "bytes in and out (network bandwidth)": lambda f: _log((f.input_bytes or 0) + f.output_bytes),
}
NAMES = tuple(_FEATURES)


def function_features(function: FunctionProfile) -> list[float]:
    """The features of one function in the order of `NAMES`."""
    return [feature(function) for feature in _FEATURES.values()]
