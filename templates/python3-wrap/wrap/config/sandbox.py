"""What the sandbox allows: its cores, kept to, and its memory; what the kernel killed for that.

The cpuset is what the kernel lets this process run on. The CPU quota and the memory limit are
those of its control groups, version 1 or 2, and of the groups around them. Where processes are not
put into groups, ``MEMORY_LIMIT_BYTES`` has the memory limit.
"""

from __future__ import annotations

import math
import os
import random
import time
from collections.abc import Iterator
from math import inf
from pathlib import Path

_MOUNT = "sys/fs/cgroup"
#: Version 1 writes a number near the largest one where there is no limit.
_NO_LIMIT = 1 << 62
#: What both versions call the number of processes that were killed.
_KILLS = "oom_kill"


def cores(root: Path = Path("/")) -> int:
    """How many cores the sandbox may keep busy: those of its cpuset, or of its quota if fewer."""
    quotas = [*_quotas_v2(root), *_quotas_v1(root)]
    return max(1, min([len(os.sched_getaffinity(0)), *map(math.ceil, quotas)]))


def memory_bytes(root: Path = Path("/")) -> int:
    """The most memory that the sandbox may take: what the machine has where nothing limits it."""
    told = os.environ.get("MEMORY_LIMIT_BYTES", "")
    return min(
        kernel_memory_bytes(root), int(told) if told.isdecimal() and int(told) else _NO_LIMIT
    )


def kernel_memory_bytes(root: Path = Path("/")) -> int:
    """Above what the kernel kills: the control groups' memory limit, or the machine's memory."""
    limits = [*_numbers(root, "", "memory.max"), *_numbers(root, "memory", "memory.limit_in_bytes")]
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *(limit for limit in limits if 0 < limit < _NO_LIMIT)])


def memory_kills(root: Path = Path("/")) -> int:
    """How many processes of this control group the kernel has killed for want of memory.

    The first folder that says so is the group's own; those around it count others' too.
    """
    for controller, name in (("", "memory.events"), ("memory", "memory.oom_control")):
        for group in _groups(root, controller):
            words = _words(group / name)
            if _KILLS in words:
                return int(words[words.index(_KILLS) + 1])
    return 0


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


class MemoryKills:
    """Counts from its making on; looked at only where a request has failed."""

    def __init__(self) -> None:
        self._count = memory_kills()
        self._noticed = -inf

    def during(self, arrived: float) -> str | None:
        """What is to be said of a failed request that came at `arrived`; None where none was.

        What was not noticed before is put down to it. All that were in flight are told.
        """
        count = memory_kills()
        if count > self._count:
            self._count, self._noticed = count, time.monotonic()
        if self._noticed < arrived:
            return None
        limit = kernel_memory_bytes() >> 20
        return f"the kernel killed a process above the memory limit of {limit} MiB"


def keep_to_cores(cpus: int | None) -> None:
    """Have this process, and all that it starts, run on `cpus` of the cores that it may use.

    A CPU quota stops a wrap that runs on more cores at once for the rest of its period, up to
    0.1 s; on no more cores than it has quota it never is, so that a smaller quota wins. Which ones
    is left to chance, so that the wraps of a machine do not all choose the same; a sandbox that
    has no more cores than that is left as it is. Before the functions are imported, as libraries
    count cores then.
    """
    allowed = sorted(os.sched_getaffinity(0))
    count = min(cpus or len(allowed), cores())
    if count >= len(allowed):
        return
    try:
        os.sched_setaffinity(0, random.sample(allowed, count))
    except OSError as error:  # not every sandbox lets its processes choose
        print(f"cannot keep to {count} of {len(allowed)} cores: {error}")
