"""The supervisor: a small single-threaded process that starts the functions and ends them all.

Each function has an init process, whose child it is and which all that it starts stays below. The
supervisor is the parent of those, and adopts what one that was killed has left. When the gateway
goes away, even by SIGKILL, the channel between the two closes and the supervisor kills what is
left; should it be killed itself, the init processes do so, each for its function. Nothing below
can gain a privilege by a set-user-ID program. It also watches memory limits, away from the
gateway's event loop.

Why resident memory is watched: RLIMIT_AS and RLIMIT_DATA count address space (a thread's stack
is 8 MB of it) and hold for each process alone, whereas a container's limit is on what all of
its processes occupy. The price: a burst between two looks is seen late.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway import init_process, processes
from gateway.init_process import tell

MAX_MESSAGE = 1 << 18
_WATCH_PERIOD_S = 0.25


@dataclass(frozen=True)
class _Function:
    """A started function."""

    ident: int
    memory: int  # limit in bytes, 0 for none


class Supervisor:
    """Serves the gateway's requests until the gateway is gone."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._functions: dict[int, _Function] = {}  # by the pid of their init process

    def serve(self) -> None:
        """Start, signal, reap and watch, until the channel closes; then kill what is left."""
        wakeup, wakeup_writer = socket.socketpair()
        wakeup_writer.setblocking(False)
        signal.set_wakeup_fd(wakeup_writer.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        next_look = 0.0
        while True:
            readable, _, _ = select.select([self._channel, wakeup], [], [], self._timeout())
            if wakeup in readable:
                wakeup.recv(4096)
                self._reap()
            if self._channel in readable and not self._receive():
                break
            if time.monotonic() >= next_look:
                self._watch_memory()
                next_look = time.monotonic() + _WATCH_PERIOD_S
        processes.kill_descendants()

    def _timeout(self) -> float | None:
        limited = any(function.memory for function in self._functions.values())
        return _WATCH_PERIOD_S if limited else None

    def _receive(self) -> bool:
        """Serve one message; False if the gateway has closed the channel."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self._channel, MAX_MESSAGE, 2)
        except ConnectionError:
            return False
        if not data:
            return False
        message = json.loads(data)
        if message["do"] == "start":
            self._start(message, *descriptors)
        else:
            self._signal(message["id"], message["signal"])
        return True

    def _start(self, message: dict[str, Any], listener: int, output: int) -> None:
        here = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            tell(self._channel, {"id": message["id"], "error": str(error)})
        else:
            if not pid:
                try:
                    init_process.run(here, self._channel, message, listener, output)
                finally:
                    os._exit(0)
            self._functions[pid] = _Function(message["id"], message["memory"])
        os.close(listener)
        os.close(output)

    def _signal(self, ident: int, number: int) -> None:
        """Signal a function's first process; SIGKILL ends all that it started."""
        for pid, function in self._functions.items():
            if function.ident == ident:
                os.kill(pid, number)

    def _reap(self) -> None:
        """Reap what has ended, and kill what was left behind.

        An init process leaves nothing, unless it was killed itself: the kernel has then given this
        process what was below it. When that ends there is another look.
        """
        ended = [pid for pid in processes.reap() if pid in self._functions]
        functions = [self._functions.pop(pid) for pid in ended]
        processes.kill_children(spared=self._functions)
        for function in functions:
            # Only one that was killed has not told yet, with the status of its function.
            tell(self._channel, {"id": function.ident, "exit": -signal.SIGKILL})

    def _watch_memory(self) -> None:
        limited = {pid: each for pid, each in self._functions.items() if each.memory}
        table = processes.snapshot() if limited else {}
        for init, function in limited.items():
            pids = processes.descendants([init], table) - {init}
            # Resident memory bounds the proportional one from above and costs far less to read.
            if processes.resident_bytes(pids) <= function.memory:
                continue
            used = processes.proportional_bytes(pids)
            if used > function.memory:
                told = {"id": function.ident, "memory": used, "limit": function.memory}
                tell(self._channel, told)
                os.kill(init, signal.SIGKILL)


def main() -> None:
    """Serve the channel on descriptor argv[1]; remove the folder argv[2] in the end."""
    processes.forbid_inspection()
    processes.adopt_orphans()
    processes.forbid_new_privileges()
    # Stopping is the gateway's decision.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    # Stopped itself, it would not see the gateway go.
    processes.signal_at_parents_end(signal.SIGCONT)
    try:
        Supervisor(socket.socket(fileno=int(sys.argv[1]))).serve()
    finally:
        shutil.rmtree(Path(sys.argv[2]), ignore_errors=True)


if __name__ == "__main__":
    main()
