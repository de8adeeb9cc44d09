"""Ends a server that would hang: if an essential thread fails, the process ends.

`wrap.core.heartbeat` has the rule that ends a server whose loops stand still.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import NoReturn

#: Seconds from one beat to the next.
BEAT_S = 1.0
#: The server ends at this signal, even if code holds the GIL, with the traceback of each thread.
END_SIGNAL = signal.SIGRTMAX - 3
_leave = os._exit  # `wrap.functions.exit_guard` replaces it for handlers


def essential(target: Callable[[], None], name: str) -> threading.Thread:
    """Start a thread that runs `target`; the process ends if `target` raises."""

    def run() -> None:
        try:
            target()
        except BaseException:
            _end(name)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


def _end(name: str) -> NoReturn:
    try:
        traceback.print_exc()
        print(f"the thread {name} has ended, so the server ends", file=sys.stderr)
        sys.stderr.flush()
    finally:  # a handler may have put anything there
        _leave(1)


def end_at_signal() -> None:
    """Make this process end at `END_SIGNAL`, even if it is the first of its sandbox.

    The first process of a sandbox ignores signals that it does not handle, and a handler in Python
    needs the GIL. So the C library's ``_exit`` is the handler; faulthandler calls it after its own.
    """
    import faulthandler  # a sub-interpreter cannot

    libc = ctypes.CDLL(None)
    libc.signal.argtypes, libc.signal.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
    libc.signal(END_SIGNAL, ctypes.cast(libc._exit, ctypes.c_void_p))
    faulthandler.register(END_SIGNAL, file=sys.stderr, all_threads=True, chain=True)
