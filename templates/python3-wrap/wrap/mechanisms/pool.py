"""Mechanism ``pool``: long-lived workers, each with a place in the plan.

A slot is the position of a further process in its stage. A slot has its own workers, so that
what a function keeps in module globals is found again. Every request takes slots in the same
order and gives them back when its stage ends, so requests that wait for workers cannot wait
for each other in a circle.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from wrap.errors import TaskError
from wrap.process import Process
from wrap.settings import count
from wrap.spawner import Spawner


@dataclass
class _Slot:
    changed: threading.Condition = field(default_factory=threading.Condition)
    idle: list[Process] = field(default_factory=list)
    workers: int = 0


class Pool:
    """Processes that serve job after job.

    Its settings are ``pool_concurrency``: workers of a slot, which is how many requests may be in
    it at the same time; and ``pool_requests``: after how many requests a worker makes way for a
    new one, so that what handlers leave behind does not pile up.
    """

    kind = "dispatch"

    def __init__(self, slots: int, environment: Mapping[str, str]) -> None:
        self._spawner: Spawner
        self._limit = count(environment, "pool_concurrency", 2)
        self._requests = count(environment, "pool_requests", 1000)
        self._slots = [_Slot() for _ in range(slots)]

    @property
    def lasting(self) -> int:
        """The workers that it has for one request.

        It gets more of them when there are more requests at once. These needed the memory that they
        then keep, and the next request takes the worker that was free last.
        """
        return len(self._slots)

    def start(self, spawner: Spawner) -> None:
        """Get workers from `spawner` from now on, one of each slot at once."""
        self._spawner = spawner
        for slot in self._slots:
            slot.idle, slot.workers = [spawner.spawn()], 1

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
