"""Mechanism ``fork``: a fresh process for each further process of each execution.

A process of functions that cannot be forked would start their runtime for each execution. It is
kept for later executions, as the templates of such functions keep theirs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from wrap.workers.fork_client import ForkClient
from wrap.workers.worker import Process

if TYPE_CHECKING:
    from wrap.workers.mechanisms import Candidate


#: Idle processes that are kept of a slot.
_KEPT = 2


class Fork:
    """Processes that serve one execution; those of the slots `unforked` serve many."""

    most = math.inf
    waiting = 0
    full = "it was not begun in time"

    def __init__(
        self, slots: int, environment: Mapping[str, str], unforked: Collection[int]
    ) -> None:
        self._fork_client: ForkClient
        self._idle: dict[int, list[Process]] = {slot: [] for slot in unforked}

    @property
    def lasting(self) -> int:
        """The processes of one execution that serve many."""
        return len(self._idle)

    def start(self, fork_client: ForkClient) -> None:
        """Get processes from `fork_client` from now on, one that is kept of each slot at once."""
        self._fork_client = fork_client
        for slot, idle in self._idle.items():
            idle.append(fork_client.spawn(1 + slot))

    def admit(self, candidate: Candidate) -> None:
        """Admit `candidate`: there are as many processes as are wanted."""
        candidate.admit()

    def admit_more(self) -> None:
        """Nobody waits."""

    @property
    def free(self) -> int:
        """One more, always."""
        return 1

    def leave(self, candidate: Candidate) -> None:
        """Nothing waits for that."""

    def take(self, slot: int) -> Process:
        """A process for one execution. Raises OSError where none can be had."""
        if slot not in self._idle:
            return self._fork_client.spawn()
        while True:
            try:
                process = self._idle[slot].pop()
            except IndexError:
                return self._fork_client.spawn(1 + slot)
            if process.alive():
                return process
            process.end()

    def give(self, slot: int, process: Process, sound: bool) -> None:
        """Be done with it; `sound` if it has answered all that it was asked."""
        if not sound:
            process.end()
        elif slot in self._idle and len(self._idle[slot]) < _KEPT:
            self._idle[slot].append(process)
        else:
            process.close()
