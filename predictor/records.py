"""The records of the compiled kernel: what it knows of a period, a thread, a GIL and the clock."""

from __future__ import annotations

from typing import Any

import numpy as np

#: An array of records, whose fields are attributes to numba, of which numpy's types know nothing.
Records = Any

CPU, NATIVE, BLOCK = 0, 1, 2
KINDS = {"cpu": CPU, "native": NATIVE, "block": BLOCK}


def _record(numbers: str, times: str) -> np.dtype[np.void]:
    fields = [(name, np.int64) for name in numbers.split()]
    return np.dtype([*fields, *((name, np.float64) for name in times.split())])


PERIOD = _record("kind", "duration_ms")

#: ``begin`` to ``end`` are a thread's periods, ``at`` is the one it is in, ``behind`` is who
#: waits for the GIL after it. A starter has no ``begin``; its ``end`` is its last thread.
THREAD = _record("process begin end at behind", "remaining_ms since_ms")

#: ``head`` and ``tail`` are who has waited longest and shortest, ``unstarted`` is the next thread
#: to start, ``parked`` says whether the starter waits for the one it started last,
#: ``computing_ms`` is what it has to compute before it starts any, ``forking_ms`` what is computed
#: before that, and ``forked`` whether it is. ``follower`` is the starter of the process that is
#: forked next.
GIL = _record(
    "holder last_holder head tail starter unstarted unfinished parked forked follower",
    "taken_ms switching_ms end_ms computing_ms forking_ms",
)

#: The constants of `predictor.threads.Interpreter` (``thread_ready_ms`` < 0 stands for None), by
#: how much computing takes longer where more threads want to than cores can, those cores, and the
#: time: as it is, as threads that compute see it, and what passes for one instant of it.
CLOCK = _record(
    "cores",
    "switch_interval_ms switch_cost_ms thread_startup_ms thread_ready_ms short_release_ms "
    "wasted_cores now_ms virtual_ms instant_ms",
)
