"""The supervisor: a small single-threaded process that starts the functions and ends them all.

Each function is the child of an init process, as of tini in a container. All its descendants stay
below the init process, however often they fork or start a session. The supervisor forks an init
process without exec, which costs 2.6 MiB (PSS) and no start of an interpreter. It adopts the
orphans of a killed init process. When the gateway ends, even by SIGKILL, their channel closes and
the supervisor kills all functions. If the supervisor is killed, each init process kills its
function. No descendant can gain a privilege by a set-user-ID program. The supervisor also enforces
memory limits, away from the gateway's event loop.

It watches resident memory. RLIMIT_AS and RLIMIT_DATA count address space (a thread's stack is 8 MB
of it), of each process alone. A container's limit covers the memory of all its processes. The
price: a burst between two samples is detected late.
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
#: Seconds that init processes have to end when the gateway has, and between looks at that.
_END_S, _LOOK_S = 1.0, 0.005
#: The signal that the kernel sends to init processes when the supervisor ends.
_SUPERVISOR_ENDED = signal.SIGHUP
_AWAITED = (signal.SIGCHLD, signal.SIGTERM, _SUPERVISOR_ENDED)


class Supervisor:
    """Serves the gateway's requests until the gateway ends."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        #: Each function's `id` and limit of `memory`, by the pid of its init process.
        self._functions: dict[int, dict[str, Any]] = {}
        self._descendants = processes.DescendantSampler()

    def serve(self) -> None:
        """Start, signal, reap and watch functions until the channel closes; then kill them all."""
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
        self._end_all()

    def _receive(self) -> bool:
        """Serve one message; return False if the gateway has closed the channel."""
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
        """Reap ended children, and kill orphans.

        An init process leaves no orphans unless it was killed: then the kernel makes them children
        of this process. When an orphan ends, SIGCHLD calls this method again.
        """
        ended = [pid for pid in processes.reap() if pid in self._functions]
        functions = [self._functions.pop(pid) for pid in ended]
        processes.kill_children(spared=self._functions)
        for function in functions:
            # An init process that was not killed has already sent the status of its function.
            _tell(self._channel, function, exit=-signal.SIGKILL)

    def _end_all(self) -> None:
        """Have each init process kill all below it, and kill what is left after a while.

        A killed init process would leave its daemons to this process, which may be killed too.
        """
        left, until = set(self._functions), time.monotonic() + _END_S
        for pid in left:
            os.kill(pid, _SUPERVISOR_ENDED)
        while left and time.monotonic() < until:
            time.sleep(_LOOK_S)
            left -= processes.reap().keys()
        processes.kill_descendants()

    def _watch_memory(self) -> None:
        limited = {pid: each for pid, each in self._functions.items() if each["memory"]}
        table = self._descendants.snapshot() if limited else {}
        for init, function in limited.items():
            pids = processes.descendants([init], table) - {init}
            # Resident memory is an upper bound of proportional memory, and much cheaper to read.
            if sum(table[pid].resident_bytes for pid in pids) <= function["memory"]:
                continue
            used = processes.proportional_bytes(pids)
            if used > function["memory"]:
                _tell(self._channel, function, memory=used, limit=function["memory"])
                os.kill(init, signal.SIGKILL)


def _tell(channel: socket.socket, function: dict[str, Any], **news: Any) -> None:
    """Send the gateway news of a function; ignores a closed channel, which `_receive` detects."""
    with contextlib.suppress(ConnectionError):
        channel.send(json.dumps({"id": function["id"], **news}).encode())


def _init_process(
    supervisor: int, channel: socket.socket, message: dict[str, Any], listener: int, output: int
) -> None:
    """Start a function; return when the function and all its descendants have ended.

    Args:
        supervisor: the pid of the process that forked this process.
        channel: where to send the function's pids or why it failed to start, then its exit status.
        message: the start message of `Launcher.start`.
        listener, output: descriptors for the function alone, closed here.
    """
    # Signals that arrive before `sigwait` stay pending.
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
        # Called after the change of user, which clears the parent-death signal.
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
    """Wait for the function's first process, forwarding SIGTERM; return its exit status."""
    while (code := processes.reap().get(function)) is None:
        number = signal.sigwait(_AWAITED)
        if number == signal.SIGTERM:
            os.kill(function, number)
        elif number == _SUPERVISOR_ENDED:
            return -signal.SIGKILL
    return code


def main() -> None:
    """Serve the channel on descriptor argv[1]; at the end, remove the folder argv[2]."""
    processes.forbid_inspection()
    processes.adopt_orphans()
    processes.forbid_new_privileges()
    # Only the gateway decides when to stop.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    # If this process is suspended, it must resume when the gateway ends.
    processes.signal_at_parents_end(signal.SIGCONT)
    try:
        Supervisor(socket.socket(fileno=int(sys.argv[1]))).serve()
    finally:
        shutil.rmtree(sys.argv[2], ignore_errors=True)


if __name__ == "__main__":
    main()
