"""Runs a program that ends when the process which started it does, however suddenly that ends.

The kernel kills it then (prctl(2), PR_SET_PDEATHSIG). That has to be asked for within the new
process, where a function that Python calls between fork and exec is not safe beside other threads;
so this file is run as a program which asks and then becomes the other one.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1


def tied(command: Sequence[str]) -> list[str]:
    """`command` as one whose process ends with the thread that starts it."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main(parent: str, *command: str) -> None:
    """Become `command`, unless `parent` is gone already."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == int(parent):
        os.execvp(command[0], command)  # noqa: S606  (that is what it is for: no shell)


if __name__ == "__main__":
    main(*sys.argv[1:])
