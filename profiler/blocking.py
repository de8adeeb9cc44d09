"""Find the time in which a function waits: none of its threads could use the interpreter.

A function computes as long as one of its threads does. So a handler that waits in a ``join()`` for
its own thread computes with that thread. Processes that it started have their own GIL; waiting for
them is waiting.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from chiron.profiler.handler_run import STARTING, HandlerRun, Strand
from chiron.profiler.strace_text import Call

_FILES = (
    "open openat openat2 creat close read pread64 readv preadv preadv2 write pwrite64 writev "
    "pwritev pwritev2 fsync fdatasync sync syncfs sync_file_range msync truncate ftruncate "
    "fallocate getdents64 unlink unlinkat rename renameat renameat2 mkdir mkdirat rmdir "
    "sendfile splice copy_file_range flock io_getevents"
)
_SOCKETS = (
    "connect accept accept4 recvfrom recvmsg recvmmsg sendto sendmsg sendmmsg "
    "poll ppoll select pselect6 epoll_wait epoll_pwait epoll_pwait2"
)
_WAITS = (
    "nanosleep clock_nanosleep pause wait4 waitid rt_sigtimedwait rt_sigsuspend semop semtimedop "
    "msgrcv msgsnd mq_timedreceive mq_timedsend futex restart_syscall"
)
#: The system calls that can block (Chiron §3.2 names open, read, write, poll, select, sendto).
BLOCKING = frozenset(f"{_FILES} {_SOCKETS} {_WAITS}".split())
#: Calls that look up a file, which include the markers; and calls that create another name for it.
_LOOKING = "access faccessat faccessat2 stat lstat newfstatat statx readlink readlinkat"
_LINKING = "link linkat symlink symlinkat mknod mknodat"
LOOKING, LINKING = frozenset(_LOOKING.split()), frozenset(_LINKING.split())
#: The calls that strace must show: these, and those that block, start a thread or bind a port.
TRACED = BLOCKING | STARTING | LOOKING | LINKING | {"bind"}

#: A thread waits for the GIL one switch interval (5 ms) at a time; longer waits are other locks.
LONGEST_GIL_WAIT_S = 0.006


@dataclass(frozen=True)
class Wait:
    """A wait of a function in `syscall`, from `start_ms` to `end_ms` after its begin."""

    start_ms: float
    end_ms: float
    syscall: str


def waits(run: HandlerRun, *, gil: bool = True) -> list[Wait]:
    """Return the waits of `run` as traced, in order and disjoint; `gil` if threads wait for it."""
    first, *others = (strand for strand in run.strands if strand.shares_gil)
    spans = [(call.start_s, _end(call, first), call.name) for call in _blocked(first, gil=gil)]
    for strand in others:
        spans = _overlaps(spans, _idle(strand, run, gil=gil))
    return _apart(spans, run)


def _apart(spans: Iterable[tuple[float, float, str]], run: HandlerRun) -> list[Wait]:
    """Return the spans within the run, without overlaps from strace's rounding errors."""
    found: list[Wait] = []
    after_ms = 0.0
    for start_s, end_s, syscall in spans:
        start_ms = max(after_ms, (start_s - run.start_s) * 1000)
        end_ms = min(run.duration_ms, (end_s - run.start_s) * 1000)
        if start_ms < end_ms:
            found.append(Wait(start_ms, end_ms, syscall))
            after_ms = end_ms
    return found


def _blocked(strand: Strand, *, gil: bool) -> list[Call]:
    calls = (call for call in strand.calls if call.name in BLOCKING)
    return [call for call in calls if not _wants_gil(call, gil=gil)]


def _wants_gil(call: Call, *, gil: bool) -> bool:
    """Return whether a futex call waits for the GIL or does not wait at all.

    Waiting for the GIL is not idle, as another thread holds it. CPython waits for the GIL with a
    timeout. It waits for the program's locks without one, unless the program sets one.
    """
    if call.name != "futex":
        return False
    if "FUTEX_WAIT" not in call.arguments:
        return True
    if not gil:
        return False
    has_timeout = "{tv_" in call.arguments
    return has_timeout and call.end_s is not None and call.end_s - call.start_s < LONGEST_GIL_WAIT_S


def _idle(strand: Strand, run: HandlerRun, *, gil: bool) -> list[tuple[float, float]]:
    """Return the times when `strand` does not compute: while it blocks or does not exist."""
    blocked = [(call.start_s, _end(call, strand)) for call in _blocked(strand, gil=gil)]
    return [(run.start_s, strand.start_s), *blocked, (strand.end_s, run.end_s)]


def _end(call: Call, strand: Strand) -> float:
    return strand.end_s if call.end_s is None else call.end_s


def _overlaps(
    spans: Iterable[tuple[float, float, str]], others: list[tuple[float, float]]
) -> list[tuple[float, float, str]]:
    return [
        (max(start, low), min(end, high), syscall)
        for start, end, syscall in spans
        for low, high in others
        if max(start, low) < min(end, high)
    ]
