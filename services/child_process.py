"""The process in which `services.child` runs work: its limits, its leash, and how it ends."""

from __future__ import annotations

import ctypes
import json
import logging
import os
import resource
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, NoReturn

import psutil

from profiler.profile import IncompleteProfileError
from services.logs import configure_logs
from services.problems import internal
from workflow.errors import ChironError

Work = Callable[[Callable[[str], None]], Any]

#: How long interrupted work may take to remove what it made, in seconds.
STOP_S = 13.0
#: CPU time after its limit until the kernel kills what does not listen, in seconds.
_CPU_GRACE_S = 5
#: How long the children that were killed may take to be gone before they are looked for again.
_REAP_S = 1.0
_PR_SET_CHILD_SUBREAPER = 36
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
    # Orphans of the work's processes become children of this one, which finds and ends them.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    configure_logs()
    _limit(limits)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _interrupt)
    threading.Thread(target=_hold_leash, args=(pipe,), daemon=True).start()
    try:
        message = _outcome(work, limits, pipe)
    finally:
        _end_descendants()
    _send(pipe, *message)
    os._exit(0)  # threads that the work left behind have no say in when this ends


def kill_group(group: int | None) -> None:
    """Kill what is left of a process group, if anything."""
    if group is not None:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


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
    return error.as_dict() | {"status": error.status, "partial": partial_result(error)}


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
    _end_descendants()
    os.kill(os.getpid(), signal.SIGKILL)


def _end_descendants() -> None:
    """Kill all processes below this one, also those that are orphaned meanwhile."""
    while _has_children():
        below = psutil.Process().children(recursive=True)
        for process in below:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(below, timeout=_REAP_S)


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _send(pipe: Connection, kind: str, value: Any) -> None:
    with suppress(OSError):  # the server is gone, and the leash ends this process
        pipe.send_bytes(json.dumps([kind, value]).encode())
