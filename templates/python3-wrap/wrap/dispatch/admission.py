"""When an execution that needs workers begins: as soon as there are some, or on another replica."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from wrap.core import events as on
from wrap.core.errors import TaskError
from wrap.core.program import Key
from wrap.net.messages import Request, Result
from wrap.values.value import Object

if TYPE_CHECKING:
    from wrap.dispatch.execution import Execution, Outcome

#: How long an execution waits for workers before it looks whether all others wait, in seconds;
#: then twice as long, and so on.
_BLOCKED_S = 0.02


class Admission:
    """Has an execution wait for workers.

    It is the `wrap.workers.mechanisms.Guest` of the execution.
    """

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._mechanism = execution.runtime.mechanism
        self._is_admitted = self._is_offloaded = False

    def wait(self) -> None:
        """Begin when there are workers for it, here or elsewhere."""
        self._wait_here()
        self._offload_later()

    def admit(self) -> bool:
        """As `wrap.workers.mechanisms.Guest` says."""
        execution = self._execution
        with execution.lock:
            if execution.over or self._is_offloaded or self._is_admitted:
                return False
            self._is_admitted = True
        execution.event(execution.begin)
        return True

    @property
    def waits(self) -> bool:
        """As `wrap.workers.mechanisms.Guest` says."""
        execution = self._execution
        if execution.peers is None:
            return False
        if execution.live:  # what runs may wait for the other end of a stream
            return True
        busy = execution.threads.running or execution.workers.any_busy
        return not busy and not execution.run.held_back

    def leave(self) -> None:
        """Take no more workers."""
        if self._is_admitted:
            self._mechanism.leave(self)

    def _wait_here(self) -> None:
        self._mechanism.admit(self)
        self._ask_for_more(_BLOCKED_S)

    def _ask_for_more(self, after_s: float) -> None:
        """Look whether it waits to be admitted because the others wait, now and then."""

        def look() -> None:
            self._mechanism.admit_more()
            self._ask_for_more(2 * after_s)

        if not self._is_admitted and not self._is_offloaded and not self._execution.over:
            self._execution.runtime.loop.call_at(time.monotonic() + after_s, look)

    def _offload_later(self) -> None:
        """Have another replica run it, if it waits for too long and can be run whole.

        Tasks of live streams stay here, because another replica begins its tasks one after
        another. Runs of buckets stay here, because the buckets are here.
        """
        execution = self._execution
        offload, part, data = execution.runtime.offload, execution.part, execution.data
        if offload is None or self._is_admitted or not part.is_whole:
            return
        if execution.live or execution.into_buckets is not None:
            return
        given: dict[Key, Object] = {None: data[None]} if None in data else {}
        request = Request(execution.ident, sorted(part.place_of), given, frozenset(part.gives))
        lend = partial(offload.lend, request, execution.deadline, self._is_wanted, self._returned)
        execution.runtime.loop.call_at(
            time.monotonic() + offload.after_s, partial(execution.event, lend)
        )

    def _is_wanted(self) -> bool:
        """Whether it still waits; if so, another replica runs the execution from now on."""
        with self._execution.lock:
            self._is_offloaded = not self._is_admitted and not self._execution.over
            return self._is_offloaded

    def _returned(self, outcome: Outcome | None) -> None:
        if outcome is None:  # the replica was lost: the execution runs here after all
            self._is_offloaded = False
            self._wait_here()
        elif isinstance(outcome, TaskError):
            self._execution.fail(outcome)
        else:
            self._execution.event(self._came_back, outcome)

    def _came_back(self, results: list[Result]) -> None:
        execution = self._execution
        if execution.peers is not None:
            execution.peers.begin(execution)
        execution.tell(on.Offloaded(results))
