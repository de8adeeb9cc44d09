"""Guards calls that would end the server and all its requests: they end only the caller's task.

All such calls of Python's own modules are guarded. Native code (ctypes, a crash) can still end the
server. Then its requests fail, and the gateway or the watchdog restarts the wrap.
"""

from __future__ import annotations

import _thread
import importlib
import os
import posix
import re
import signal
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any

from wrap.observe import log

_SIGNAL = importlib.import_module("_signal")  # without type hints
#: The server stops at these signals: it has handlers for them.
_STOP = (signal.SIGTERM, signal.SIGINT)
#: Signals whose default action ends nothing (signal(7)).
_HARMLESS = (0, signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH)
#: Signals after whose handlers `faulthandler` ends the process.
_FATAL = (signal.SIGSEGV, signal.SIGFPE, signal.SIGABRT, signal.SIGBUS, signal.SIGILL)
#: The signals that a process ignores and catches (proc(5)).
_MASKS = re.compile(r"^Sig(?:Ign|Cgt):\s*([0-9a-f]+)$", re.MULTILINE)
_TIMERS = {
    signal.ITIMER_REAL: signal.SIGALRM,
    signal.ITIMER_VIRTUAL: signal.SIGVTALRM,
    signal.ITIMER_PROF: signal.SIGPROF,
}


class Ended(SystemExit):
    """Raised instead of performing `call`, which would end the server."""

    def __init__(self, call: str, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.call = call


def contain() -> None:
    """Make the guarded calls raise `Ended` in this process.

    In its forked children the calls work as usual, after the started log line is written.
    """
    server = os.getpid()
    for name, (modules, ends) in _CALLS.items():
        contained = _contained(server, f"{modules[-1].__name__}.{name}", modules[0], name, ends)
        for module in modules:
            setattr(module, name, contained)


def _contained(
    server: int, call: str, module: ModuleType, name: str, ends: Callable[..., bool]
) -> Callable[..., Any]:
    original = getattr(module, name)

    @wraps(original)
    def contained(*arguments: Any, **options: Any) -> Any:
        if ends(*arguments, **options):
            if os.getpid() == server:
                raise Ended(call, *arguments[:1])
            log.end_own_lines()  # an unfinished line would be lost
        return original(*arguments, **options)

    return contained


def _always(*_arguments: Any, **_options: Any) -> bool:
    return True


def _is_deadly(number: int = signal.SIGINT) -> bool:
    try:
        default = signal.getsignal(number) == signal.SIG_DFL
    except (ValueError, TypeError):  # the call itself raises it
        return False
    harmless = number in _HARMLESS or (number not in _FATAL and _is_handled(number))
    return number in _STOP or (default and not harmless)


def _is_handled(number: int) -> bool:
    """Whether C code handles or ignores the signal, as after ``faulthandler.register``."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return any(int(mask, 16) >> (number - 1) & 1 for mask in _MASKS.findall(status))


def _to_process(pid: int, number: int) -> bool:
    return pid in (os.getpid(), 0, -1, -os.getpgrp()) and _is_deadly(number)


def _to_group(group: int, number: int) -> bool:
    return group in (os.getpgrp(), 0) and _is_deadly(number)


def _to_thread(_thread_id: int, number: int) -> bool:
    return _is_deadly(number)


def _by_alarm(seconds: int) -> bool:
    return bool(seconds) and _is_deadly(signal.SIGALRM)


def _by_timer(which: int, seconds: float, _interval: float = 0.0) -> bool:
    return bool(seconds) and which in _TIMERS and _is_deadly(_TIMERS[which])


#: Call -> the modules with that name, the defining one first, and whether arguments end the server.
_CALLS: dict[str, tuple[tuple[ModuleType, ...], Callable[..., bool]]] = {
    "_exit": ((posix, os), _always),
    "abort": ((posix, os), _always),
    "execv": ((posix, os), _always),
    "execve": ((posix, os), _always),
    "kill": ((posix, os), _to_process),
    "killpg": ((posix, os), _to_group),
    "raise_signal": ((_SIGNAL, signal), _is_deadly),
    "pthread_kill": ((_SIGNAL, signal), _to_thread),
    "alarm": ((_SIGNAL, signal), _by_alarm),
    "setitimer": ((_SIGNAL, signal), _by_timer),
    "interrupt_main": ((_thread,), _is_deadly),
}
