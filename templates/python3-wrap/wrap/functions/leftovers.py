"""What the import of a function leaves open, and what of that two processes cannot share.

A fork copies descriptors, but not what is behind them: both processes then read from one
connection, and move one file position. Of a thread it copies only what the thread had in memory:
locks stay held, and work that others wait for is not done.
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
#: What a function changes of its process that leaves a program, or a thread that ends with the
#: process, running after its answer.
RUN_ON, THREADS_RUN_ON = "programs that run on", "daemon threads that run on"
#: A thread that has ended may be listed for a moment, in seconds.
_LISTED_S, _AGAIN_S = 0.1, 0.005

#: The files of named semaphores, which processes are meant to have in common.
_SEMAPHORE = "/dev/shm/sem."  # noqa: S108

#: A thread of C code that has run Python code, for as long as there is the process.
_FOREIGN: type = vars(threading)["_DummyThread"]


class Descriptor(NamedTuple):
    """What an open descriptor is."""

    #: As the kernel has it: a path, or for example ``socket:[77]``.
    name: str
    #: Its type, of `stat`, and how it is open, of open(2).
    kind: int
    flags: int
    #: Whether its file is mapped into memory, and no file object reads it.
    only_mapped: bool = False

    @property
    def can_be_shared(self) -> bool:
        """Whether two processes that have it copied do not notice each other.

        A device has no position. The kernel puts what is appended at the end of a file.
        """
        if stat.S_ISCHR(self.kind):
            return True
        if not stat.S_ISREG(self.kind):
            return False
        access = self.flags & os.O_ACCMODE
        appends = access == os.O_WRONLY and bool(self.flags & os.O_APPEND)
        return appends or (access == os.O_RDONLY and self.only_mapped)


class Open(NamedTuple):
    """What a process has open."""

    #: By their numbers, the threads with their names.
    descriptors: dict[int, Descriptor]
    threads: dict[int, str]
    #: Memory that forked processes would have in common, by address and name.
    mappings: frozenset[str] = frozenset()

    def since(self, before: Open) -> Open:
        """What of it was not open `before`."""
        known = before.descriptors.items()
        descriptors = dict(each for each in self.descriptors.items() if each not in known)
        threads = {n: name for n, name in self.threads.items() if n not in before.threads}
        return Open(descriptors, threads, self.mappings - before.mappings)

    def unshareable(self, outlasting: Collection[int]) -> Open:
        """What of it processes cannot share, where the threads `outlasting` go on after a fork.

        Libraries that look after forks, such as OpenBLAS, end their threads before each.
        """
        descriptors = {n: each for n, each in self.descriptors.items() if not each.can_be_shared}
        threads = {n: name for n, name in self.threads.items() if n in outlasting}
        return Open(descriptors, threads, self.mappings)

    def close_at_exec(self) -> None:
        """Have the program that replaces this one find none of its descriptors."""
        for number in self.descriptors:
            with contextlib.suppress(OSError):
                os.set_inheritable(number, False)


def look() -> Open:
    """What this process has open now."""
    descriptors = {}
    for number in _numbers(_DESCRIPTORS):
        with contextlib.suppress(OSError):  # the one by which they are listed is closed again
            descriptors[number] = _descriptor(number)
    threads = {}
    for number in _numbers(_OWN / "task"):
        with contextlib.suppress(OSError):
            threads[number] = (_OWN / "task" / str(number) / "comm").read_text().strip()
    return Open(descriptors, threads, frozenset(_mappings()))


def count() -> int:
    """How many descriptors this process has; 0 before Linux 6.2, which does not tell at once."""
    try:
        return os.stat(_LISTING).st_size  # noqa: PTH116 (a fork makes each call of Path's slow)
    except OSError:
        return 0


def outlasting(threads: Collection[int]) -> set[int]:
    """Those of `threads` that go on when this process forks, which it does where there are any."""
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
    """What is `left`, as a person would call it; threads of Python by the names that they have."""
    for number, descriptor in left.descriptors.items():
        yield _socket_name(number) if stat.S_ISSOCK(descriptor.kind) else descriptor.name
    names = {each.native_id: each.name for each in threading.enumerate()}
    for number, name in left.threads.items():
        yield f"thread {names.get(number, name)}"
    for mapping in left.mappings:
        yield f"shared memory {mapping}"


def alive(*kinds: type) -> list[Any]:
    """The objects of this process of these kinds, but for those that ``gc.freeze`` put aside."""
    objects = gc.get_objects()
    wanted = {kind for kind in set(map(type, objects)) if issubclass(kind, kinds)}
    return [each for each in objects if type(each) in wanted]


def writers() -> list[Writer]:
    """The files and log handlers of this process that may hold back what is to be written."""
    logs = sys.modules.get("logging.handlers")
    kinds = (logs.BufferingHandler,) if logs else ()
    found = alive(io.BufferedWriter, io.TextIOWrapper, *kinds)
    frozen = filter(None, (sys.__stdout__, sys.__stderr__))
    return list(filter(_can_write, [*found, *frozen]))


def flush(files: Iterable[Writer]) -> None:
    """Write out what `files` hold back, as far as they are open."""
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
    """The children of this process, whichever thread has started them."""
    found = ""
    for number in _numbers(_OWN / "task"):
        with contextlib.suppress(OSError):
            found += (_OWN / "task" / str(number) / "children").read_text()
    return [int(each) for each in found.split()]


def programs() -> set[int]:
    """The children that run, but for those that `multiprocessing` ends with this process."""
    helpers = {
        getattr(getattr(sys.modules.get(f"multiprocessing.{name}"), f"_{name}", None), pid, None)
        for name, pid in (("resource_tracker", "_pid"), ("forkserver", "_forkserver_pid"))
    }
    return {each for each in children() if each not in helpers and _runs(each)}


def daemons() -> set[threading.Thread]:
    """The threads that end with this process, but for the wrap's."""
    return {
        each
        for each in threading.enumerate()
        if each.daemon
        and not isinstance(each, _FOREIGN)
        and not str(getattr(getattr(each, "_target", None), "__module__", "")).startswith("wrap.")
    }


@contextlib.contextmanager
def as_no_daemon() -> Iterator[None]:
    """A block in which new threads are daemons only if that is asked for, as in the main thread."""
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
    """Kill and reap the children of this process."""
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
    """What of this process's memory is written for all who map it, but for semaphores."""
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
