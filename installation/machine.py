"""What the machine itself is: Python, cores and control groups."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from installation.findings import Finding

OLDEST_PYTHON = (3, 11)


def check_python(version: tuple[int, int] = sys.version_info[:2]) -> Finding:
    """Whether this Python is new enough."""
    shown = ".".join(map(str, version))
    if version >= OLDEST_PYTHON:
        return Finding("python", True, f"{shown} at {sys.executable}")
    needed = ".".join(map(str, OLDEST_PYTHON))
    return Finding("python", False, f"{shown} is too old", f"install Python {needed} or newer")


def check_cores(cores: int | None = None) -> Finding:
    """How many cores this process may run on; with one, processes of a wrap only take turns."""
    if cores is None:
        cores = len(os.sched_getaffinity(0))
    if cores >= 2:
        return Finding("cores", True, f"{cores} cores", required=False)
    fix = "give it two cores or more: on one, parallel processes only take turns"
    return Finding("cores", False, "1 core", fix, required=False)


def check_cgroup(root: Path = Path("/sys/fs/cgroup")) -> Finding:
    """Which version of control groups is mounted: it decides where memory and pids are found."""
    if (root / "cgroup.controllers").exists():
        return Finding("cgroup", True, "version 2", required=False)
    if (root / "memory").is_dir():
        return Finding("cgroup", True, "version 1", required=False)
    fix = f"mount cgroup2 at {root}; without it memory is read from /proc only"
    return Finding("cgroup", False, f"none at {root}", fix, required=False)
