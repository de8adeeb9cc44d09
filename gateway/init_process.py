"""A function's init process: the parent of its first process and of all that it orphans.

What tini is in a container. However often something below forks, or starts a session of its own,
it stays below: so all that a function has started is found, measured and ended. The supervisor
forks it and it runs no other program, which costs 2.6 MiB (PSS) and no start of an interpreter.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
from typing import Any

from gateway import processes

#: Sent by the kernel when the supervisor ends.
_SUPERVISOR_ENDED = signal.SIGHUP
_AWAITED = (signal.SIGCHLD, signal.SIGTERM, _SUPERVISOR_ENDED)


def run(
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
    ident = message["id"]
    try:
        function = _start(message, listener, output).pid
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        tell(channel, {"id": ident, "error": str(error)})
        return
    finally:
        os.close(listener)
        os.close(output)
    tell(channel, {"id": ident, "pid": function, "init": os.getpid()})
    code = _await_end(function)
    processes.kill_descendants()
    tell(channel, {"id": ident, "exit": code})


def tell(channel: socket.socket, message: dict[str, Any]) -> None:
    """Send the gateway a message; one that is gone is noticed elsewhere."""
    with contextlib.suppress(ConnectionError):
        channel.send(json.dumps(message).encode())


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
