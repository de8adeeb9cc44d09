"""Runs work in a process of its own, which ends by its limits, on demand, or with the server.

The fork server forks the process. Results are sent over a pipe as JSON. The pipe closes if the
server was killed or stopped waiting. The work is then interrupted, and killed a little later.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from select import select
from typing import Any, NoReturn

from chiron.deployment.deploy import Progress
from chiron.gateway import processes
from chiron.profiler.profile import IncompleteProfileError
from chiron.services import fork_server
from chiron.services.logs import configure_logs
from chiron.services.problems import internal
from chiron.workflow.errors import ChironError

#: Returns why work must stop now, or None.
Stop = Callable[[], ChironError | None]

#: Seconds that interrupted work has to clean up.
STOP_S = 13.0
#: Seconds that interrupted work has to clean up and then to be killed.
_END_S = STOP_S + 2.0
_POLL_S = 0.1
#: Attempts to fork a process, as the fork server may end meanwhile.
_ATTEMPTS = 3


class Failed(Exception):  # noqa: N818  (it carries the error)
    """Work that failed with `error`, with its partial result, if any."""

    def __init__(self, error: ChironError, partial: Any = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.partial = partial


def run(work: Work, limits: Limits, tell: Progress, stop: Stop) -> Any:
    """Compute `work` in a process of its own; return its result, which must be JSON.

    `work` can be pickled. It is called with a function for lines of progress, which are passed to
    `tell`. `stop` is called periodically; work that must stop may clean up first.

    Raises `Failed` with the error of `work`; the error of `stop`; ``time-limit``, ``cpu-limit`` or
    ``memory-limit`` (422); ``internal`` if `work` has a bug, ``died`` if its process was killed
    (500).
    """
    process, ours = _start(work, limits)
    try:
        return _await(ours, limits, tell, stop)
    finally:
        ours.close()
        _end(process)


def call(function: Callable[..., Any], *arguments: Any) -> Work:
    """Return `function` of `arguments` as work without progress."""
    return partial(_call, function, arguments)


def _call(function: Callable[..., Any], arguments: tuple[Any, ...], _: Progress) -> Any:
    return function(*arguments)


def _start(work: Work, limits: Limits) -> tuple[BaseProcess, Connection]:
    """Start the process that does `work`; return it with our end of its pipe.

    The fork server may be killed just when it is asked for a process. The next attempt starts a new
    fork server; a process that the first attempt forked after all ends with its pipe.
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
            time.sleep(_POLL_S)  # a fork server closes its sockets just before it ends
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
            raise Failed(_received(value["error"]), value["partial"])


def _end(process: BaseProcess) -> None:
    """Wait for the process, whose pipe is closed; on timeout, kill it and its group."""
    process.join(_END_S)
    if process.exitcode is None and process.pid:  # so nothing else has its pid
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.join()
    process.close()


Work = Callable[[Callable[[str], None]], Any]

#: CPU seconds beyond the limit until the kernel kills a process that ignores the signal.
_CPU_GRACE_S = 5
_log = logging.getLogger("services")


@dataclass(frozen=True)
class Limits:
    """The limits of work: time, CPU time of each process, and address space."""

    time_s: float
    cpu_s: int
    memory_mib: int | None = None


def main(work: Work, limits: Limits, pipe: Connection) -> None:
    """Do `work` in a child, which sends the outcome through `pipe`; leave no process behind.

    The child's processes are below this process however they were started, and however the child
    ends.
    """
    os.setsid()
    processes.adopt_orphans()
    configure_logs()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getpid()
    child = os.fork()
    if not child:
        try:
            _do(work, limits, pipe, parent)
        finally:
            os._exit(1)  # does not wait for threads that the work left behind
    _hold_leash(child, pipe)
    processes.kill_descendants()
    os._exit(0)


def _do(work: Work, limits: Limits, pipe: Connection, parent: int) -> None:
    processes.signal_at_parents_end(signal.SIGKILL)
    if os.getppid() != parent:
        return
    _limit(limits)
    signal.signal(signal.SIGTERM, _interrupt)
    _send(pipe, *_outcome(work, limits, pipe))


class _CpuLimit(BaseException):
    """Not an Exception, as work may catch an Exception as the failure of a part and continue."""


def _outcome(work: Work, limits: Limits, pipe: Connection) -> tuple[str, Any]:
    try:
        return "done", work(lambda line: _send(pipe, "progress", line))
    except ChironError as error:
        return "failed", _failure(error)
    except _CpuLimit:
        message = f"it took more CPU time than {limits.cpu_s} s: make it smaller"
        return "failed", _failure(ChironError("cpu-limit", message, status=422))
    except MemoryError:
        message = f"it needs more memory than {limits.memory_mib} MiB: make it smaller"
        return "failed", _failure(ChironError("memory-limit", message, status=422))
    except Exception as error:
        _log.exception("work failed", exc_info=error)
        return "failed", _failure(internal())


def partial_result(error: ChironError) -> Any:
    """Return the partial result of failed work: the profile of the other functions."""
    if isinstance(error, IncompleteProfileError) and error.profile.functions:
        return error.profile.model_dump(mode="json")
    return None


def _failure(error: ChironError) -> dict[str, Any]:
    return {"error": _sent(error), "partial": partial_result(error)}


def _sent(error: ChironError) -> dict[str, Any]:
    parts = [_sent(part) for part in error.parts]
    return error.as_dict() | {"status": error.status, "parts": parts}


def _received(sent: dict[str, Any]) -> ChironError:
    parts = [_received(part) for part in sent.pop("parts")]
    error = ChironError(**sent)
    error.parts = tuple(parts)
    return error


def _limit(limits: Limits) -> None:
    signal.signal(signal.SIGXCPU, _exceed)
    resource.setrlimit(resource.RLIMIT_CPU, (limits.cpu_s, limits.cpu_s + _CPU_GRACE_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if limits.memory_mib is not None:
        most = limits.memory_mib * 1024 * 1024
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _interrupt(_number: int, _frame: Any) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # only once: it is cleaning up now
    raise SystemExit(1)


def _exceed(_number: int, _frame: Any) -> NoReturn:
    raise _CpuLimit


def _hold_leash(child: int, pipe: Connection) -> None:
    """Wait for the end of the child; if the server closes the pipe, interrupt it, for `STOP_S`."""
    ended = os.pidfd_open(child)
    if ended not in select([pipe.fileno(), ended], [], [])[0]:
        os.kill(child, signal.SIGTERM)
        select([ended], [], [], STOP_S)


def _send(pipe: Connection, kind: str, value: Any) -> None:
    with suppress(OSError):  # the server is gone, and `_hold_leash` ends this process
        pipe.send_bytes(json.dumps([kind, value]).encode())
