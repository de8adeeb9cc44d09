"""The supervisor: a small single-threaded process that starts the functions and ends them all.

It is the functions' parent and adopts what they orphan, so that everything they start is found
below it. When the gateway goes away, even by SIGKILL, the channel between the two closes and the
supervisor kills what is left; should it be killed itself, the kernel kills the functions.
Nothing below it can gain a privilege by a set-user-ID program.
It also watches memory limits, away from the gateway's event loop.

Why resident memory is watched: RLIMIT_AS and RLIMIT_DATA count address space (a thread's stack
is 8 MB of it) and hold for each process alone, whereas a container's limit is on what all of
its processes occupy. The price: a burst between two looks is seen late.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway import linux, processes

MAX_MESSAGE = 1 << 18
_WATCH_PERIOD_S = 0.25


@dataclass
class _Child:
    """A started function process."""

    process: subprocess.Popen[bytes]
    memory: int  # limit in bytes, 0 for none


class Supervisor:
    """Serves the gateway's requests until the gateway is gone."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._children: dict[int, _Child] = {}

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
        kill_descendants(os.getpid())

    def _timeout(self) -> float | None:
        limited = any(child.memory for child in self._children.values())
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
        ident, cores = message["id"], message["cores"]
        uid, gid = message["user"] or (None, None)

        def before_exec() -> None:
            # Called after the change of user, which would undo it.
            linux.die_with_parent(signal.SIGKILL)
            if cores:
                os.sched_setaffinity(0, cores)

        try:
            process = subprocess.Popen(
                message["command"],
                cwd=message["folder"],
                env={**message["env"], "LISTEN_FD": str(listener)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(listener,),
                start_new_session=True,
                user=uid,
                group=gid,
                extra_groups=None if uid is None else (),
                preexec_fn=before_exec,  # safe: this process has one thread
            )
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            self._send({"id": ident, "error": str(error)})
        else:
            self._children[ident] = _Child(process, message["memory"])
            self._send({"id": ident, "pid": process.pid})
        finally:
            os.close(listener)
            os.close(output)

    def _signal(self, ident: int, number: int) -> None:
        """Signal a function; SIGKILL goes to all that it started, others to itself alone."""
        child = self._children.get(ident)
        if child is None:
            return
        if number == signal.SIGKILL:
            _kill_tree(child.process.pid)
        else:
            os.kill(child.process.pid, number)

    def _reap(self) -> None:
        by_pid = {child.process.pid: ident for ident, child in self._children.items()}
        with contextlib.suppress(ChildProcessError):
            while (reaped := os.waitpid(-1, os.WNOHANG))[0]:
                pid, status = reaped
                if pid not in by_pid:
                    continue
                ident = by_pid[pid]
                code = os.waitstatus_to_exitcode(status)
                # Tell Popen that the process is gone, or it would wait for the pid's next owner.
                self._children.pop(ident).process.returncode = code
                _kill_tree(pid)
                self._send({"id": ident, "exit": code})

    def _watch_memory(self) -> None:
        limited = [(ident, child) for ident, child in self._children.items() if child.memory]
        table = processes.snapshot() if limited else {}
        for ident, child in limited:
            pids = processes.tree(child.process.pid, table)
            # Resident memory bounds the proportional one from above and costs far less to read.
            if processes.resident_bytes(pids) <= child.memory:
                continue
            used = processes.proportional_bytes(pids)
            if used > child.memory:
                self._send({"id": ident, "memory": used})
                _kill_tree(child.process.pid)

    def _send(self, message: dict[str, Any]) -> None:
        # A gateway that is gone shows up as a closed channel at the next look.
        with contextlib.suppress(ConnectionError):
            self._channel.send(json.dumps(message).encode())


def _kill_tree(root: int) -> None:
    """Kill `root`, its descendants and its session; again until a look finds none alive."""
    seen: set[int] = set()
    while found := processes.tree(root, processes.snapshot()) - seen:
        _kill(found)
        seen |= found


def kill_descendants(root: int) -> None:
    """Kill and reap everything below `root`, which adopts orphans, but not `root` itself."""
    while below := processes.descendants([root], processes.snapshot()) - {root}:
        _kill(below)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)


def _kill(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def main() -> None:
    """Serve the channel on descriptor argv[1]; remove the folder argv[2] in the end."""
    linux.forbid_inspection()
    linux.adopt_orphans()
    linux.forbid_new_privileges()
    # Stopping is the gateway's decision. Handlers, since exec would pass SIG_IGN on to functions.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    try:
        Supervisor(socket.socket(fileno=int(sys.argv[1]))).serve()
    finally:
        shutil.rmtree(Path(sys.argv[2]), ignore_errors=True)


if __name__ == "__main__":
    main()
