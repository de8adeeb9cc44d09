"""Runs programs so that all processes they start end with them, whatever they do to escape.

A reaper is a single-threaded process that the fork server forks. It runs one program at a time and
is a subreaper: a process below it that loses its parent becomes its child, even after a double fork
and setsid. When the program has ended or is given up, the reaper kills its children until none is
left. It does not rely on process groups, sessions, descriptors or variables: programs change them.

Reapers accept requests from one listening socket, so a program starts without a fork of this
process. The listener is in the abstract namespace, so requests of other users are ignored.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import mmap
import os
import select
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from wrap.core.errors import TaskError
from wrap.net.sockets import patient, user_of

_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)
#: The abstract address of the listener; see `ask_at`.
_address = ""
#: The most requests that wait for a reaper.
_BACKLOG = 1024
#: Seconds without a program after which a reaper ends, unless it is the first.
_IDLE_S = 10
#: The most reapers at once.
MOST = 4096
#: The most bytes of a request, which the kernel must accept at once, and of an answer.
_MOST_SAID = 1 << 17
#: Signals that Python ignores and programs must not.
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)
#: Bytes of the list of children to read at once.
_PAGE = 1 << 16
#: How long to wait before the next try to connect, in seconds.
_AGAIN_S = 0.01


def adopt_orphans() -> None:
    """Make this process the parent of all its descendants whose own parent ends."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children() -> list[int]:
    """Return the children of this single-threaded process, including children not reaped yet."""
    own = os.getpid()
    try:  # few calls: after a fork, each page that the fork server touches costs a fault
        listing = os.open(f"/proc/self/task/{own}/children", os.O_RDONLY | os.O_CLOEXEC)
        try:
            found = b""
            while piece := os.read(listing, _PAGE):
                found += piece
        finally:
            os.close(listing)
        return [int(pid) for pid in found.split()] if found else []
    except OSError:  # a kernel without CONFIG_PROC_CHILDREN
        return [pid for pid in _processes() if _parent(pid) == own]


def _processes() -> Iterator[int]:
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())


def _parent(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:  # it has ended
        return 0
    return int(stat[stat.rindex(")") + 2 :].split()[1])


def ask_at(address: str) -> None:
    """Set the address at which this process, and processes forked from it, request programs."""
    global _address
    _address = address


def _lost() -> None:
    raise ChildProcessError("the process that starts commands was killed")


#: Called while nothing listens: restarts the listener, or raises OSError.
_revive = _lost


def revive_by(revive: Callable[[], None]) -> None:
    """Make this process call `revive` when nothing listens."""
    global _revive
    _revive = revive


class Program:
    """A program that a reaper runs.

    Args:
        words, folder: the program with its arguments, and its working directory.
        variables: added to the environment that this process had once functions had been imported.
        descriptors: its standard input, output and error.

    Raises OSError: no reaper can be reached.
    """

    def __init__(
        self,
        words: Sequence[str],
        folder: Path,
        variables: Mapping[str, str],
        descriptors: Sequence[int],
    ) -> None:
        request = json.dumps([words, str(folder), variables]).encode()
        self._channel = _connected()
        with contextlib.ExitStack() as closing:
            closing.callback(self._channel.close)
            socket.send_fds(self._channel, [request], descriptors)
            closing.pop_all()

    def fileno(self) -> int:
        """The descriptor that is readable when the program has ended."""
        return self._channel.fileno()

    def kill(self) -> None:
        """Kill the program and all processes that it has started."""
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)

    def wait(self) -> int:
        """Wait until all its processes have ended; return its exit status, or minus the fatal
        signal.

        Raises OSError if the program could not be started. Raises TaskError, ``process-died``, if
        its reaper was killed.
        """
        said = b""
        with self._channel, contextlib.suppress(ConnectionError):
            said = self._channel.recv(_MOST_SAID)
        if not said:
            raise TaskError("process-died", "the process that ran the command was killed")
        answer = json.loads(said)
        if isinstance(answer, list):
            raise OSError(*answer)
        return int(answer)


def _connected() -> socket.socket:
    address = f"\0{_address}"
    while True:
        channel = patient(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        try:
            channel.connect(address)
        except ConnectionRefusedError:
            channel.close()
            _revive()
            time.sleep(_AGAIN_S)
        except BaseException:
            channel.close()
            raise
        else:
            return channel


def listener() -> socket.socket:
    """Return the socket from which a fork server's reapers accept requests, at the set address."""
    listening = patient(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    listening.bind(f"\0{_address}")
    listening.listen(_BACKLOG)
    # A timeout of Python's own would wake all reapers for each request.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", _IDLE_S, 0))
    return listening


class Reaper:
    """One reaper, in its process.

    Args:
        listening: the socket from which it accepts requests.
        idle: a byte for each reaper: whether it waits for a request.
        slot: the index of its own byte.
        short: called when no reaper waits for a request.
    """

    def __init__(
        self, listening: socket.socket, idle: mmap.mmap, slot: int, short: Callable[[], None]
    ) -> None:
        self._listening = listening
        self._idle = idle
        self._slot = slot
        self._short = short
        self._environment = dict(os.environb)
        adopt_orphans()
        signal.signal(signal.SIGTERM, _give_up)
        for entry in list(Path("/proc/self/fd").iterdir()):  # opened by functions
            with contextlib.suppress(OSError):
                os.set_inheritable(int(entry.name), False)

    def serve(self) -> None:
        """Run one program after another, until none has come for long."""
        while True:
            self._idle[self._slot] = 1
            try:
                channel, _ = self._listening.accept()
            except BlockingIOError:
                if self._slot:
                    return
                continue
            finally:
                self._idle[self._slot] = 0
            if self._idle.find(b"\1") < 0:
                self._short()
            with patient(channel), contextlib.suppress(ConnectionError):
                if user_of(channel) == os.getuid() and not self._run(channel):
                    return

    def _run(self, channel: socket.socket) -> bool:
        """Serve a request; return whether all its processes have ended."""
        answer: int | list[Any]
        request, descriptors, _, _ = socket.recv_fds(channel, _MOST_SAID, 3)
        if not request:
            return True
        try:
            program = self._start(request, descriptors)
        except OSError as error:
            answer = [error.errno, error.strerror, error.filename]
        except ValueError as error:
            answer = [str(error)]
        else:
            answer = _followed(program, channel)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        ended = end_all()
        channel.send(json.dumps(answer).encode())
        return ended

    def _start(self, request: bytes, descriptors: Sequence[int]) -> int:
        words, folder, variables = json.loads(request)
        for given in descriptors:  # the program has each of them once, so that it can close it
            os.set_inheritable(given, False)
        os.chdir(folder)
        added = {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}
        return os.posix_spawnp(
            words[0],
            words,
            {**self._environment, **added},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, given, number) for number, given in enumerate(descriptors)
            ],
            setpgroup=0,  # a signal to its own group must not reach the reaper
            setsigdef=_IGNORED,
        )


def _followed(program: int, channel: socket.socket) -> int:
    """Return the exit status of a program; kill it if the other end of `channel` is closed."""
    ended = os.pidfd_open(program)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(channel, select.POLLIN)
    poll.poll()
    os.close(ended)
    os.kill(program, signal.SIGKILL)  # no effect if it has ended
    _, status = os.waitpid(program, 0)
    return os.waitstatus_to_exitcode(status)


def end_all() -> bool:
    """Kill and reap all descendants of this process, which adopts orphans and has one thread.

    Descendants of its children become its children when these end, even if forked meanwhile.
    Returns whether all have ended: a set-user-ID program of another user may still run.
    """
    with contextlib.suppress(ChildProcessError):
        while True:
            while os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG):
                pass
            found = children()
            if found and not sum(_kill(pid) for pid in found):
                print(f"processes {found} cannot be killed: another user's program runs in them")
                return False
            os.waitid(os.P_ALL, 0, os.WEXITED)
    return True


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except PermissionError:
        return False
    return True


def _give_up(*_: object) -> NoReturn:
    end_all()
    os._exit(0)
