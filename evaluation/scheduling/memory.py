"""The most memory that this process has had."""

from __future__ import annotations

from pathlib import Path


def peak_mib() -> float:
    """The high-water mark of the resident set.

    Of a child that has just been forked, getrusage would count the parent's memory.
    """
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024
