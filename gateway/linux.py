"""The prctl(2) calls that tie the lives of processes together, and bound what they may do."""

from __future__ import annotations

import ctypes
import os

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def signal_at_parents_end(signal: int) -> None:
    """Have the kernel send this process `signal` when the thread that started it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal)


def forbid_inspection() -> None:
    """Let only root read this process's environment, memory and descriptors, or trace it.

    Holds for what it forks too, until that becomes another program by exec.
    """
    _prctl(_PR_SET_DUMPABLE, 0)


def forbid_new_privileges() -> None:
    """Have no exec give this process, or any below it, more privileges than it has."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
