"""Mechanism ``fork``: a fresh process for each slot of each execution.

A worker whose functions cannot be forked would start their runtime for each execution. It is kept
for later executions, as the templates of such functions keep theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from wrap.workers.idle_workers import IdleWorkers
from wrap.workers.mechanisms.mechanism import Mechanism, Starter

#: Idle workers to keep of a slot whose functions cannot be forked.
_KEPT = 2


class Fork(Mechanism):
    """Workers that serve one execution; workers of the slots `unforked` serve many."""

    name = "fork"

    def __init__(
        self, slots: int, environment: Mapping[str, str], unforked: Collection[int]
    ) -> None:
        self._slots = slots
        self._unforked = frozenset(unforked)
        self._workers = []

    @property
    def lasting(self) -> int:
        """The workers of one execution that serve many."""
        return len(self._unforked)

    def start(self, starter: Starter) -> None:
        """Get workers from `starter`; the first worker of each slot in `unforked` at once."""
        for slot in range(self._slots):
            if slot in self._unforked:
                workers = IdleWorkers(partial(starter.spawn, 1 + slot), _KEPT)
                workers.add()
            else:
                workers = IdleWorkers(starter.spawn, most=0)
            self._workers.append(workers)
