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
from functools import partial

from wrap.config.settings import count
from wrap.core.admission import Limiter
from wrap.core.idle_workers import Fate
from wrap.workers.fork_client import ForkClient
from wrap.workers.idle_workers import IdleWorkers
from wrap.workers.mechanisms.mechanism import Candidate, Mechanism
from wrap.workers.worker import Process


class Pool(Mechanism):
    """Processes that serve execution after execution.

    Its settings are ``pool_concurrency``: workers of a slot, which is how many executions may be
    here at the same time; and ``pool_requests``: after how many executions a worker makes way for a
    new one, so that what handlers leave behind does not pile up.
    """

    name = "pool"

    def __init__(
        self, slots: int, environment: Mapping[str, str], unforked: Collection[int]
    ) -> None:
        self._slots = slots
        self._limiter: Limiter[Candidate] = Limiter(count(environment, "pool_concurrency", 2))
        self._requests = count(environment, "pool_requests", 1000)
        self._workers = []
        self._lock = threading.Lock()
        self.full = f"all {self._limiter.limit} workers are busy: raise pool_concurrency"

    @property
    def lasting(self) -> int:
        """The workers that it has for one execution.

        It gets more of them when there are more at once. These needed the memory that they then
        keep, and the next execution takes the worker that was free last.
        """
        return self._slots

    def start(self, fork_client: ForkClient) -> None:
        """Get workers from `fork_client` from now on, one of each slot at once."""
        for slot in range(self._slots):
            spawn = partial(fork_client.spawn, 1 + slot)
            workers = IdleWorkers(spawn, self._limiter.limit, self._requests)
            workers.add()
            self._workers.append(workers)

    def admit(self, candidate: Candidate) -> None:
        """Admit `candidate` when there is a worker of each slot for one more execution."""
        with self._lock:
            is_admitted = self._limiter.admit_or_queue(candidate)
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
        return self._limiter.waiting

    def leave(self, candidate: Candidate) -> None:
        """Admit the next execution that still wants to begin."""
        leaving: Candidate | None = candidate
        while leaving is not None:
            with self._lock:
                following = self._limiter.leave(leaving)
            leaving = None if following is None or following.admit() else following

    def give(self, slot: int, process: Process, sound: bool) -> None:
        """Give a worker back; another takes its place if it is not `sound`, or worn."""
        workers = self._workers[slot]
        if workers.give(process, sound) is not Fate.KEPT and workers.has_room:
            with contextlib.suppress(OSError):
                workers.add()
