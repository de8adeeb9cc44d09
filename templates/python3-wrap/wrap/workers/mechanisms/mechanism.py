"""The interface of a mechanism, which gets workers for executions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import ClassVar, Protocol

from wrap.workers.idle_workers import IdleWorkers
from wrap.workers.worker import WorkerProcess


class Candidate(Protocol):
    """An execution that needs workers."""

    def admit(self) -> bool:
        """Begin; return whether the execution still wants to."""

    @property
    def is_blocked(self) -> bool:
        """Whether no part of it can proceed here until another wrap has done something."""


class Starter(Protocol):
    """Starts workers."""

    def spawn(self, process: int = 0) -> WorkerProcess:
        """Return a new worker, for a process of the plan if it is not 0. Raises OSError."""


class Mechanism(ABC):
    """A way to get worker processes, as many as are needed unless a subclass limits them."""

    name: ClassVar[str]
    #: Whether its workers are interpreters of the server's process.
    in_server: ClassVar[bool] = False
    #: The reason in the error of an execution that was never admitted.
    full = "it was not begun in time"
    #: How many executions may run at once; infinite if there is no limit.
    most: float = math.inf
    #: How many executions have not been admitted yet, and how many more could begin at once.
    waiting, free = 0, 1
    #: The workers of each slot, once started.
    _workers: list[IdleWorkers]

    @abstractmethod
    def __init__(
        self, slots: int, environment: Mapping[str, str], unforked: Collection[int]
    ) -> None:
        """Get no worker yet. Raises ValueError if a setting in `environment` is invalid.

        The `slots` are the worker processes of the plan. Workers of the slots `unforked` cannot be
        forked with their functions.
        """

    @property
    @abstractmethod
    def lasting(self) -> int:
        """How many processes, besides the server, keep memory from one request to the next."""

    @abstractmethod
    def start(self, starter: Starter) -> None:
        """Get workers from `starter` from now on. Raises OSError or ImportError if it has none."""

    def admit(self, candidate: Candidate) -> None:
        """Admit `candidate` when it may take a worker of each slot: now, or in a later `leave`."""
        candidate.admit()

    def admit_more(self) -> None:  # noqa: B027 (for mechanisms with a limit)
        """Admit one more execution if all admitted executions wait for other wraps.

        They may indirectly wait for an execution that waits here.
        """

    def leave(self, candidate: Candidate) -> None:  # noqa: B027 (for mechanisms with a limit)
        """Note that `candidate`, which was admitted, takes no more workers."""

    def take(self, slot: int) -> WorkerProcess:
        """Return a worker of `slot` for an admitted execution. Raises OSError."""
        return self._workers[slot].take()

    def give(self, slot: int, process: WorkerProcess, sound: bool) -> None:
        """Take a worker back; it is `sound` if it has answered all its requests."""
        self._workers[slot].give(process, sound)
