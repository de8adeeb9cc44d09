"""Run a program that ends when its parent process ends, however suddenly.

The kernel kills the program then (prctl(2), PR_SET_PDEATHSIG). The new process itself must request
that. A Python function between fork and exec would be unsafe if there are other threads. So this
file runs as a program that makes the request and then replaces itself by the other program.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1


def tied(command: Sequence[str]) -> list[str]:
    """Wrap `command` so that its process ends with the thread that starts it."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main(parent: str, *command: str) -> None:
    """Replace this process by `command`, unless `parent` has ended already."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == int(parent):
        os.execvp(command[0], command)  # noqa: S606  (the purpose of this file: no shell)


if __name__ == "__main__":
    main(*sys.argv[1:])
