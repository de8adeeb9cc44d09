"""The CPU time of a process and of all that it has started."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
#: The places of user and system time in proc(5)'s stat, behind the name: its own, and that of its
#: children which have ended.
_TIMES = slice(11, 15)


def tree_cpu_s(root: int, proc: Path = Path("/proc")) -> float:
    """CPU seconds of the process `root` and its descendants, with those that have ended.

    A kernel that names no children tells of the process and its ended children alone.
    """
    ticks, left = 0, [root]
    while left:
        process = proc / str(left.pop())
        with suppress(OSError):  # it has ended meanwhile: its parent has its time
            fields = (process / "stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[_TIMES]))
            for thread in (process / "task").iterdir():
                with suppress(OSError):
                    left += map(int, (thread / "children").read_text().split())
    return ticks / _TICKS_PER_S
