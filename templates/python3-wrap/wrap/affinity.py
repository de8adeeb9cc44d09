"""Keeps a wrap to as many cores as its plan gives it, where its sandbox has more."""

from __future__ import annotations

import os
import random

from wrap import sandbox


def restrict(cpus: int | None) -> None:
    """Have this process, and all that it starts, run on `cpus` of the cores that it may use.

    A CPU quota stops a wrap that runs on more cores at once for the rest of its period, up to
    0.1 s; on no more cores than it has quota it never is, so that a smaller quota wins. Which ones
    is left to chance, so that the wraps of a machine do not all choose the same; a sandbox that
    has no more cores than that is left as it is. Before the functions are imported, as libraries
    count cores then.
    """
    allowed = sorted(os.sched_getaffinity(0))
    count = min(cpus or len(allowed), sandbox.cores())
    if count >= len(allowed):
        return
    try:
        os.sched_setaffinity(0, random.sample(allowed, count))
    except OSError as error:  # not every sandbox lets its processes choose
        print(f"cannot keep to {count} of {len(allowed)} cores: {error}")
