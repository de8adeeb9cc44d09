"""How busy others keep the cores of this machine, looked at while nothing of ours runs.

What profiles, platforms and predictions say is for a machine that has nothing else to do.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from statistics import fmean

import psutil

#: A short look, between two rounds of requests; many of them make one figure.
LOOK_S = 0.05
#: A look that has to do by itself.
LONG_LOOK_S = 0.25
#: The share of the cores from which on others are worth a word; daemons of a quiet machine have
#: 0.01 to 0.03.
BUSY = 0.1


def others_share(seconds: float = LOOK_S) -> float | None:
    """The share of this process's cores that others have in the next `seconds`; this one sleeps.

    What a hypervisor takes (steal time) is theirs, waiting for disks is nobody's. To take our part
    off what is busy *during* requests would need the times of all that serve them, in containers
    and after their end; so whoever asks has nothing running. None where the kernel does not say.
    """
    try:
        busy = psutil.cpu_percent(seconds, percpu=True)
    except OSError:  # a sandbox without /proc/stat
        return None
    return fmean(_own(busy)) / 100


def mean_share(looks: Iterable[float | None]) -> float | None:
    """The mean of several looks, as it is stored; None where none told anything."""
    known = [share for share in looks if share is not None]
    return round(fmean(known), 3) if known else None


def disturbance(share: float | None) -> str | None:
    """In words what others had, where that is enough to disturb; None where it is not."""
    if share is None or share < BUSY:
        return None
    return f"{share:.0%} of the cores were busy with something else"


def is_quiet() -> bool:
    """Whether others leave the cores alone just now."""
    return disturbance(others_share(LONG_LOOK_S)) is None


def got_quiet(share: float | None) -> bool:
    """Whether others, who had `share` of the cores, disturbed then and do not now."""
    return disturbance(share) is not None and is_quiet()


def await_quiet(limit_s: float) -> None:
    """Return once others leave the cores alone, or after `limit_s` seconds."""
    deadline = time.monotonic() + limit_s
    while not is_quiet() and time.monotonic() < deadline:
        pass


def busy_line(share: float | None) -> str | None:
    """What to say beside a prediction and what was measured meanwhile; None where all was quiet."""
    busy = disturbance(share)
    return f"{busy} during the measurement: predictions are for an idle machine" if busy else None


def busy_share() -> float:
    """The share of this process's cores that were busy, ours too, since the last call."""
    try:
        busy = psutil.cpu_percent(None, percpu=True)
    except OSError:  # a sandbox without /proc/stat
        return 0.0
    return fmean(_own(busy)) / 100


def _own(cores: list[float]) -> list[float]:
    """What of `cores` this process may use, unless a container numbers them in its own way."""
    return [cores[each] for each in os.sched_getaffinity(0) if each < len(cores)] or cores
