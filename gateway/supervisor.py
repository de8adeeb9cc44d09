"""The supervisor: a small single-threaded process that starts the functions and ends them all.

Each function has an init process, whose child it is and which all that it starts stays below,
however often that forks or starts a session: what tini is in a container. The supervisor forks it
and it runs no other program, which costs 2.6 MiB (PSS) and no start of an interpreter. The
supervisor adopts what one that was killed has left. When the gateway goes away, even by SIGKILL,
the channel between the two closes and the supervisor kills what is left; should it be killed
itself, the init processes do so, each for its function. Nothing below can gain a privilege by a
set-user-ID program. It also watches memory limits, away from the gateway's event loop.

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
from typing import Any

from chiron.gateway import processes

MAX_MESSAGE = 1 << 18
_WATCH_PERIOD_S = 0.25
#: Sent to init processes by the kernel when the supervisor ends.
_SUPERVISOR_ENDED = signal.SIGHUP
_AWAITED = (signal.SIGCHLD, signal.SIGTERM, _SUPERVISOR_ENDED)


class Supervisor:
    """Serves the gateway's requests until the gateway is gone."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        #: Each function's `id` and limit of `memory`, by the pid of its init process.
        self._functions: dict[int, dict[str, Any]] = {}
        self._below = processes.Below()

    def serve(self) -> None:
        """Start, signal, reap and watch, until the channel closes; then kill what is left."""
        wakeup, wakeup_writer = socket.socketpair()
        wakeup_writer.setblocking(False)
        signal.set_wakeup_fd(wakeup_writer.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        next_look = 0.0
        while True:
            limited = any(function["memory"] for function in self._functions.values())
            wait_s = _WATCH_PERIOD_S if limited else None
            readable, _, _ = select.select([self._channel, wakeup], [], [], wait_s)
            if wakeup in readable:
                wakeup.recv(4096)
                self._reap()
            if self._channel in readable and not self._receive():
                break
            if time.monotonic() >= next_look:
                self._watch_memory()
                next_look = time.monotonic() + _WATCH_PERIOD_S
        processes.kill_descendants()

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
            for pid, function in self._functions.items():
                if function["id"] == message["id"]:
                    os.kill(pid, message["signal"])
        return True

    def _start(self, message: dict[str, Any], listener: int, output: int) -> None:
        here = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            _tell(self._channel, message, error=str(error))
        else:
            if not pid:
                try:
                    _init_process(here, self._channel, message, listener, output)
                finally:
                    os._exit(0)
            self._functions[pid] = {"id": message["id"], "memory": message["memory"]}
        os.close(listener)
        os.close(output)

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
            _tell(self._channel, function, exit=-signal.SIGKILL)

    def _watch_memory(self) -> None:
        limited = {pid: each for pid, each in self._functions.items() if each["memory"]}
        table = self._below.snapshot() if limited else {}
        for init, function in limited.items():
            pids = processes.descendants([init], table) - {init}
            # Resident memory bounds the proportional one from above and costs far less to read.
            if sum(table[pid].resident_bytes for pid in pids) <= function["memory"]:
                continue
            used = processes.proportional_bytes(pids)
            if used > function["memory"]:
                _tell(self._channel, function, memory=used, limit=function["memory"])
                os.kill(init, signal.SIGKILL)


def _tell(channel: socket.socket, function: dict[str, Any], **news: Any) -> None:
    """Send the gateway news of a function; that the gateway is gone is noticed elsewhere."""
    with contextlib.suppress(ConnectionError):
        channel.send(json.dumps({"id": function["id"], **news}).encode())


def _init_process(
    supervisor: int, channel: socket.socket, message: dict[str, Any], listener: int, output: int
) -> None:
    """Start a function, and return when it has ended and all that it started with it.

    Args:
        supervisor: the pid of the process that forked this one.
        channel: where to say what became of it: its pids or why it has none; its exit status.
        message: what to start, from `Launcher.start`.
        listener, output: descriptors for the function alone, closed here.
    """
    # Those that come before they are awaited wait for that.
    signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
    processes.adopt_orphans()
    processes.signal_at_parents_end(_SUPERVISOR_ENDED)
    if os.getppid() != supervisor:
        return
    try:
        function = _start(message, listener, output).pid
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        _tell(channel, message, error=str(error))
        return
    finally:
        os.close(listener)
        os.close(output)
    _tell(channel, message, pid=function, init=os.getpid())
    code = _await_end(function)
    processes.kill_descendants()
    _tell(channel, message, exit=code)


def _start(message: dict[str, Any], listener: int, output: int) -> subprocess.Popen[bytes]:
    cores = message["cores"]
    uid, gid = message["user"] or (None, None)

    def before_exec() -> None:
        # Called after the change of user, which would undo it.
        processes.signal_at_parents_end(signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if cores:
            os.sched_setaffinity(0, cores)

    return subprocess.Popen(
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


def _await_end(function: int) -> int:
    """Wait for the function's first process, passing SIGTERM on; returns its exit status."""
    while (code := processes.reap().get(function)) is None:
        number = signal.sigwait(_AWAITED)
        if number == signal.SIGTERM:
            os.kill(function, number)
        elif number == _SUPERVISOR_ENDED:
            return -signal.SIGKILL
    return code


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
        shutil.rmtree(sys.argv[2], ignore_errors=True)


if __name__ == "__main__":
    main()
