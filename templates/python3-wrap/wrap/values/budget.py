"""Decides which objects of executions stay in memory, and which go to disk.

An engine keeps an object from its arrival until its last consumer has it. The budget accounts for
the objects of all executions. In memory they may take what the wrap's limit leaves beside its
functions. FaaSFlow's Quota(G) is the same: the sum of what is left of each container (paper,
section on memory reclamation in FaaStore). Objects above that, or older than a time to live, go to
disk. If the disk has no room either, nothing is lost and nothing fails: the budget is full, and
whoever reads from connections stops until there is room (backpressure).

Only `tend` writes, without the lock: no thread that holds, gets or releases an object waits for the
disk. A thread that will add more objects waits in `make_room`, where it holds no lock.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

from wrap.core.spilling import due, first_file
from wrap.values.disk import Spilled
from wrap.values.value import Object

#: Smaller objects are not accounted for: the state kept of the task that gave one takes as much.
HELD_FROM = 1 << 12
#: Seconds after which an object goes to disk, even if there is room in memory.
TTL_S = 30.0
#: Seconds after which a disk that had no room is tried again.
_AGAIN_S = 1.0


@dataclass(slots=True)
class _Held:
    """An object, its bytes, and the time since when it waits."""

    object: Object
    size: int
    since: float


class MemoryBudget:
    """Accounts for the objects of executions until their last consumers have them.

    Any thread may call its methods.

    Args:
        quota: bytes that they may take in memory, beside the newest one: its consumer may come at
            once.
        ttl_s: seconds after which an object goes to disk in any case.
        spill: writes contents to disk, all or none; called by `tend` alone, without the lock.
            Raises OSError if there is no room.
        wake: schedules a call of `tend` at a time of the clock; the thread may wait for the disk.
        clock: returns seconds.
    """

    def __init__(
        self,
        quota: int,
        ttl_s: float,
        spill: Callable[[Iterable[bytes | memoryview]], Sequence[Spilled]],
        wake: Callable[[float], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._quota = quota
        self._ttl_s = ttl_s
        self._spill = spill
        self._wake = wake
        self._clock = clock
        self._held: dict[Hashable, dict[Hashable, _Held]] = {}
        #: The objects in memory by their identity, the oldest first.
        self._in_memory: dict[int, _Held] = {}
        self._again, self._wakes_at = -math.inf, math.inf
        self._waiting: list[Callable[[], None]] = []
        self._writing = False
        self._lock = threading.RLock()
        self._written = threading.Condition(self._lock)
        #: Bytes in memory, and on disk.
        self.held = self.spilled = 0

    @property
    def full(self) -> bool:
        """Whether the objects in memory exceed the quota. `when_room` waits for room."""
        return self.held > self._quota

    def hold(self, execution: Hashable, key: Hashable, content: Object) -> None:
        """Account for an object until it is released; it replaces the object of the same key."""
        with self._lock:
            its = self._held.setdefault(execution, {})
            if key in its:
                self._let_go(its[key])
            held = its[key] = _Held(content, content.size, self._clock())
            self._in_memory[id(held)] = held
            self.held += held.size
            self._see_to_waking()

    def release(self, execution: Hashable, key: Hashable) -> None:
        """Release an object that all consumers have. Unknown keys are ignored."""
        with self._lock:
            its = self._held.get(execution, {})
            held = its.pop(key, None)
            if held is None:
                return
            if not its:
                del self._held[execution]
            self._let_go(held)
        self._tell()

    def drop(self, execution: Hashable) -> None:
        with self._lock:
            for held in self._held.pop(execution, {}).values():
                self._let_go(held)
        self._tell()

    def _let_go(self, held: _Held) -> None:
        if self._in_memory.pop(id(held), None) is None:
            self.spilled -= held.size
        else:
            self.held -= held.size

    def _due(self, now: float) -> list[_Held]:
        """Return the objects that should go to disk, by the rule of `wrap.core.spilling`."""
        waiting = list(self._in_memory.values())
        return due(waiting, now, self._ttl_s, self._quota, self.full, bool(self._waiting))

    def tend(self) -> None:
        """Write the due objects to disk. If there is no room, schedule another try."""
        with self._lock:
            self._wakes_at = math.inf
            if self._writing:  # that thread continues until nothing is due
                return
            self._writing = True
        try:
            while self._spill_some():
                self._tell()
        finally:
            with self._lock:
                self._writing = False
                self._written.notify_all()
                self._see_to_waking()
        self._tell()

    def make_room(self) -> None:
        """Wait until the objects above the quota are on disk, as far as it has room."""
        if not self.full:
            return
        with self._written:
            while self.full and self._writing:
                self._written.wait()
        if self.full:
            self.tend()

    def _spill_some(self) -> bool:
        """Write one file of due objects to disk; return whether any were due and had room."""
        with self._lock:
            now = self._clock()
            batch = first_file(self._due(now)) if now >= self._again else []
        if not batch:
            return False
        try:
            places = self._spill(each.object.view() for each in batch)
        except (OSError, UnicodeEncodeError) as error:  # a text may have no UTF-8 encoding
            self._again = now + _AGAIN_S
            print(f"{self.held} bytes wait in memory, and cannot go to disk: {error}")
            return False
        with self._lock:
            for each, place in zip(batch, places, strict=True):
                if self._in_memory.pop(id(each), None) is None:
                    continue  # its last consumer has it by now
                each.object.spill(place)
                self.held -= each.size
                self.spilled += each.size
        return True

    def _see_to_waking(self) -> None:
        """Schedule `tend`: now, when the oldest expires, or when to try the disk again."""
        oldest = next(iter(self._in_memory.values()), None)
        if oldest is None or self._writing:
            return
        now = self._clock()
        is_due = self.full and (now < self._again or self._due(now))
        when = max(self._again, now if is_due else oldest.since + self._ttl_s)
        if when < self._wakes_at:
            self._wakes_at = when
            self._wake(when)

    def when_room(self, action: Callable[[], None]) -> None:
        """Call `action` once when the budget is not full: now, or by the thread that makes room."""
        with self._lock:
            self._waiting.append(action)
            self._see_to_waking()
        self._tell()

    def _tell(self) -> None:
        with self._lock:
            if self.full or not self._waiting:
                return
            waiting, self._waiting = self._waiting, []
        for action in waiting:
            action()
