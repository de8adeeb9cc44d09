"""Calls with which a handler would end the server, and all requests with it: they end its task.

That is all that Python's own modules have for it. Native code can do as much and cannot be kept
from it (ctypes, a crash): then the requests fail, and the gateway or the watchdog starts the wrap
again.
"""

from __future__ import annotations

import _thread
import importlib
import os
import posix
import signal
from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any

from wrap.observe import log

_SIGNAL = importlib.import_module("_signal")  # it has no type hints
#: They stop the server, as it has handlers of its own for them.
_STOP = (signal.SIGTERM, signal.SIGINT)
#: What the kernel does at these ends nothing (signal(7)).
_HARMLESS = (0, signal.SIGCHLD, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH)
_TIMERS = {
    signal.ITIMER_REAL: signal.SIGALRM,
    signal.ITIMER_VIRTUAL: signal.SIGVTALRM,
    signal.ITIMER_PROF: signal.SIGPROF,
}


class Ended(SystemExit):
    """Raised in place of `call`, which would have ended the server."""

    def __init__(self, call: str, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.call = call


def contain() -> None:
    """Have the calls raise `Ended` in this process.

    In those that it forks they do as ever, once the line that was begun is in the log.
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
            log.end_own_lines()  # what is begun would end with the process
        return original(*arguments, **options)

    return contained


def _always(*_arguments: Any, **_options: Any) -> bool:
    return True


def _is_deadly(number: int = signal.SIGINT) -> bool:
    try:
        default = signal.getsignal(number) == signal.SIG_DFL
    except (ValueError, TypeError):  # the call itself says so
        return False
    return number in _STOP or (default and number not in _HARMLESS)


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


#: Name -> the modules that have the call, the one that defines it first, and when it ends us.
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
