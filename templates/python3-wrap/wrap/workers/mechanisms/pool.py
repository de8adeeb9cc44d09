"""Mechanism ``pool``: long-lived workers, each with a place in the plan.

A slot is a further process of the plan. It has its own workers, so that what a function keeps in
module globals is found again. An execution is admitted when each slot has a worker for it, and
keeps those that it takes until their tasks have ended: so no two executions wait for workers of
each other in one wrap. In several wraps they can, and then more are admitted.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from wrap.config.settings import count
from wrap.core.admission import Limiter
from wrap.workers.fork_client import ForkClient
from wrap.workers.worker import Process

if TYPE_CHECKING:
    from wrap.workers.mechanisms import Candidate


class Pool:
    """Processes that serve execution after execution.

    Its settings are ``pool_concurrency``: workers of a slot, which is how many executions may be
    here at the same time; and ``pool_requests``: after how many executions a worker makes way for a
    new one, so that what handlers leave behind does not pile up.
    """

    def __init__(
        self, slots: int, environment: Mapping[str, str], unforked: Collection[int]
    ) -> None:
        self._fork_client: ForkClient
        self._limiter: Limiter[Candidate] = Limiter(count(environment, "pool_concurrency", 2))
        self._requests = count(environment, "pool_requests", 1000)
        self._idle: list[list[Process]] = [[] for _ in range(slots)]
        self._lock = threading.Lock()
        self.full = f"all {self._limiter.limit} workers are busy: raise pool_concurrency"

    @property
    def lasting(self) -> int:
        """The workers that it has for one execution.

        It gets more of them when there are more at once. These needed the memory that they then
        keep, and the next execution takes the worker that was free last.
        """
        return len(self._idle)

    def start(self, fork_client: ForkClient) -> None:
        """Get workers from `fork_client` from now on, one of each slot at once."""
        self._fork_client = fork_client
        for slot, idle in enumerate(self._idle):
            idle.append(self._worker(slot))

    def admit(self, candidate: Candidate) -> None:
        """Admit `candidate` when there is a worker of each slot for one more execution."""
        with self._lock:
            is_admitted = self._limiter.ask(candidate)
        if is_admitted and not candidate.admit():
            self.leave(candidate)

    def admit_more(self) -> None:
        """Admit one more, with workers of its own, where all that were admitted wait."""
        with self._lock:
            following = self._limiter.exceed(lambda each: each.is_blocked)
        if following is not None and not following.admit():
            self.leave(following)

    @property
    def free(self) -> int:
        """For how many more executions there is a worker of each slot."""
        return self._limiter.free

    @property
    def most(self) -> int:
        """As many as each slot may have workers."""
        return self._limiter.limit

    @property
    def waiting(self) -> int:
        """Those that wait for workers."""
        return self._limiter.waiting

    def leave(self, candidate: Candidate) -> None:
        """Admit the next execution that still wants to begin."""
        leaving: Candidate | None = candidate
        while leaving is not None:
            with self._lock:
                following = self._limiter.leave(leaving)
            leaving = None if following is None or following.admit() else following

    def take(self, slot: int) -> Process:
        """An idle worker of `slot`, or a new one. Raises OSError where none can be had."""
        idle = self._idle[slot]
        while True:
            try:
                worker = idle.pop()
            except IndexError:
                return self._worker(slot)
            if worker.alive():
                return worker
            worker.end()

    def give(self, slot: int, process: Process, sound: bool) -> None:
        """Give a worker back; one that is not `sound`, or worn, makes way for another."""
        idle = self._idle[slot]
        if sound and process.executions < self._requests and len(idle) < self._limiter.limit:
            idle.append(process)
            return
        if sound:
            process.close()
        else:
            process.end()
        if len(idle) < self._limiter.limit:
            with contextlib.suppress(OSError):
                idle.append(self._worker(slot))

    def _worker(self, slot: int) -> Process:
        return self._fork_client.spawn(1 + slot)
