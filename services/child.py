"""Runs work in a process of its own that ends by its limits, on demand, or with the server.

The process is forked by the fork server. A pipe is its leash. Results come over it as JSON, and
where it breaks, because the server was killed or has let go, the work is interrupted, and killed
a little later.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from services import fork_server
from services.child_process import STOP_S, Limits, Work, kill_group, main
from workflow.errors import ChironError

Progress = Callable[[str], None]
#: Why work has to stop now, None while it need not.
Stop = Callable[[], ChironError | None]

#: How long work may take to remove what it made, and then to be killed, in seconds.
_END_S = STOP_S + 2.0
_POLL_S = 0.1
#: How often a process is asked for where the fork server ends instead of forking it.
_ATTEMPTS = 3


class Failed(Exception):  # noqa: N818  (it carries the error)
    """Work that failed with `error`, and what it has for a result all the same, if anything."""

    def __init__(self, error: ChironError, partial: Any = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.partial = partial


def run(work: Work, limits: Limits, tell: Progress, stop: Stop) -> Any:
    """What `work` returns, which has to be JSON, computed in a process of its own.

    Parameters
    ----------
    work
        Something that can be pickled; called with a function that takes lines of progress.
    tell
        Gets those lines.
    stop
        Asked every now and then; work that has to stop may remove what it made before.

    Raises
    ------
    Failed
        With the error of `work`; that of `stop`; ``time-limit``, ``cpu-limit`` or
        ``memory-limit`` (422); ``internal`` where `work` has a fault, ``died`` where something
        killed it (500).
    """
    process, ours = _start(work, limits)
    try:
        return _await(ours, limits, tell, stop)
    finally:
        ours.close()
        _end(process)


def call(function: Callable[..., Any], *arguments: Any) -> Work:
    """`function` of `arguments` as work that makes no progress."""
    return partial(_call, function, arguments)


def _call(function: Callable[..., Any], arguments: tuple[Any, ...], _: Progress) -> Any:
    return function(*arguments)


def _start(work: Work, limits: Limits) -> tuple[BaseProcess, Connection]:
    """The process that does `work`, and our end of its pipe.

    The fork server may be killed just when it is asked for a process. The next attempt starts
    another one; a process that came of the first all the same ends with its pipe.
    """
    for _ in range(_ATTEMPTS):
        ours, theirs = fork_server.context.Pipe()
        process = fork_server.context.Process(
            target=main, args=(work, limits, theirs), daemon=False
        )
        try:
            process.start()
        except (EOFError, ConnectionError):
            ours.close()
            time.sleep(_POLL_S)  # its sockets are closed a moment before it has ended
        else:
            return process, ours
        finally:
            theirs.close()
    message = "no process could be started for it: see the server's log and the machine's"
    raise Failed(ChironError("died", message, status=500))


def _await(pipe: Connection, limits: Limits, tell: Progress, stop: Stop) -> Any:
    deadline = time.monotonic() + limits.time_s
    while True:
        reason = stop()
        if reason is not None:
            raise Failed(reason)
        if time.monotonic() > deadline:
            message = f"it took longer than {limits.time_s:g} s: make it smaller"
            raise Failed(ChironError("time-limit", message, status=422))
        if not pipe.poll(_POLL_S):
            continue
        try:
            kind, value = json.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            message = "its process was killed: see the server's log and the machine's"
            raise Failed(ChironError("died", message, status=500)) from None
        if kind == "progress":
            tell(value)
        elif kind == "done":
            return value
        else:
            partial_result = value.pop("partial")
            raise Failed(ChironError(**value), partial_result)


def _end(process: BaseProcess) -> None:
    """Wait for the process, whose leash is gone; kill it and its own where that takes too long."""
    process.join(_END_S)
    if process.exitcode is None:
        process.kill()
        process.join()
    if process.exitcode != 0:  # else it has seen to it itself
        kill_group(process.pid)
    process.close()
