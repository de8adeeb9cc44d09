"""Mechanism ``pool``: long-lived workers, each with a place in the plan.

A slot is the position of a further process in its stage. A slot has its own workers, so that
what a function keeps in module globals is found again. Every request takes slots in the same
order and gives them back when its stage ends, so requests that wait for workers cannot wait
for each other in a circle.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field

from wrap.errors import TaskError
from wrap.process import Process
from wrap.spawner import Spawner


@dataclass
class _Slot:
    changed: threading.Condition = field(default_factory=threading.Condition)
    idle: list[Process] = field(default_factory=list)
    workers: int = 0


class Pool:
    """Processes that serve job after job.

    Parameters
    ----------
    slots
        Further processes of the widest stage; one worker of each is started at once.
    limit
        Workers of a slot: how many requests may be in it at the same time.
    requests
        After how many requests a worker makes way for a new one, so that what handlers leave
        behind does not pile up.
    """

    #: How the start of a process is called in a timeline.
    kind = "dispatch"

    def __init__(self, spawner: Spawner, slots: int, limit: int, requests: int) -> None:
        self._spawner = spawner
        self._limit = limit
        self._requests = requests
        self._slots = [_Slot(idle=[spawner.spawn()], workers=1) for _ in range(slots)]

    def take(self, slot: int, deadline: float) -> Process:
        """An idle worker of `slot`, or a new one; waits where the limit is reached.

        Raises
        ------
        TaskError
            ``timeout``: none was free before `deadline` (seconds of the monotonic clock).
        """
        place = self._slots[slot]
        with place.changed:
            while True:
                while place.idle:
                    worker = place.idle.pop()
                    if worker.alive():
                        return worker
                    worker.end()
                    place.workers -= 1
                if place.workers < self._limit:
                    worker = self._spawner.spawn()
                    place.workers += 1
                    return worker
                if not place.changed.wait(max(0.0, deadline - time.monotonic())):
                    message = f"all {self._limit} workers are busy: raise pool_concurrency"
                    raise TaskError("timeout", message, status=504)

    def give(self, slot: int, process: Process, sound: bool) -> None:
        """Give a worker back; another takes the place of one that is not `sound`, or worn."""
        fresh = sound and process.jobs < self._requests
        if not sound:
            process.end()
        elif not fresh:
            process.close()
        place = self._slots[slot]
        with place.changed:
            try:
                place.idle.append(process if fresh else self._spawner.spawn())
            except OSError:
                place.workers -= 1
            place.changed.notify()
