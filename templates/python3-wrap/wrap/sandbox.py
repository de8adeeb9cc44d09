"""What the sandbox allows: its cores and its memory.

The cpuset is what the kernel lets this process run on. The CPU quota and the memory limit are
those of its control groups, version 1 or 2, and of the groups around them. Where processes are not
put into groups, ``MEMORY_LIMIT_BYTES`` has the memory limit.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

_MOUNT = "sys/fs/cgroup"
#: Version 1 writes a number near the largest one where there is no limit.
_NO_LIMIT = 1 << 62


def cores(root: Path = Path("/")) -> int:
    """How many cores the sandbox may keep busy: those of its cpuset, or of its quota if fewer."""
    quotas = [*_quotas_v2(root), *_quotas_v1(root)]
    return max(1, min([len(os.sched_getaffinity(0)), *map(math.ceil, quotas)]))


def memory_bytes(root: Path = Path("/")) -> int:
    """The most memory that the sandbox may take: what the machine has where nothing limits it."""
    limits = [*_numbers(root, "", "memory.max"), *_numbers(root, "memory", "memory.limit_in_bytes")]
    told = os.environ.get("MEMORY_LIMIT_BYTES", "")
    limits += [int(told)] if told.isdecimal() else []
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *(limit for limit in limits if 0 < limit < _NO_LIMIT)])


def _quotas_v2(root: Path) -> Iterator[float]:
    for group in _groups(root, ""):
        quota, *period = _words(group / "cpu.max")[:2] or ["max"]
        if quota.isdecimal() and period and period[0].isdecimal():
            yield int(quota) / int(period[0])


def _quotas_v1(root: Path) -> Iterator[float]:
    for group in _groups(root, "cpu"):
        quota, period = (_words(group / f"cpu.cfs_{what}_us")[:1] for what in ("quota", "period"))
        if quota and quota[0].isdecimal() and period and period[0].isdecimal():
            yield int(quota[0]) / int(period[0])


def _numbers(root: Path, controller: str, name: str) -> Iterator[int]:
    for group in _groups(root, controller):
        yield from (int(word) for word in _words(group / name)[:1] if word.isdecimal())


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """Folders of this process's group of `controller` ("" is version 2) and those around it.

    In a container the mount may begin at the group itself, so that its path leads nowhere: all
    folders on the way are looked at, and those that are not there say nothing.
    """
    for line in _lines(root / "proc/self/cgroup"):
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            mount = root / _MOUNT / controller
            own = Path(path.lstrip("/"))
            yield from (mount / folder for folder in (own, *own.parents))


def _words(file: Path) -> list[str]:
    return " ".join(_lines(file)).split()


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
