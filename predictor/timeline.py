"""What a thread did when: the spans that a simulation records and a drawing needs."""

from __future__ import annotations

from typing import NamedTuple

#: The kinds of spans that need a core.
COMPUTING = frozenset({"cpu", "native", "helper"})


class Span(NamedTuple):
    """A stretch of time that one thread of one process spent on one thing.

    ``thread`` is the thread's place in its process, -1 for the one that starts the others;
    ``kind`` is ``cpu``, ``native``, ``block``, ``wait-gil``, ``start`` (it was started but cannot
    run yet), ``started`` (the starter waits for that), ``helper`` (a thread or process that the
    function started computes, whatever the function does meanwhile) or ``join`` (the function waits
    for those). A ``cpu`` span begins with the GIL's change of holder, where that costs;
    ``wait_core_ms`` is how much of a span of `COMPUTING` passed because others had the cores.
    """

    process: int
    thread: int
    kind: str
    start_ms: float
    end_ms: float
    wait_core_ms: float = 0.0

    def moved(self, processes: int, milliseconds: float) -> Span:
        """The same so many processes and milliseconds earlier."""
        return self._replace(
            process=self.process - processes,
            start_ms=self.start_ms - milliseconds,
            end_ms=self.end_ms - milliseconds,
        )
