"""What a mechanism does: it gets further processes for executions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import ClassVar, Protocol

from wrap.workers.fork_client import ForkClient
from wrap.workers.idle_workers import IdleWorkers
from wrap.workers.worker import Process


class Candidate(Protocol):
    """An execution that wants workers."""

    def admit(self) -> bool:
        """Begin; whether it still wants to."""

    @property
    def is_blocked(self) -> bool:
        """Whether nothing of it goes on here until another wrap has done something."""


class Mechanism(ABC):
    """How further processes come to be."""

    #: As plans call it.
    name: ClassVar[str]
    #: Why an execution was never admitted.
    full: str
    #: The workers of each slot, from `start` on.
    _workers: list[IdleWorkers]

    @abstractmethod
    def __init__(
        self, slots: int, environment: Mapping[str, str], unforked: Collection[int]
    ) -> None:
        """Get no process yet. Raises ValueError if a setting in `environment` is none."""

    @property
    @abstractmethod
    def lasting(self) -> int:
        """How many processes, besides the server, keep memory from one request to the next."""

    @abstractmethod
    def start(self, fork_client: ForkClient) -> None:
        """Get processes from `fork_client` from now on. Raises OSError if there are none."""

    @abstractmethod
    def admit(self, candidate: Candidate) -> None:
        """Admit `candidate` when it may take a process of each slot: now, or by a `leave`."""

    @abstractmethod
    def admit_more(self) -> None:
        """Admit one more execution if all that were admitted wait for other wraps.

        What these wait for may be held up there by an execution that waits here.
        """

    @property
    @abstractmethod
    def free(self) -> int:
        """How many more executions could begin at once."""

    @property
    @abstractmethod
    def most(self) -> float:
        """How many executions may be here at once; infinite if as many as come."""

    @property
    @abstractmethod
    def waiting(self) -> int:
        """How many have not been admitted yet."""

    @abstractmethod
    def leave(self, candidate: Candidate) -> None:
        """Note that `candidate`, which was admitted, takes no more processes."""

    def take(self, slot: int) -> Process:
        """A process for the further process `slot` of an admitted execution; OSError."""
        return self._workers[slot].take()

    @abstractmethod
    def give(self, slot: int, process: Process, sound: bool) -> None:
        """Be done with it; `sound` if it has answered all that it was asked."""
