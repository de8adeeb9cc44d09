"""The records that the compiled kernel works on: periods, processes, threads, GILs, spans, time.

Every field has 8 bytes, so that a record needs no padding and `struct` packs what numba reads.
"""

from __future__ import annotations

from typing import Any, NamedTuple

#: An array of records, whose fields are attributes to numba, of which Python's types know nothing.
Records = Any

KINDS = ("cpu", "native", "block", "helper", "join", "start", "started", "wait-gil")
CPU, NATIVE, BLOCK, HELPER, JOIN, START, STARTED, WAIT_GIL = range(len(KINDS))


class Record(NamedTuple):
    """The names of a record's fields: first the integers, then the times."""

    integers: tuple[str, ...]
    times: tuple[str, ...]

    @property
    def format(self) -> str:
        """The format of one record for `struct`."""
        return "q" * len(self.integers) + "d" * len(self.times)

    @property
    def words(self) -> int:
        """How many words of 8 bytes it takes."""
        return len(self.integers) + len(self.times)


def _record(integers: str, times: str) -> Record:
    return Record(tuple(integers.split()), tuple(times.split()))


PERIOD = _record("kind", "duration_ms")

#: How many threads a process has, when it comes to life, what it computes first, what is computed
#: for it before that, and, as the answer, when its last thread ends.
PROCESS = _record("size", "start_ms computing_ms forking_ms end_ms")

#: As `predictor.simulator.Span` has them; ``wait_core_ms`` last. A helper's span has no end until
#: the helper is done.
SPAN = _record("process thread kind", "start_ms end_ms wait_core_ms")

#: ``begin`` to ``end`` are a thread's periods, ``at`` is the one it is in, ``doing`` its kind,
#: ``behind`` is the thread that waits for the GIL after it, ``helpers`` how many of its helpers
#: compute. A starter has no ``begin``; its ``end`` is its last thread. ``since_ms`` is when the
#: thread began what it does, ``since_core_ms`` what the clock's ``core_ms`` was then.
THREAD = _record("process begin end at doing behind helpers", "remaining_ms since_ms since_core_ms")

#: ``head`` and ``tail`` have waited longest and shortest, ``unstarted`` is the next thread
#: to start, ``parked`` says whether the starter waits for the one it started last,
#: ``computing_ms`` is what it has to compute before it starts any, ``forking_ms`` what is computed
#: before that, and ``forked`` whether it is. ``follower`` is the starter of the process that is
#: forked next.
GIL = _record(
    "holder last_holder head tail starter unstarted unfinished parked forked follower",
    "taken_ms switching_ms end_ms computing_ms forking_ms",
)

#: The constants of `predictor.simulator.Interpreter` (``thread_ready_ms`` < 0 stands for None), by
#: how much computing takes longer where more threads want to than cores can, those cores, and the
#: time: as it is, as threads that compute see it, how long a thread that computes has had a core,
#: and what passes for one instant. ``spans`` counts them.
CLOCK = _record(
    "cores spans",
    "switch_interval_ms switch_cost_ms thread_startup_ms thread_ready_ms short_release_ms "
    "contention_overhead now_ms virtual_ms core_ms instant_ms",
)

#: An item of a heap.
ENTRY = _record("item", "key")
