"""The server's end of the fork server: starts it, asks it for processes, replaces it when it dies.

The first fork server is forked while the server has one thread, so both share the memory of the
functions that are imported by then (8 MiB of its own, against 22 MiB for one that imports for
itself). When it dies the server has threads, so the next one cannot be forked from it: it is the
same program, started afresh by the next request that needs a process, at the price of importing
again.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import socket
import subprocess
import threading
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from weakref import WeakSet

from wrap.event_loop.liveness import BEAT_S
from wrap.net.sockets import pair
from wrap.workers.fork_server import BEAT, END, MESSAGE, SPAWN
from wrap.workers.worker import Process

#: How long a killed process may take to be gone before the answer to the request goes out.
_END_S = 1.0
_BUFFER = 1 << 20
#: A number of beats that never passes.
_NEVER = 1 << 62


class ForkClient:
    """Gets processes from a fork server.

    Args:
        run: what a fork server does with its end of the control socket until that ends.
        command: starts a fork server as a program of its own; the socket's descriptor is appended.
        longest: bytes that an output of a process may have.
    """

    def __init__(
        self, run: Callable[[socket.socket], None], command: Sequence[str], longest: int
    ) -> None:
        self._longest = longest
        self._command = command
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._started: subprocess.Popen[bytes] | None = None
        self._channels: WeakSet[socket.socket] = WeakSet()
        self._control, theirs = _control_sockets()
        self._pid = os.fork()
        if self._pid == 0:
            status = 1
            try:
                self._control.close()
                run(theirs)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        theirs.close()
        os.register_at_fork(after_in_child=self._let_go)

    def spawn(self, process: int = 0) -> Process:
        """A new process, which may still have to start. Raises OSError if there is no fork server.

        With the number of a `process` of the plan it imports what that runs before it serves.
        """
        ours, theirs = pair()
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        number = next(self._numbers)
        with theirs:
            control = self._control
            try:
                _send(control, theirs, SPAWN, number, process)
            except OSError:
                self._replace(control)
                _send(self._control, theirs, SPAWN, number, process)
        self._channels.add(ours)
        return Process(ours, partial(self._end, self._control, number), self._longest)

    def beat(self, within_s: float) -> Callable[[], None] | None:
        """Tell the fork server that this process runs.

        The fork server ends this process if no other beat follows within so many seconds; 0 means
        never. Returns what starts another fork server if there is none.
        """
        most = min(math.ceil(min(within_s / BEAT_S, _NEVER)), _NEVER)
        control = self._control
        try:
            control.send(MESSAGE.pack(BEAT, most, 0), socket.MSG_DONTWAIT)
        except BlockingIOError:  # it has not taken those before
            return None
        except OSError:
            return partial(self._replace, control)
        return None

    def revive(self) -> None:
        """Have another one where the last one has ended. Raises OSError where there is none."""
        control = self._control
        with contextlib.suppress(ConnectionError):
            try:
                control.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
        self._replace(control)

    def close(self) -> None:
        """End the fork server, and with it all processes."""
        with self._lock:
            self._control.close()
            self._wait()

    def _let_go(self) -> None:
        """In a process that a handler has forked: keep nothing open by whose end others end."""
        for channel in (self._control, *self._channels):
            channel.close()

    def _end(self, control: socket.socket, number: int) -> str:
        """Have a process killed; says how it ended. Its fork server's death has been its own.

        Where there is no descriptor to ask with, it is left to notice that its channel is closed.
        """
        ending = b""
        with contextlib.suppress(OSError):
            ours, theirs = pair()
            with ours:
                ours.settimeout(_END_S)
                with theirs:
                    _send(control, theirs, END, number)
                ending = ours.recv(256)
        return ending.decode() or "was lost, as its fork server was killed"

    def _replace(self, dead: socket.socket) -> None:
        with self._lock:
            if self._control is not dead:
                return
            dead.close()
            self._wait()
            self._control, theirs = _control_sockets()
            with theirs:
                descriptor = theirs.fileno()
                self._started = subprocess.Popen(
                    [*self._command, str(descriptor)], pass_fds=[descriptor]
                )

    def _wait(self) -> None:
        if self._started is not None:
            self._started.wait()
            return
        with contextlib.suppress(ChildProcessError):  # a handler may have waited for any child
            os.waitpid(self._pid, 0)


def _control_sockets() -> tuple[socket.socket, socket.socket]:
    return pair(socket.SOCK_SEQPACKET)


def _send(
    control: socket.socket, descriptor: socket.socket, kind: int, number: int, process: int = 0
) -> None:
    socket.send_fds(control, [MESSAGE.pack(kind, number, process)], [descriptor.fileno()])
