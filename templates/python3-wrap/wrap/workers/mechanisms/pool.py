"""Mechanism ``pool``: long-lived workers, each with a slot of the plan.

A slot is a worker process of the plan. It has its own workers, so that module globals of a function
persist. An execution is admitted when each slot has a worker for it. It keeps the workers that it
takes until their tasks have ended. So no two executions wait for each other's workers in one wrap.
In several wraps they can, and then more executions are admitted.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Mapping
from functools import partial

from wrap.config.settings import count
from wrap.core.admission import Limiter
from wrap.workers.idle_workers import IdleWorkers
from wrap.workers.mechanisms.mechanism import Candidate, Mechanism, Starter
from wrap.workers.worker import WorkerProcess


class Pool(Mechanism):
    """Workers that serve execution after execution.

    Its settings: ``pool_concurrency`` is the number of workers of a slot, and so the limit of
    concurrent executions. After ``pool_requests`` executions a worker is replaced, so that what
    handlers leave behind does not pile up.
    """

    name = "pool"

    def __init__(
        self, slots: int, environment: Mapping[str, str], unforked: Collection[int]
    ) -> None:
        self._slots = slots
        self._limiter: Limiter[Candidate] = Limiter(count(environment, "pool_concurrency", 2))
        self._requests: float = count(environment, "pool_requests", 1000)
        self._workers = []
        self._lock = threading.Lock()
        self.most = self._limiter.limit
        self.full = f"all {self.most} workers are busy: raise pool_concurrency"

    @property
    def lasting(self) -> int:
        """The workers of one execution.

        Concurrent executions get more workers. The memory that these keep was needed then, and the
        next execution takes the worker that was free last.
        """
        return self._slots

    def start(self, starter: Starter) -> None:
        """Get workers from `starter` from now on, and one of each slot at once."""
        for slot in range(self._slots):
            spawn = partial(starter.spawn, 1 + slot)
            workers = IdleWorkers(spawn, self._limiter.limit, self._requests)
            workers.add()
            self._workers.append(workers)

    def admit(self, candidate: Candidate) -> None:
        """Admit `candidate` when each slot has a worker for one more execution."""
        with self._lock:
            is_admitted = self._limiter.admit_or_queue(candidate)
        if is_admitted and not candidate.admit():
            self.leave(candidate)

    def admit_more(self) -> None:
        """Admit one more execution, with additional workers, if all admitted ones are blocked."""
        with self._lock:
            following = self._limiter.exceed(lambda each: each.is_blocked)
        if following is not None and not following.admit():
            self.leave(following)

    @property
    def free(self) -> int:  # type: ignore[override]
        return self._limiter.free

    @property
    def waiting(self) -> int:  # type: ignore[override]
        return self._limiter.waiting

    def leave(self, candidate: Candidate) -> None:
        """Admit the next execution that still wants to begin."""
        leaving: Candidate | None = candidate
        while leaving is not None:
            with self._lock:
                following = self._limiter.leave(leaving)
            leaving = None if following is None or following.admit() else following

    def give(self, slot: int, process: WorkerProcess, sound: bool) -> None:
        """Take a worker back; replace it if it is not `sound`, or is worn."""
        workers = self._workers[slot]
        if not workers.give(process, sound) and workers.has_room:
            with contextlib.suppress(OSError):
                workers.add()
