"""The mechanisms: how further processes come to be, one file each; the rest knows none by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from wrap.workers.fork_client import ForkClient
from wrap.workers.mechanisms.fork import Fork
from wrap.workers.mechanisms.pool import Pool
from wrap.workers.worker import Process


class Candidate(Protocol):
    """An execution that wants workers."""

    def admit(self) -> bool:
        """Begin; whether it still wants to."""

    @property
    def is_blocked(self) -> bool:
        """Whether nothing of it goes on here until another wrap has done something."""


class Mechanism(Protocol):
    """How further processes come to be."""

    @property
    def lasting(self) -> int:
        """How many processes, besides the server, keep memory from one request to the next."""

    def start(self, fork_client: ForkClient) -> None:
        """Get processes from `fork_client` from now on. Raises OSError where there are none."""

    #: Why an execution was never admitted.
    full: str

    def admit(self, candidate: Candidate) -> None:
        """Admit `candidate` when it may take a process of each slot: now, or by a `leave`."""

    def admit_more(self) -> None:
        """Admit one more where all that were admitted wait for other wraps.

        What these wait for may be held up there by one that waits here.
        """

    @property
    def free(self) -> int:
        """How many more executions could begin at once."""

    @property
    def most(self) -> float:
        """How many executions may be here at once; infinite where as many as come."""

    @property
    def waiting(self) -> int:
        """How many have not been admitted yet."""

    def leave(self, candidate: Candidate) -> None:
        """Note that `candidate`, which was admitted, takes no more processes."""

    def take(self, slot: int) -> Process:
        """A process for the further process number `slot`, for an execution that was admitted.

        Raises OSError where there is none.
        """

    def give(self, slot: int, process: Process, sound: bool) -> None:
        """Be done with it; `sound` if it has answered all that it was asked."""


_MECHANISMS: dict[str, Callable[[int, Mapping[str, str], Collection[int]], Mechanism]] = {
    "fork": Fork,
    "pool": Pool,
}


def mechanism_of(
    name: str, slots: int, environment: Mapping[str, str], unforked: Collection[int] = ()
) -> Mechanism:
    """The mechanism called `name` for a wrap of so many slots, its further processes.

    No process can be forked that has the functions of the slots `unforked`.

    Raises ValueError where there is none, or where a setting of it in `environment` is none.
    """
    if name not in _MECHANISMS:
        raise ValueError(f"mechanism {name!r} is none of {', '.join(_MECHANISMS)}")
    return _MECHANISMS[name](slots, environment, unforked)
