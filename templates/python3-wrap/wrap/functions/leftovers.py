"""Descriptors, threads, timers and mappings that the import of a function leaves open.

After a fork, parent and child share each open connection and each file position. Only the forking
thread exists in the child: locks of other threads stay held, and their work is never done.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import io
import os
import signal
import socket
import stat
import sys
import threading
import time
import warnings
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from logging.handlers import BufferingHandler

    Writer = io.BufferedWriter | io.TextIOWrapper | BufferingHandler

_OWN = Path("/proc/self")
_DESCRIPTORS = _OWN / "fd"
_LISTING = str(_DESCRIPTORS)
#: Names of changes: a program, or a daemon thread, still runs after the function's answer.
RUN_ON, THREADS_RUN_ON = "programs that run on", "daemon threads that run on"
#: Name of a change: an import has enabled the GIL of a Python that is built without it.
GIL_ENABLED = "the GIL"
#: How long the kernel may list a thread that has ended, and the poll interval, in seconds.
_LISTED_S, _AGAIN_S = 0.1, 0.005

#: Timers that send signals.
_TIMERS = ("ITIMER_REAL", "ITIMER_VIRTUAL", "ITIMER_PROF")
#: The files of named semaphores, which exist to be shared by processes.
_SEMAPHORE = "/dev/shm/sem."  # noqa: S108

#: The type of a thread that C code started; `threading` lists it until the process ends.
_FOREIGN: type = vars(threading)["_DummyThread"]


class Descriptor(NamedTuple):
    """An open file descriptor."""

    #: The kernel's name: a path, or for example ``socket:[77]``.
    name: str
    #: The type bits of `st_mode`, and the flags of open(2).
    kind: int
    flags: int
    #: Whether the file is mapped into memory and no file object reads it.
    only_mapped: bool = False

    @property
    def can_be_shared(self) -> bool:
        """Whether two processes can use copies of the descriptor independently.

        A device has no position. The kernel appends at the end of the file.
        """
        if stat.S_ISCHR(self.kind):
            return True
        if not stat.S_ISREG(self.kind):
            return False
        access = self.flags & os.O_ACCMODE
        appends = access == os.O_WRONLY and bool(self.flags & os.O_APPEND)
        return appends or (access == os.O_RDONLY and self.only_mapped)


class Open(NamedTuple):
    """The open resources of a process."""

    #: Descriptor number -> descriptor; thread id -> name.
    descriptors: dict[int, Descriptor]
    threads: dict[int, str]
    #: Writable shared mappings, which a forked process would share: address and name.
    mappings: frozenset[str] = frozenset()
    #: Interval timers that run, which a forked process would not have.
    timers: frozenset[str] = frozenset()

    def since(self, before: Open) -> Open:
        known = before.descriptors.items()
        descriptors = dict(each for each in self.descriptors.items() if each not in known)
        threads = {n: name for n, name in self.threads.items() if n not in before.threads}
        mappings, timers = self.mappings - before.mappings, self.timers - before.timers
        return Open(descriptors, threads, mappings, timers)

    def unshareable(self, outlasting: Collection[int]) -> Open:
        """Return the resources that processes cannot share.

        Args:
            outlasting: ids of the threads that survive a fork in the parent. Libraries with fork
                handlers, such as OpenBLAS, end their threads before each fork.
        """
        descriptors = {n: each for n, each in self.descriptors.items() if not each.can_be_shared}
        threads = {n: name for n, name in self.threads.items() if n in outlasting}
        return Open(descriptors, threads, self.mappings, self.timers)

    def close_at_exec(self) -> None:
        """Close these descriptors when another program replaces this one."""
        for number in self.descriptors:
            with contextlib.suppress(OSError):
                os.set_inheritable(number, False)


def look() -> Open:
    descriptors = {}
    for number in _numbers(_DESCRIPTORS):
        with contextlib.suppress(OSError):  # the descriptor of the listing itself is closed
            descriptors[number] = _descriptor(number)
    threads = {}
    for number in _numbers(_OWN / "task"):
        with contextlib.suppress(OSError):
            threads[number] = (_OWN / "task" / str(number) / "comm").read_text().strip()
    timers = frozenset(name for name in _TIMERS if signal.getitimer(getattr(signal, name))[0])
    return Open(descriptors, threads, frozenset(_mappings()), timers)


def count() -> int:
    """Return the number of open descriptors; 0 before Linux 6.2, where counting is slow."""
    try:
        return os.stat(_LISTING).st_size  # noqa: PTH116 (a fork makes each call of Path's slow)
    except OSError:
        return 0


def outlasting(threads: Collection[int]) -> set[int]:
    """Return the threads that are still running after a fork; forks once if there are any."""
    if not threads:
        return set()
    with warnings.catch_warnings():  # Python warns of a fork beside threads: this child ends
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    left, until = set(threads), time.monotonic() + _LISTED_S
    while left and time.monotonic() < until:
        time.sleep(_AGAIN_S)
        left &= set(_numbers(_OWN / "task"))
    return left


def named(left: Open) -> Iterator[str]:
    """Yield a readable name of each resource in `left`; Python threads by their own names."""
    for number, descriptor in left.descriptors.items():
        yield _socket_name(number) if stat.S_ISSOCK(descriptor.kind) else descriptor.name
    names = {each.native_id: each.name for each in threading.enumerate()}
    for number, name in left.threads.items():
        yield f"thread {names.get(number, name)}"
    for mapping in left.mappings:
        yield f"shared memory {mapping}"
    for timer in left.timers:
        yield f"timer {timer}"


def alive(*kinds: type) -> list[Any]:
    """Return the live objects of these classes, without those that ``gc.freeze`` excluded."""
    objects = gc.get_objects()
    wanted = {kind for kind in set(map(type, objects)) if issubclass(kind, kinds)}
    return [each for each in objects if type(each) in wanted]


def writers() -> list[Writer]:
    """Return the files and log handlers of this process whose buffers may hold unwritten data."""
    logs = sys.modules.get("logging.handlers")
    kinds = (logs.BufferingHandler,) if logs else ()
    found = alive(io.BufferedWriter, io.TextIOWrapper, *kinds)
    frozen = filter(None, (sys.__stdout__, sys.__stderr__))
    return list(filter(_can_write, [*found, *frozen]))


def flush(files: Iterable[Writer]) -> None:
    """Flush the buffers of `files`; ignores closed files."""
    for file in files:
        with contextlib.suppress(Exception):  # handlers may raise anything
            file.flush()


def _can_write(file: Writer) -> bool:
    if not isinstance(file, io.BufferedWriter | io.TextIOWrapper):
        return True
    try:
        return not file.closed and file.writable()
    except ValueError:  # its buffer has been detached
        return False


def children() -> list[int]:
    """Return the pids of all children of this process, of every thread."""
    found = ""
    for number in _numbers(_OWN / "task"):
        with contextlib.suppress(OSError):
            found += (_OWN / "task" / str(number) / "children").read_text()
    return [int(each) for each in found.split()]


def programs() -> set[int]:
    """Return the running children without `multiprocessing`'s helpers, which it ends itself."""
    helpers = {
        getattr(getattr(sys.modules.get(f"multiprocessing.{name}"), f"_{name}", None), pid, None)
        for name, pid in (("resource_tracker", "_pid"), ("forkserver", "_forkserver_pid"))
    }
    return {each for each in children() if each not in helpers and _runs(each)}


def daemons() -> set[threading.Thread]:
    """Return the daemon threads that do not belong to the wrap."""
    return {
        each
        for each in threading.enumerate()
        if each.daemon
        and not isinstance(each, _FOREIGN)
        and not str(getattr(getattr(each, "_target", None), "__module__", "")).startswith("wrap.")
    }


def gil_enabled() -> bool:
    """Return whether a Python that is built without a GIL has enabled it for a module."""
    return "t" in sys.abiflags and bool(vars(sys)["_is_gil_enabled"]())


@contextlib.contextmanager
def as_no_daemon() -> Iterator[None]:
    """Let new threads in a block default to non-daemon, as threads of the main thread do."""
    own = vars(threading.current_thread())
    usual, own["_daemonic"] = own["_daemonic"], False
    try:
        yield
    finally:
        own["_daemonic"] = usual


def _runs(pid: int) -> bool:
    with contextlib.suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2]
        return state.split()[0] != "Z"
    return False


def end_children() -> None:
    for pid in children():
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _numbers(folder: Path) -> list[int]:
    return [int(each.name) for each in folder.iterdir()]


def _descriptor(number: int) -> Descriptor:
    name = str((_DESCRIPTORS / str(number)).readlink())
    kind, flags = os.fstat(number).st_mode, fcntl.fcntl(number, fcntl.F_GETFL)
    only_read = stat.S_ISREG(kind) and flags & os.O_ACCMODE == os.O_RDONLY
    return Descriptor(name, kind, flags, only_read and _is_only_mapped(number, name))


def _mappings() -> Iterator[str]:
    """Yield the writable shared mappings of this process without semaphores."""
    for line in (_OWN / "maps").read_text().splitlines():
        address, rights, *_, name = line.split(maxsplit=5)
        if rights[1] == "w" and rights[3] == "s" and not name.startswith(_SEMAPHORE):
            yield f"{address} {name}"


def _is_only_mapped(number: int, name: str) -> bool:
    if not any(line.endswith(f" {name}") for line in (_OWN / "maps").read_text().splitlines()):
        return False
    return all(file.closed or file.fileno() != number for file in alive(io.FileIO))


def _socket_name(number: int) -> str:
    with socket.socket(fileno=os.dup(number)) as found:
        for address_of in (found.getpeername, found.getsockname):
            with contextlib.suppress(OSError):
                address = address_of()
                text = (
                    ":".join(map(str, address[:2])) if isinstance(address, tuple) else str(address)
                )
                return f"socket {text}"
    return "socket"
