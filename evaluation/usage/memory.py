"""Memory of processes, every page once, whatever else on the machine maps the same files.

The proportional set size of a process depends on who else has mapped the interpreter's libraries,
so it shrinks with every further sandbox. Anonymous pages are shared within a sandbox alone: for
them it is right. Pages of files are counted once for all given processes instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import psutil

_KIB_PER_MIB = 1024.0
_BYTES_PER_MIB = float(2**20)
_PROPORTIONAL = ("Pss_Anon:", "Pss_Shmem:")


def memory_mib(pids: Iterable[int]) -> float:
    """Memory of the processes `pids`, those that end meanwhile left out.

    A file's pages count as many as the process has resident that has the most of them.
    """
    anonymous_kib = 0
    files: dict[str, float] = {}
    for pid in pids:
        try:
            anonymous_kib += _anonymous_kib(pid)
            for path, size in _file_bytes(pid).items():
                files[path] = max(size, files.get(path, 0.0))
        except (psutil.Error, OSError):
            continue
    return anonymous_kib / _KIB_PER_MIB + sum(files.values()) / _BYTES_PER_MIB


def _anonymous_kib(pid: int) -> int:
    """Anonymous and shared memory, a page of n processes as 1/n in each."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    rows = (line.split() for line in rollup.splitlines())
    return sum(int(row[1]) for row in rows if row and row[0] in _PROPORTIONAL)


def _file_bytes(pid: int) -> dict[str, float]:
    """Resident pages of every file that the process maps, its own copies of them left out."""
    maps = psutil.Process(pid).memory_maps(grouped=True)
    return {each.path: each.rss - each.anonymous for each in maps if each.path.startswith("/")}
