"""Measures how busy other programs keep this machine's cores, while this program is idle.

Profiles, platforms and predictions are for a machine that runs nothing else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from statistics import fmean

import psutil

#: A short sample in seconds, between rounds of requests; the mean of many is one figure.
LOOK_S = 0.05
#: A sample in seconds that is used by itself.
LONG_LOOK_S = 0.25
#: The lowest share of the cores that is reported; daemons of a quiet machine use 0.01 to 0.03.
BUSY = 0.1


def others_share(seconds: float = LOOK_S) -> float | None:
    """Return the share of this process's cores that others use in `seconds` of sleep.

    Steal time of a hypervisor counts as use, waiting for disks does not. None if the kernel does
    not report it. The caller must have nothing running: otherwise the CPU times of all its
    processes would be needed, in containers and after their end.
    """
    try:
        busy = psutil.cpu_percent(seconds, percpu=True)
    except OSError:  # a sandbox without /proc/stat
        return None
    return fmean(_own(busy)) / 100


def mean_share(looks: Iterable[float | None]) -> float | None:
    """Return the mean of several samples, rounded for storage; None if no sample has a value."""
    known = [share for share in looks if share is not None]
    return round(fmean(known), 3) if known else None


def disturbance(share: float | None) -> str | None:
    """Return the sentence on the load by others if it is enough to disturb, else None."""
    if share is None or share < BUSY:
        return None
    return f"{share:.0%} of the cores were busy with something else"


def is_quiet() -> bool:
    """Return whether others leave the cores idle now."""
    return disturbance(others_share(LONG_LOOK_S)) is None


def got_quiet(share: float | None) -> bool:
    """Return whether other programs, with `share` of the cores, disturbed then and not now."""
    return disturbance(share) is not None and is_quiet()


def await_quiet(limit_s: float) -> None:
    """Return when others leave the cores idle, or after `limit_s` seconds."""
    deadline = time.monotonic() + limit_s
    while not is_quiet() and time.monotonic() < deadline:
        pass


def busy_line(share: float | None) -> str | None:
    """Return the warning for a prediction and a measurement; None if the machine was quiet."""
    busy = disturbance(share)
    return f"{busy} during the measurement: predictions are for an idle machine" if busy else None


def busy_share() -> float:
    """Return the share of this process's cores that were busy since the last call, with ours."""
    try:
        busy = psutil.cpu_percent(None, percpu=True)
    except OSError:  # a sandbox without /proc/stat
        return 0.0
    return fmean(_own(busy)) / 100


def _own(cores: list[float]) -> list[float]:
    """Return the elements of `cores` that this process may use; all if a container renumbers."""
    return [cores[each] for each in os.sched_getaffinity(0) if each < len(cores)] or cores
