"""The CPU time of a process and of all its descendants."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
#: The indices of user and system time in proc(5)'s stat, after the name: of the process, and of its
#: children that have ended.
_TIMES = slice(11, 15)


def tree_cpu_s(root: int, proc: Path = Path("/proc")) -> float:
    """Return the CPU seconds of the process `root` and its descendants, including ended ones.

    If the kernel does not list children, only the process and its ended children count.
    """
    ticks, left = 0, [root]
    while left:
        process = proc / str(left.pop())
        with suppress(OSError):  # it has ended: its time is now in its parent's
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[_TIMES]))
            for thread in (process / "task").iterdir():
                with suppress(OSError):
                    left += map(int, (thread / "children").read_text().split())
    return ticks / _TICKS_PER_S
