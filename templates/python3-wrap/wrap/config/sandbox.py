"""The limits of the sandbox: cores, which the wrap keeps to, memory, and the kernel's OOM kills.

The cpuset is the set of cores on which the kernel runs this process. The CPU quota and the memory
limit are those of its control groups, version 1 or 2, and of their parents. If processes are not
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
#: Version 1 writes a number near the largest possible if there is no limit.
_NO_LIMIT = 1 << 62
#: The name of the number of killed processes, in both versions.
_KILLS = "oom_kill"


def cores(root: Path = Path("/")) -> int:
    """Return how many cores the sandbox may keep busy: the cpuset's, or the quota's if fewer."""
    quotas = [*_quotas_v2(root), *_quotas_v1(root)]
    return max(1, min([len(os.sched_getaffinity(0)), *map(math.ceil, quotas)]))


def memory_bytes(root: Path = Path("/")) -> int:
    """Return the most memory that the sandbox may take: the machine's if there is no limit."""
    told = os.environ.get("MEMORY_LIMIT_BYTES", "")
    return min(
        kernel_memory_bytes(root), int(told) if told.isdecimal() and int(told) else _NO_LIMIT
    )


def kernel_memory_bytes(root: Path = Path("/")) -> int:
    """Return the bytes above which the kernel kills: the groups' limit, or the machine's memory."""
    limits = [*_numbers(root, "", "memory.max"), *_numbers(root, "memory", "memory.limit_in_bytes")]
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *(limit for limit in limits if 0 < limit < _NO_LIMIT)])


def memory_kills(root: Path = Path("/")) -> int:
    """Return how many processes of this control group the kernel has killed for lack of memory.

    The first folder with the number is the group's own; enclosing groups count others' too.
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
    """Yield the folders of this process's group of `controller` ("": version 2) and its parents.

    In a container the mount may begin at the group itself, so that the group's path does not exist.
    So all folders on the path are tried, and missing folders yield nothing.
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
    """Counts OOM kills since it was made; it checks only when a request has failed."""

    def __init__(self) -> None:
        self._count = memory_kills()
        self._noticed = -inf

    def during(self, arrived: float) -> str | None:
        """Return the cause of a failed request that came at `arrived`; None without a kill.

        A kill that was not noticed before is assigned to it. All requests in flight get the cause.
        """
        count = memory_kills()
        if count > self._count:
            self._count, self._noticed = count, time.monotonic()
        if self._noticed < arrived:
            return None
        limit = kernel_memory_bytes() >> 20
        return f"the kernel killed a process above the memory limit of {limit} MiB"


def keep_to_cores(cpus: int | None) -> None:
    """Bind this process, and all that it starts, to `cpus` of the cores that it may use.

    If a wrap uses more cores at once than its CPU quota, the kernel stops it for the rest of the
    period, up to 0.1 s. On no more cores than its quota it is never stopped, so a smaller quota
    wins. The cores are chosen at random, so that the wraps of a machine do not all choose the same.
    A sandbox without more cores is not changed. Call it before functions are imported, as libraries
    count cores then.
    """
    allowed = sorted(os.sched_getaffinity(0))
    count = min(cpus or len(allowed), cores())
    if count >= len(allowed):
        return
    try:
        os.sched_setaffinity(0, random.sample(allowed, count))
    except OSError as error:  # not every sandbox allows this
        print(f"cannot keep to {count} of {len(allowed)} cores: {error}")
