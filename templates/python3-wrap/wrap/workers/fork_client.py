"""The server's end of the fork server: starts it, requests processes, replaces it when it dies.

The first fork server is forked while the server has one thread. So both share the memory of the
functions imported by then: the fork server takes 8 MiB of its own, against 22 MiB for one that
imports them itself. When it dies, the server has threads and cannot fork the next one. The next
request that needs a process then starts the same program afresh, which imports again.
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
from wrap.workers.worker import WorkerProcess

#: How long to wait, before the answer is sent, until a killed process is gone, in seconds.
_END_S = 1.0
_BUFFER = 1 << 20
#: A number of beats that is never reached.
_NEVER = 1 << 62


class ForkClient:
    """Gets processes from a fork server.

    Args:
        run: serves a fork server's end of the control socket until that ends.
        command: starts a fork server as a program of its own; the socket's descriptor is appended.
        longest: most bytes of an output of a process.
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
        self._control, theirs = pair(socket.SOCK_SEQPACKET)
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

    def spawn(self, process: int = 0) -> WorkerProcess:
        """Return a new process, maybe still starting. Raises OSError if there is no fork server.

        With a `process` of the plan, it imports that process's functions before it serves.
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
        return WorkerProcess(ours, partial(self._end, self._control, number), self._longest)

    def beat(self, within_s: float) -> Callable[[], None] | None:
        """Tell the fork server that this process runs.

        The fork server ends this process if the next beat does not follow within so many seconds; 0
        means never. If there is no fork server, returns a function that starts another; else None.
        """
        most = min(math.ceil(min(within_s / BEAT_S, _NEVER)), _NEVER)
        control = self._control
        try:
            control.send(MESSAGE.pack(BEAT, most, 0), socket.MSG_DONTWAIT)
        except BlockingIOError:  # it has not read the beats before
            return None
        except OSError:
            return partial(self._replace, control)
        return None

    def revive(self) -> None:
        """Start another fork server if the last has ended. Raises OSError if that fails."""
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
        """In a process that a handler has forked: close sockets whose end ends other processes."""
        for channel in (self._control, *self._channels):
            channel.close()

    def _end(self, control: socket.socket, number: int) -> str:
        """Kill a process; return how it ended. The death of its fork server has ended it too.

        If no descriptor can be had to ask with, the process notices that its channel is closed.
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
            self._control, theirs = pair(socket.SOCK_SEQPACKET)
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


def _send(
    control: socket.socket, descriptor: socket.socket, kind: int, number: int, process: int = 0
) -> None:
    socket.send_fds(control, [MESSAGE.pack(kind, number, process)], [descriptor.fileno()])
