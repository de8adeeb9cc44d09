"""Has an execution wait for workers, on this replica or another."""

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

#: The first wait for workers before an execution checks whether all others wait too, in seconds.
#: The wait doubles with each check.
_BLOCKED_S = 0.02


class Admission:
    """An execution that waits for workers: a `wrap.workers.mechanisms.mechanism.Candidate`.

    It begins once, on the first replica that offers workers.
    """

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._mechanism = execution.runtime.mechanism
        #: Whether it has workers of this replica; whether another replica runs it.
        self._has_workers = self._is_offloaded = False
        self._look_s = _BLOCKED_S

    @property
    def _is_waiting(self) -> bool:
        return not (self._has_workers or self._is_offloaded or self._execution.over)

    def wait(self) -> None:
        self._wait_here()
        self._offload_later()

    def admit(self) -> bool:
        execution = self._execution
        with execution.lock:
            if not self._is_waiting:
                return False
            self._has_workers = True
        begin = partial(execution.event_of, len(execution.part.place_of), execution.begin)
        loop = execution.runtime.loop
        if loop.is_here:  # another execution has just ended: waiting events go first
            loop.call_at(time.monotonic(), begin)
        else:
            begin()
        return True

    @property
    def is_blocked(self) -> bool:
        execution = self._execution
        if execution.peers is None:
            return False
        if execution.live:  # a task may wait for the other end of a stream
            return True
        busy = execution.threads.running or execution.workers.any_busy
        return not busy and not execution.run.held_back

    def leave(self) -> None:
        if self._has_workers:
            self._mechanism.leave(self)

    def _wait_here(self) -> None:
        self._mechanism.admit(self)
        self._look_later()

    def _look_later(self) -> None:
        """Check repeatedly whether it waits because all admitted executions wait too."""

        def look() -> None:
            self._mechanism.admit_more()
            self._look_later()

        if self._is_waiting:
            when = time.monotonic() + self._look_s
            self._look_s *= 2
            self._execution.runtime.loop.call_at(when, look)

    def _offload_later(self) -> None:
        """Send it to another replica if it waits too long and may run there.

        That replica runs tasks one after another, and does not have these buckets.
        """
        execution = self._execution
        offload, part, data = execution.runtime.offload, execution.part, execution.data
        if offload is None or not self._is_waiting:
            return
        if not part.is_whole or execution.live or execution.into_buckets is not None:
            return
        given: dict[Key, Object] = {None: data[None]} if None in data else {}
        request = Request(execution.ident, sorted(part.place_of), given, frozenset(part.gives))
        send = partial(offload.send, request, execution.deadline, self._is_wanted, self._returned)
        execution.runtime.loop.call_at(
            time.monotonic() + offload.after_s, partial(execution.event, send)
        )

    def _is_wanted(self) -> bool:
        """Return whether it still waits; if so, it now belongs to the other replica."""
        with self._execution.lock:
            is_wanted = self._is_waiting
            self._is_offloaded |= is_wanted
            return is_wanted

    def _returned(self, outcome: Outcome | None) -> None:
        if outcome is None:
            self._is_offloaded, self._look_s = False, _BLOCKED_S
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
