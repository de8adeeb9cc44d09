"""Mechanism ``pool``: long-lived workers, each with a place in the plan.

A slot is a further process of the plan. It has its own workers, so that what a function keeps in
module globals is found again. An execution is admitted when each slot has a worker for it, and
keeps those that it takes until their tasks have ended: so no two executions wait for workers of
each other.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Mapping

from wrap.process import Process
from wrap.settings import count
from wrap.spawner import Spawner


class Pool:
    """Processes that serve execution after execution.

    Its settings are ``pool_concurrency``: workers of a slot, which is how many executions may be
    here at the same time; and ``pool_requests``: after how many executions a worker makes way for a
    new one, so that what handlers leave behind does not pile up.
    """

    kind = "dispatch"

    def __init__(self, slots: int, environment: Mapping[str, str]) -> None:
        self._spawner: Spawner
        self._limit = count(environment, "pool_concurrency", 2)
        self._requests = count(environment, "pool_requests", 1000)
        self._idle: list[list[Process]] = [[] for _ in range(slots)]
        self._lock = threading.Lock()
        self._admitted = 0
        self._waiting: deque[Callable[[], bool]] = deque()
        self.full = f"all {self._limit} workers are busy: raise pool_concurrency"

    @property
    def lasting(self) -> int:
        """The workers that it has for one execution.

        It gets more of them when there are more at once. These needed the memory that they then
        keep, and the next execution takes the worker that was free last.
        """
        return len(self._idle)

    def start(self, spawner: Spawner) -> None:
        """Get workers from `spawner` from now on, one of each slot at once."""
        self._spawner = spawner
        for idle in self._idle:
            idle.append(spawner.spawn())

    def admit(self, begin: Callable[[], bool]) -> None:
        """Call `begin` when there is a worker of each slot for one more execution."""
        with self._lock:
            if self._admitted == self._limit:
                self._waiting.append(begin)
                return
            self._admitted += 1
        if not begin():
            self.leave()

    @property
    def room(self) -> int:
        """For how many more executions there is a worker of each slot."""
        return self._limit - self._admitted

    def leave(self) -> None:
        """Admit the next execution that still wants to begin."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._admitted -= 1
                    return
                begin = self._waiting.popleft()
            if begin():
                return

    def take(self, slot: int) -> Process:
        """An idle worker of `slot`, or a new one. Raises OSError where none can be had."""
        idle = self._idle[slot]
        while True:
            try:
                worker = idle.pop()
            except IndexError:
                return self._spawner.spawn()
            if worker.alive():
                return worker
            worker.end()

    def give(self, slot: int, process: Process, sound: bool) -> None:
        """Give a worker back; one that is not `sound`, or worn, makes way for another."""
        if sound and process.executions < self._requests:
            self._idle[slot].append(process)
            return
        if sound:
            process.close()
        else:
            process.end()
        with contextlib.suppress(OSError):
            self._idle[slot].append(self._spawner.spawn())
