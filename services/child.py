"""Work in a process of its own, from both ends: it ends by its limits, on demand, with the server.

The process is forked by the fork server. A pipe is its leash. Results come over it as JSON, and
where it breaks, because the server was killed or has let go, the work is interrupted, and killed
a little later.
"""

from __future__ import annotations

import json
import logging
import os
import resource
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, NoReturn

from chiron.gateway import processes
from chiron.profiler.profile import IncompleteProfileError
from chiron.services import fork_server
from chiron.services.logs import configure_logs
from chiron.services.problems import internal
from chiron.workflow.errors import ChironError

Progress = Callable[[str], None]
#: Why work has to stop now, None while it need not.
Stop = Callable[[], ChironError | None]

#: How long interrupted work may take to remove what it made, in seconds.
STOP_S = 13.0
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

    `work` can be pickled, and is called with a function that takes lines of progress, which `tell`
    gets. `stop` is asked every now and then; work that has to stop may remove what it made before.

    Raises `Failed` with the error of `work`; that of `stop`; ``time-limit``, ``cpu-limit`` or
    ``memory-limit`` (422); ``internal`` where `work` has a fault, ``died`` where something killed
    it (500).
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
            raise Failed(_received(value["error"]), value["partial"])


def _end(process: BaseProcess) -> None:
    """Wait for the process, whose leash is gone; kill it and its own where that takes too long."""
    process.join(_END_S)
    if process.exitcode is None:
        process.kill()
        process.join()
    if process.exitcode != 0 and process.pid:  # else it has seen to it itself
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.close()


Work = Callable[[Callable[[str], None]], Any]

#: CPU time after its limit until the kernel kills what does not listen, in seconds.
_CPU_GRACE_S = 5
_log = logging.getLogger("services")


@dataclass(frozen=True)
class Limits:
    """What work may use: time, CPU time of each of its processes, and address space."""

    time_s: float
    cpu_s: int
    memory_mib: int | None = None


def main(work: Work, limits: Limits, pipe: Connection) -> None:
    """Do `work` and send what comes out through `pipe`; leaves no process behind."""
    os.setsid()
    # Orphans of the work's processes become children of this one, which ends them.
    processes.adopt_orphans()
    configure_logs()
    _limit(limits)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _interrupt)
    threading.Thread(target=_hold_leash, args=(pipe,), daemon=True).start()
    try:
        message = _outcome(work, limits, pipe)
    finally:
        processes.kill_descendants()
    _send(pipe, *message)
    os._exit(0)  # threads that the work left behind have no say in when this ends


class _CpuLimit(BaseException):
    """No Exception, as work may take those for failures of a part of it and go on."""


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
    """What work that failed has for a result all the same: the profile of the other functions."""
    if isinstance(error, IncompleteProfileError) and error.profile.functions:
        return error.profile.model_dump(mode="json")
    return None


def _failure(error: ChironError) -> dict[str, Any]:
    return {"error": _sent(error), "partial": partial_result(error)}


def _sent(error: ChironError) -> dict[str, Any]:
    parts = [_sent(part) for part in error.parts]
    return error.as_dict() | {"status": error.status, "parts": parts}


def _received(sent: dict[str, Any]) -> ChironError:
    """The error that `_sent` was given."""
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
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once: what it made is being removed
    raise SystemExit(1)


def _exceed(_number: int, _frame: Any) -> NoReturn:
    raise _CpuLimit


def _hold_leash(pipe: Connection) -> None:
    """Wait until the server lets go; end the work then, gently if that is soon."""
    try:
        pipe.recv_bytes()
    except (EOFError, OSError):
        os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(STOP_S)
    processes.kill_descendants()
    os.kill(os.getpid(), signal.SIGKILL)


def _send(pipe: Connection, kind: str, value: Any) -> None:
    with suppress(OSError):  # the server is gone, and the leash ends this process
        pipe.send_bytes(json.dumps([kind, value]).encode())
