"""Runs programs so that all that they start ends with them, whatever it does to get away.

A reaper is a process without threads that the fork server forks. It runs one program at a time and
is a subreaper: each process that loses its parent below it becomes its child, also after a double
fork and setsid. When the program has ended or is given up, it kills its children until it has none.
Process groups, sessions, descriptors and variables play no part, as programs change these.

Reapers accept requests from one listening socket, so that a program starts without a fork of this
process. The listener is in the abstract namespace, where anyone may connect: only processes of the
same user are heard.
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
from wrap.net.sockets import patient

_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)
#: The abstract address of the listener: see `ask_at`.
_address = ""
#: Requests that wait for a reaper.
_BACKLOG = 1024
#: After so long without a program a reaper ends, unless it is the first.
_IDLE_S = 10
#: The most reapers at once.
MOST = 4096
#: The most bytes of a request, which the kernel has to take at once, and of an answer.
_MOST_SAID = 1 << 17
#: What Python ignores and programs shall not.
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)
_CREDENTIALS = struct.Struct("3i")
#: Bytes to read at once of the list of children.
_PAGE = 1 << 16
#: How long to wait before the next try to connect.
_AGAIN_S = 0.01


def adopt_orphans() -> None:
    """Have this process become the parent of all below it whose own parent ends."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1)


def children() -> list[int]:
    """The children of this process, which has one thread, with those that are not reaped yet."""
    own = os.getpid()
    try:  # by few calls: after a fork, each page that the fork server touches costs a fault
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
    """Set where this process, and those that it forks, ask for programs."""
    global _address
    _address = address


def _lost() -> None:
    raise ChildProcessError("the process that starts commands was killed")


#: Called while nothing listens: has it start again, or raises OSError.
_revive = _lost


def revive_by(revive: Callable[[], None]) -> None:
    """Have this process call `revive` when it finds nothing that listens."""
    global _revive
    _revive = revive


class Program:
    """A program that a reaper runs.

    Args:
        words, folder: the program with its arguments, and where it runs.
        variables: what its environment has beside what this process had when functions had been
            imported.
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
        """Kill it and all that it has started."""
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)

    def wait(self) -> int:
        """Its exit status, or minus the signal that killed it, when all it started has ended.

        Raises OSError: it could not be started.
        Raises TaskError: ``process-died``: its reaper was killed.
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
    """Where the reapers of a fork server take requests, at the address that was announced."""
    listening = patient(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    listening.bind(f"\0{_address}")
    listening.listen(_BACKLOG)
    # A timeout of Python's own would wake all reapers for each request.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", _IDLE_S, 0))
    return listening


class Reaper:
    """One reaper, in its process.

    Args:
        listening: where it takes requests.
        idle: has a byte for each reaper: whether it waits for a request.
        slot: the number of its own.
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
        for entry in list(Path("/proc/self/fd").iterdir()):  # what functions have opened
            with contextlib.suppress(OSError):
                os.set_inheritable(int(entry.name), False)

    def serve(self) -> None:
        """Run one program after another, until it has had nothing to do for long."""
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
                if _is_of_this_user(channel) and not self._run(channel):
                    return

    def _run(self, channel: socket.socket) -> bool:
        """Serve a request; returns whether nothing is left of it."""
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
        os.chdir(folder)
        added = {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}
        return os.posix_spawnp(
            words[0],
            words,
            {**self._environment, **added},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, given, number) for number, given in enumerate(descriptors)
            ],
            setpgroup=0,  # one that signals its group does not mean its reaper
            setsigdef=_IGNORED,
        )


def _followed(program: int, channel: socket.socket) -> int:
    """The exit status of a program, which is killed where the other end of `channel` is closed."""
    ended = os.pidfd_open(program)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(channel, select.POLLIN)
    poll.poll()
    os.close(ended)
    os.kill(program, signal.SIGKILL)  # does nothing where it has ended
    _, status = os.waitpid(program, 0)
    return os.waitstatus_to_exitcode(status)


def _is_of_this_user(channel: socket.socket) -> bool:
    said = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(said)[1] == os.getuid())


def end_all() -> bool:
    """Kill and reap all below this process, which adopts orphans and has one thread.

    What is below its children becomes its child when they end, also what they fork meanwhile.
    Returns whether nothing is left: another user's process, of a set-user-ID program, may be.
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
